//! Pages of `meshmeter view`: a list of runs, a run as it goes on, and a history.
//!
//! A page consists of parts. The same functions make the parts of the page and those that are sent later, so that the script
//! ([`SCRIPT`]) only puts them in their places. Charts are drawn here as in the report: their size does not grow with the number of
//! seconds, so that a browser has little to do per update.

use super::charts::heat;
use super::charts::timeline::{self, Axes};
use super::charts::usage;
use super::fill;
use super::sections::{Chart, MAX_SPANS_PER_TRIAL, timeline_charts};
use super::style::ModeStyle;
use crate::comparison::page::{Table, columns, plain_row};
use crate::components_csv::role;
use crate::format;
use crate::watched::{ComponentUsages, MAX_ROWS, TrialRow, UnderWay, UsagePoint, WatchedRun, joined};
use jiff::Timestamp;
use results::units::format_duration;
use results::{
    ComponentUsage, DriverView, HistoryCourse, LatencyHistogram, SeriesPoint, TrialRecord, TrialUnderWay,
};
use serde::Serialize;
use serde_json::json;
use std::time::Duration;

/// The only script of the pages.
pub const SCRIPT: &str = include_str!("../../templates/view.js");
/// Generators and components shown in a table.
const MAX_TABLE_ROWS: usize = 60;
/// Components whose usage by second is drawn, those with the most CPU, and the points of each.
const MAX_USAGE_CHARTS: usize = 8;
const MAX_USAGE_POINTS: usize = 60;
/// Heat maps shown of a trial, one per driver.
const MAX_HEAT_MAPS: usize = 8;

/// A part of a page, and its element.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Part {
    /// Id of the element.
    pub name: &'static str,
    /// Content of the element.
    pub html: String,
}

/// A run, comparison or history in the list.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    /// Address of its page, relative to the list.
    pub href: String,
    /// Path below the directory that is viewed.
    pub name: String,
    /// `run`, `comparison` or `history`.
    pub kind: &'static str,
    /// Progress or verdict.
    pub state: String,
    /// True if something is wrong with it.
    pub flagged: bool,
    /// Time of the last change.
    pub changed: String,
}

/// Values of `view.html`.
#[derive(Default, Serialize)]
struct Page<'a> {
    title: &'a str,
    state: String,
    /// Address of the list, and of the script.
    home: Option<&'static str>,
    script: Option<&'static str>,
    events: Option<String>,
    parts: Vec<Part>,
    rows: String,
    most_rows: usize,
    earlier: usize,
}

/// The list of a directory.
#[must_use]
pub fn list(title: &str, part: Part) -> String {
    let events = Some("events".to_owned());
    fill("view.html", &Page { title, script: Some("view.js"), events, parts: vec![part], ..Page::default() })
}

/// The only part of a list. `left_out`: how many there are beyond those.
#[must_use]
pub fn list_part(entries: &[Listed], left_out: usize) -> Part {
    if entries.is_empty() {
        return notes(&["There are no runs, comparisons or histories here."], "list");
    }
    Part { name: "list", html: fill("view-list.html", &json!({"entries": entries, "left_out": left_out})) }
}

/// Page of a run.
#[must_use]
pub fn run(title: &str, run: &WatchedRun, now: Timestamp) -> String {
    let mut parts = now_parts(run, now);
    parts.retain(|part| part.name != "state");
    parts.push(last_part(run));
    let page = Page {
        title,
        state: state(run),
        home: Some("../../"),
        script: Some("../../view.js"),
        events: Some(format!("events?after={}", run.position)),
        parts,
        rows: rows(run.rows.iter().map(|(_, row)| row).rev()),
        most_rows: MAX_ROWS,
        earlier: run.trials - run.rows.len(),
    };
    fill("view.html", &page)
}

/// Page of a history: its state, charts of its figures, those with changes first, and its course as text.
#[must_use]
pub fn history(title: &str, state: String, course: &HistoryCourse) -> String {
    let (charts, left_out) = super::course::charts(course);
    let values = json!({"charts": charts, "left_out": left_out, "text": crate::history::text(course)});
    let part = Part { name: "course", html: fill("view-course.html", &values) };
    fill("view.html", &Page { title, state, home: Some("../"), parts: vec![part], ..Page::default() })
}

/// Rows of the table of trials, in this order.
#[must_use]
pub fn rows<'a>(rows: impl Iterator<Item = &'a TrialRow>) -> String {
    fill("view-rows.html", &json!({"rows": rows.collect::<Vec<_>>()}))
}

