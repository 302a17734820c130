//! The opening: the answer as text, its basis, and the result at a glance.

use super::context::Context;
use super::findings::FindingText;
use crate::disturbed;
use crate::format::{self, Interval};
use crate::marks::{self, Mark};
use crate::sentences;
use crate::table::{CellRow, Difference, ResultTable, valid_trials};
use results::TrialOutcome;
use serde::Serialize;

/// The answer and its basis.
#[derive(Debug, Serialize)]
pub struct Opening {
    name: String,
    question: String,
    headline: FindingText,
    /// The most important of the other findings.
    findings: Vec<FindingText>,
    /// Warnings that come before everything else: a run cut short, no valid trial.
    warnings: Vec<String>,
    /// The basis of the answer, in one line.
    basis: String,
}

impl Opening {
    pub fn new(context: &Context) -> Self {
        let summary = &context.run.summary;
        let (headline, findings) = sentences::opening(summary);
        let nothing = || FindingText { line: nothing_measured(context), detail: String::new() };
        let headline = headline.map_or_else(nothing, FindingText::from);
        Self {
            name: summary.name.clone(),
            question: summary.question.clone(),
            headline,
            findings: findings.into_iter().map(FindingText::from).collect(),
            warnings: warnings(context),
            basis: basis(context),
        }
    }
}

/// A finding without line breaks between a number and its unit, or within a range.
pub(super) fn unbroken(finding: &str) -> String {
    format::unbroken(finding).replace('–', "\u{2060}–\u{2060}")
}

fn nothing_measured(context: &Context) -> String {
    let summary = &context.run.summary;
    match (summary.trials_recorded, valid(context)) {
        (0, _) => "Nothing was measured: the run ended before its first trial.".to_owned(),
        (trials, 0) => {
            format!("No result: none of the {} is valid.", format::counted(trials as u64, "trial", "trials"))
        }
        _ => "The figures are below.".to_owned(),
    }
}

fn valid(context: &Context) -> usize {
    context.run.summary.cells.iter().map(|cell| cell.valid).sum()
}

fn warnings(context: &Context) -> Vec<String> {
    let summary = &context.run.summary;
    let mut warnings: Vec<String> = disturbed::accepted(summary).into_iter().collect();
    if summary.places_recorded() < summary.trials_planned {
        warnings.push(format!(
            "The run was cut short: {} of {} planned trials were recorded. All figures are from these.",
            summary.places_recorded(),
            summary.trials_planned
        ));
    }
    let interrupted =
        context.run.trials.iter().filter(|trial| trial.outcome == TrialOutcome::Interrupted).count();
    if interrupted > 0 {
        warnings.push(format!(
            "{} stopped by the user before the end.",
            format::counted(interrupted as u64, "trial was", "trials were")
        ));
    }
    warnings.extend(context.run.notes.iter().cloned());
    warnings
}

fn basis(context: &Context) -> String {
    let host = &context.run.host;
    let mut parts = vec![format!(
        "{} of {} valid",
        valid(context),
        format::counted(context.run.summary.places_recorded() as u64, "trial", "trials")
    )];
    if let Some(retakes) = context.run.summary.retakes.filter(|retakes| retakes.taken > 0) {
        parts.push(format!("{} rerun", retakes.taken));
    }
    if let Some(first) = context.run.trials.first() {
        parts.push(format::moment(&first.started_at));
    }
    let named = host.versions.iter().filter(|version| version.named_by.is_some());
    let named: Vec<String> = named
        .map(|version| format!("{} {}", version.name, format::version(&version.version, true)))
        .collect();
    if !named.is_empty() {
        parts.push(format!("not the installed ones: {}", named.join(", ")));
    }
    if !host.cpu_model.is_empty() {
        parts.push(format!("{}, {}", host.cpu_model, format::counted(host.cpus as u64, "CPU", "CPUs")));
    }
    parts.join(" · ")
}

/// The result as a table that becomes cards on a phone.
#[derive(Debug, Serialize)]
pub struct Glance {
    time_unit: &'static str,
    memory_unit: &'static str,
    compares: bool,
    /// True if throughput is a result.
    closed_loop: bool,
    /// Name of the times.
    times: &'static str,
    /// The baseline of the modes.
    floor: &'static str,
    /// Dotted keys of the factors, one column each.
    factors: Vec<String>,
    /// Number of columns in the table.
    columns: usize,
    groups: Vec<GlanceGroup>,
    /// Explanations of the marks.
    notes: Vec<String>,
    not_measured: Vec<String>,
}