/// Parts that change while a trial is measured.
#[must_use]
pub fn now_parts(run: &WatchedRun, now: Timestamp) -> Vec<Part> {
    vec![
        Part { name: "state", html: state(run) },
        Part { name: "links", html: fill("view-links.html", &json!({"links": run.reports})) },
        notes(&run.problems(), "notes"),
        Part {
            name: "now",
            html: fill(
                "view-now.html",
                &run.under_way.as_ref().map(|trial| Now::new(trial, now)).unwrap_or_default(),
            ),
        },
    ]
}

fn notes(notes: &[&str], name: &'static str) -> Part {
    Part { name, html: fill("view-notes.html", &json!({"notes": notes})) }
}

/// Progress of a run, without markup. It changes with each trial, not with each second, since screen readers read it out.
fn state(run: &WatchedRun) -> String {
    let trials = format::counted(run.trials as u64, "trial", "trials");
    match &run.under_way {
        Some(UnderWay { trial, .. }) => {
            format!("In progress: trial {} of {}.", trial.ended.saturating_add(1), trial.trials)
        }
        None if run.has_summary && run.trials == 0 => "Ended.".to_owned(),
        None if run.has_summary => format!("Ended, with {trials}."),
        None => format!("{trials} and no summary: the run was cut short, or has not begun."),
    }
}

/// The trial under way.
#[derive(Default, Serialize)]
struct Now<'a> {
    title: &'a str,
    left: String,
    charts_of_now: Vec<Chart>,
    generators: Option<Table>,
    usage_charts: Vec<Chart>,
    usages: Option<Table>,
}

impl<'a> Now<'a> {
    fn new(under_way: &'a UnderWay, now: Timestamp) -> Self {
        let series = under_way.series();
        let duration_s = series.last().map_or(0.0, |last| last.t_s + 1.0);
        let spans = timeline::spans(&series, duration_s, MAX_SPANS_PER_TRIAL);
        let chart = || {
            let axes = Axes::new(&spans.iter().collect::<Vec<_>>());
            let title = "The trial under way, by second";
            let caption = match under_way.generators.len() {
                1 => "Completed requests and response times by second".to_owned(),
                several => {
                    format!("Sum of {several} generators by second, with the highest of their percentiles")
                }
            };
            Chart::new(caption, timeline::chart("now-chart", title, "blue", &spans, &axes, duration_s))
        };
        let left = left(&under_way.trial, now);
        Self {
            title: &under_way.trial.title,
            left: match series.last() {
                Some(last) => format!("{left} The last second: {}.", figures(last).join(", ")),
                None => format!("{left} No second has been reported yet."),
            },
            charts_of_now: (!spans.is_empty()).then(chart).into_iter().collect(),
            generators: (under_way.generators.len() > 1).then(|| generators(under_way)),
            usage_charts: usage_charts(&under_way.usages),
            usages: usages(&under_way.usages),
        }
    }
}

/// Estimated time until the run's end.
fn left(trial: &TrialUnderWay, now: Timestamp) -> String {
    let elapsed_s =
        trial.started_at.parse().map_or(0.0, |start: Timestamp| now.duration_since(start).as_secs_f64());
    // A damaged file may have any number there.
    match Duration::try_from_secs_f64((trial.rest_s - elapsed_s).round()) {
        Ok(left) if !left.is_zero() => format!("About {} left.", format_duration(left)),
        _ => "The run takes longer than estimated.".to_owned(),
    }
}

/// Rate, median and 99th percentile of a second.
fn figures(second: &SeriesPoint) -> [String; 3] {
    let time = |time_us: Option<f64>| format::time_or_above(time_us, None);
    let failed = match second.failed {
        0 => String::new(),
        failed => format!(", {} failed", format::count(failed)),
    };
    [
        format!("{}{failed}", format::rate(second.completed as f64)),
        format!("p50 {}", time(second.p50_us)),
        format!("p99 {}", time(second.p99_us)),
    ]
}

/// Sentence on the rows of a table beyond those that it has.
fn not_shown(rows: usize) -> String {
    let more = rows.saturating_sub(MAX_TABLE_ROWS);
    if more > 0 { format!(" {more} further ones are not shown.") } else { String::new() }
}