#[derive(Debug, Serialize)]
struct GlanceGroup {
    load: String,
    rows: Vec<GlanceRow>,
}

#[derive(Debug, Serialize)]
struct GlanceRow {
    mode: &'static str,
    factors: Vec<String>,
    class: &'static str,
    valid: String,
    all_valid: bool,
    no_figures: Option<String>,
    p50: Value,
    p99: Value,
    added: Option<AddedValue>,
    added_p99: Option<AddedValue>,
    completed: Value,
    change: Option<AddedValue>,
    cores: Option<Value>,
    proxies: usize,
    memory: Option<Value>,
}

/// A figure with its interval below it.
#[derive(Debug, Default, Serialize)]
struct Value {
    estimate: String,
    range: Option<String>,
    /// Text of the mark, such as `of 3 trials` or `4 events`.
    mark: Option<String>,
    /// Reason for the mark.
    reason: Option<String>,
    /// True if the figure is unusable in every trial.
    spoiled: bool,
}

#[derive(Debug, Serialize)]
struct AddedValue {
    estimate: String,
    range: Option<String>,
    shown: bool,
    has_interval: bool,
    relative: Option<String>,
}

impl Value {
    fn new(interval: &Interval, mark: Option<&Mark>) -> Self {
        Self {
            estimate: interval.estimate.clone(),
            range: interval.range.clone(),
            mark: mark.map(|mark| mark.short.clone()),
            reason: mark.map(|mark| mark.reason.clone()),
            spoiled: false,
        }
    }

    fn spoiled((range, mark): &(Interval, Mark)) -> Self {
        Self { spoiled: true, ..Self::new(range, Some(mark)) }
    }
}

impl AddedValue {
    fn new(difference: &Difference) -> Self {
        Self {
            estimate: difference.interval.estimate.clone(),
            range: difference.interval.range.clone(),
            shown: difference.shown,
            has_interval: difference.has_interval,
            relative: difference.relative.clone(),
        }
    }
}

impl Glance {
    pub fn new(context: &Context) -> Self {
        let table = ResultTable::new(&context.run.summary);
        let groups = table
            .groups
            .iter()
            .map(|group| GlanceGroup {
                load: group.load.clone(),
                rows: group.rows.iter().map(GlanceRow::new).collect(),
            })
            .collect();
        Self {
            time_unit: table.unit.symbol(),
            memory_unit: table.memory_unit.symbol(),
            compares: table.compares,
            closed_loop: table.closed_loop,
            times: table.times(),
            floor: table.floor,
            factors: table.factors.clone(),
            columns: 6
                + table.factors.len()
                + 2 * usize::from(table.compares)
                + 2 * usize::from(table.closed_loop),
            groups,
            notes: marks::notes(&context.run.summary),
            not_measured: table.not_measured,
        }
    }
}

impl GlanceRow {
    fn new(row: &CellRow) -> Self {
        let percentile = |index: usize| {
            if let Some(spoiled) = &row.spoiled.percentiles[index] {
                return Value::spoiled(spoiled);
            }
            let mark = row.marks[index].as_ref();
            let value = row.percentiles.as_ref().map(|percentiles| Value::new(&percentiles[index], mark));
            value.unwrap_or_default()
        };
        let spoiled = |spoiled: &Option<(Interval, Mark)>| spoiled.as_ref().map(Value::spoiled);
        let value = |interval: &Option<Interval>, mark: &Option<Mark>| {
            interval.as_ref().map(|interval| Value::new(interval, mark.as_ref()))
        };
        Self {
            mode: row.mode.name(),
            factors: row.factors.clone(),
            class: crate::html::style::ModeStyle::for_mode(row.mode).class,
            valid: valid_trials(row.valid, row.trials, row.retakes, ""),
            all_valid: row.valid == row.trials,
            no_figures: row.no_figures.clone().filter(|_| row.spoiled.percentiles[0].is_none()),
            p50: percentile(0),
            p99: percentile(2),
            added: row.added.as_ref().map(AddedValue::new),
            added_p99: row.added_p99.as_ref().map(AddedValue::new),
            completed: value(&row.completed, &row.completed_mark).unwrap_or_default(),
            change: row.completed_change.as_ref().map(AddedValue::new),
            cores: spoiled(&row.spoiled.cores).or_else(|| value(&row.proxy_cores, &row.cores_mark)),
            proxies: row.proxies,
            memory: spoiled(&row.spoiled.memory).or_else(|| value(&row.proxy_memory, &row.memory_mark)),
        }
    }
}