/// The last second of each generator.
fn generators(under_way: &UnderWay) -> Table {
    let row = |(name, second): (&String, &SeriesPoint)| {
        let [rate, p50, p99] = figures(second);
        plain_row([name.clone(), rate, p50, p99])
    };
    Table {
        caption: format!("The last second of each generator.{}", not_shown(under_way.generators.len())),
        columns: columns([("Generator", ""), ("Completed", "n"), ("Median", "n"), ("99th percentile", "n")]),
        rows: under_way.generators.iter().take(MAX_TABLE_ROWS).map(row).collect(),
    }
}

/// A chart per component, for those with the most CPU in the window so far, by name.
fn usage_charts(usages: &ComponentUsages) -> Vec<Chart> {
    let cpu = |points: &[UsagePoint]| points.iter().map(|point| point.cpu_cores).sum::<f64>();
    let mut drawn: Vec<_> = usages.iter().collect();
    drawn.sort_by(|one, other| cpu(other.1).total_cmp(&cpu(one.1)));
    drawn.truncate(MAX_USAGE_CHARTS);
    drawn.sort_by_key(|(name, _)| *name);
    let chart = |(number, (name, points)): (usize, &(&str, &[UsagePoint]))| {
        let title = format!("{name}, CPU and memory by second");
        let svg = usage::chart(&format!("usage-{number}"), &title, &joined(points, MAX_USAGE_POINTS));
        Chart::new((*name).to_owned(), svg)
    };
    drawn.iter().enumerate().map(chart).collect()
}

/// The last reading of each component.
fn usages(usages: &ComponentUsages) -> Option<Table> {
    let row = |(name, points): (&str, &[UsagePoint])| {
        let [cpu, memory] = usage::text(points.last()?);
        Some(plain_row([name.to_owned(), cpu, memory]))
    };
    let number = usages.iter().len();
    (number > 0).then(|| Table {
        caption: format!("The last second of each component.{}", not_shown(number)),
        columns: columns([("Component", ""), ("CPU", "n"), ("Memory", "n")]),
        rows: usages.iter().take(MAX_TABLE_ROWS).filter_map(row).collect(),
    })
}

/// Charts of the last trials, and the components of the last one. It changes with each trial.
#[must_use]
pub fn last_part(run: &WatchedRun) -> Part {
    let last = run.whole.back();
    let content = json!({
        "timelines": timeline_charts(run.whole.iter().rev(), MAX_SPANS_PER_TRIAL),
        "heat": last.map(heat_maps).unwrap_or_default(),
        "components": last.and_then(components),
    });
    Part { name: "last", html: fill("view-last.html", &content) }
}

/// A heat map per driver that has histograms by second.
fn heat_maps(trial: &TrialRecord) -> Vec<Chart> {
    let class = ModeStyle::for_mode(trial.mode).class;
    let map = |(number, driver): (usize, DriverView<'_>)| {
        let result = driver.result?;
        let decoded = result.series_histograms.iter().map(|text| LatencyHistogram::decode(text));
        // A histogram that cannot be decoded would shift those behind it.
        let seconds: Vec<LatencyHistogram> = decoded.collect::<Result<_, _>>().ok()?;
        let caption = format!("Trial {}, {}: {}", trial.index.saturating_add(1), trial.mode, driver.name);
        let svg = || heat::chart(&format!("heat-{number}"), &caption, class, &seconds, result.duration_s);
        (!seconds.is_empty()).then(|| Chart::new(caption.clone(), svg()))
    };
    trial.drivers().into_iter().enumerate().filter_map(map).take(MAX_HEAT_MAPS).collect()
}

fn components(trial: &TrialRecord) -> Option<Table> {
    let mut components: Vec<_> = trial.components.iter().collect();
    components.sort_by(|one, other| other.cpu_cores().total_cmp(&one.cpu_cores()));
    let row = |component: &&ComponentUsage| {
        let memory = component.memory_bytes().filter(|bytes| *bytes > 0);
        let memory = memory.map_or_else(|| format::ABSENT.to_owned(), |bytes| format::size(bytes as f64));
        let role = role(component.role).replace('-', " ");
        plain_row([component.name.clone(), role, format::cores(component.cpu_cores()), memory])
    };
    (!components.is_empty()).then(|| Table {
        caption: format!(
            "Trial {}, {}: means over its window, most CPU first.{}",
            trial.index.saturating_add(1),
            trial.mode,
            not_shown(components.len())
        ),
        columns: columns([("Component", ""), ("Role", ""), ("CPU", "n"), ("Memory", "n")]),
        rows: components.iter().take(MAX_TABLE_ROWS).map(row).collect(),
    })
}
