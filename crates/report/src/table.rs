//! The result as a table by load and mode: the same figures for the terminal and for HTML.

use crate::conditions::ConditionLabels;
use crate::format::{self, Interval, SizeUnit, TimeUnit};
use crate::marks::{Mark, mark};
use experiment::file::label::label;
use results::{Cell, Estimate, Figure, FindingVerdict, Mode, ModeComparison, Role, Summary};
use statistics::words;

/// The result table of a run.
#[derive(Clone, Debug)]
pub struct ResultTable {
    /// Unit of every time in the table.
    pub unit: TimeUnit,
    /// Unit of every memory figure in the table.
    pub memory_unit: SizeUnit,
    /// True if any mode is compared with its baseline.
    pub compares: bool,
    /// The baseline, such as `none`; `its floor` if there are several.
    pub floor: &'static str,
    /// True for a closed loop, whose throughput is a result.
    pub closed_loop: bool,
    /// True if times are those until the first token of a stream; response times otherwise.
    pub of_streams: bool,
    /// What all loads have in common, as text.
    pub shared_load: String,
    /// Names of the factors, one column each.
    pub factors: Vec<String>,
    /// One group per level of load with a recorded trial.
    pub groups: Vec<LoadGroup>,
    /// Planned cells without a recorded trial: `gateway at 1000/s`, `every mode at 2000/s`.
    pub not_measured: Vec<String>,
}

/// The cells of one level of load.
#[derive(Clone, Debug)]
pub struct LoadGroup {
    /// Load such as `1000/s`.
    pub load: String,
    /// One row per mode and value of each factor.
    pub rows: Vec<CellRow>,
}

/// Figures of one cell.
#[derive(Clone, Debug)]
pub struct CellRow {
    /// Deployment mode.
    pub mode: Mode,
    /// Values of the table's factors.
    pub factors: Vec<String>,
    /// Number of trials in the estimates.
    pub valid: usize,
    /// Number of recorded trials, without reruns.
    pub trials: usize,
    /// Number of reruns of trials that the machine had disturbed.
    pub retakes: usize,
    /// Reason why there are no figures; `None` if there are.
    pub no_figures: Option<String>,
    /// Response time, or that until the first token, at the 50th, 90th, 99th and 99.9th percentile.
    pub percentiles: Option<[Interval; 4]>,
    /// Mark of each of these percentiles.
    pub marks: [Option<Mark>; 4],
    /// Measured values of figures that are unusable in every trial.
    pub spoiled: SpoiledValues,
    /// Difference in the median to the baseline.
    pub added: Option<Difference>,
    /// Difference in the 99th percentile to the baseline.
    pub added_p99: Option<Difference>,
    /// Responses per second.
    pub completed: Option<Interval>,
    /// Mark of `completed`.
    pub completed_mark: Option<Mark>,
    /// Mark of `proxy_cores`.
    pub cores_mark: Option<Mark>,
    /// Mark of `proxy_memory`.
    pub memory_mark: Option<Mark>,
    /// In a closed loop, the change in responses per second to the baseline, in percent.
    pub completed_change: Option<Difference>,
    /// CPU of all proxies together, in cores; `None` without proxies.
    pub proxy_cores: Option<Interval>,
    /// Memory of all proxies together, in the table's unit.
    pub proxy_memory: Option<Interval>,
    /// Number of proxies on the path.
    pub proxies: usize,
    /// Failed requests and error statuses, as a percentage.
    pub errors: String,
}

/// Ranges over the trials of figures that are unusable in every trial; `None` if there are estimates.
#[derive(Clone, Debug, Default)]
pub struct SpoiledValues {
    /// Response time at the 50th, 90th, 99th and 99.9th percentile.
    pub percentiles: [Option<(Interval, Mark)>; 4],
    /// CPU of all proxies together, in cores.
    pub cores: Option<(Interval, Mark)>,
    /// Memory of all proxies together, in the table's unit.
    pub memory: Option<(Interval, Mark)>,
}

impl SpoiledValues {
    fn new(cell: &Cell, unit: TimeUnit, memory_unit: SizeUnit) -> Self {
        let of = |figure: Figure, text: &dyn Fn(f64) -> String| {
            let mark = mark(cell, figure, 0)?;
            let (least, greatest) = mark.spoiled_values?;
            let range =
                if least < greatest { format!("{}–{}", text(least), text(greatest)) } else { text(least) };
            Some((Interval { estimate: range, range: None }, mark))
        };
        let times = cell.leading_times();
        let has_time = |figure| unit.percentile(times, figure) != Interval::absent();
        let total = cell.total(Role::Proxy);
        let has_memory = total.is_some_and(|total| total.memory_bytes.is_some());
        let memory = |bytes: f64| format::digits(bytes / memory_unit.bytes());
        Self {
            percentiles: SHOWN.map(|figure| {
                let spoiled = of(figure, &|us| unit.number(us));
                spoiled.filter(|_| !has_time(figure))
            }),
            cores: of(Figure::Cpu, &format::cores_number).filter(|_| total.is_none()),
            memory: of(Figure::Memory, &memory).filter(|_| !has_memory),
        }
    }
}

/// A difference to the baseline of a mode.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The difference with its sign.
    pub interval: Interval,
    /// True if the difference is shown, among everything that the run tests.
    pub shown: bool,
    /// True if the difference has an interval.
    pub has_interval: bool,
    /// Relative to the baseline, such as `×7.1` or `+12 %`; `None` if no difference is shown.
    pub relative: Option<String>,
}

impl Difference {
    /// A difference in this unit, and whether it is shown.
    #[must_use]
    pub fn new((estimate, verdict): (&Estimate, FindingVerdict), unit: TimeUnit) -> Self {
        Self {
            interval: unit.interval(estimate).signed(),
            shown: verdict == FindingVerdict::Shown,
            has_interval: estimate.low.is_some() && estimate.high.is_some(),
            relative: None,
        }
    }

    /// Like [`Self::new`], with the relative difference if it is shown. `whole` is the figure that includes
    /// the difference.
    #[must_use]
    pub fn of_whole(judged: (&Estimate, FindingVerdict), whole: Option<Estimate>, unit: TimeUnit) -> Self {
        let difference = Self::new(judged, unit);
        let whole = whole.filter(|_| difference.shown).map(|whole| whole.estimate);
        let relative = whole.and_then(|whole| words::relative(whole, whole - judged.0.estimate));
        Self { relative, ..difference }
    }

    /// A relative difference, in percent.
    #[must_use]
    pub fn percent(fraction: (&Estimate, FindingVerdict)) -> Self {
        Self::scaled(fraction, 100.0)
    }

    /// A difference in its own unit.
    #[must_use]
    pub fn plain(judged: (&Estimate, FindingVerdict)) -> Self {
        Self::scaled(judged, 1.0)
    }

    /// A difference of bytes in this unit.
    #[must_use]
    pub fn size(bytes: (&Estimate, FindingVerdict), unit: SizeUnit) -> Self {
        Self::scaled(bytes, 1.0 / unit.bytes())
    }

    fn scaled((difference, verdict): (&Estimate, FindingVerdict), factor: f64) -> Self {
        Self {
            interval: Interval::scaled(difference, factor).signed(),
            shown: verdict == FindingVerdict::Shown,
            has_interval: difference.low.is_some() && difference.high.is_some(),
            relative: None,
        }
    }

    /// The difference as text, without its unit: `+0.21 (0.18–0.24)`, `+0.02 (−0.01 to 0.05), not shown`.
    #[must_use]
    pub fn text(&self) -> String {
        self.text_with_unit("")
    }

    /// The difference as text: `+0.02 ms (−0.01 to 0.05), not shown`.
    #[must_use]
    pub fn text_with_unit(&self, unit: &str) -> String {
        format!("{}{}", self.interval.text_with_unit(unit), self.unless_shown())
    }

    /// Words behind a difference that is not shown; empty if it is.
    #[must_use]
    pub fn unless_shown(&self) -> &'static str {
        match (self.shown, self.has_interval) {
            (true, _) => "",
            (false, true) => ", not shown",
            (false, false) => ", no interval",
        }
    }
}

impl ResultTable {
    /// Name of the times in the table.
    #[must_use]
    pub fn times(&self) -> &'static str {
        if self.of_streams { "First token" } else { "Response time" }
    }

    /// The table of a run.
    #[must_use]
    pub fn new(summary: &Summary) -> Self {
        let labels = ConditionLabels::new(summary.cells.iter().map(Cell::conditions));
        let unit = TimeUnit::for_times(summary.cells.iter().flat_map(shown_times_us));
        let memory_unit = SizeUnit::for_sizes(
            summary.cells.iter().filter_map(|cell| Some(cell.total(Role::Proxy)?.memory_bytes?.estimate)),
        );
        let mut factors: Vec<String> = Vec::new();
        for key in summary.cells.iter().flat_map(|cell| cell.factors.keys()) {
            if !factors.contains(key) {
                factors.push(key.clone());
            }
        }
        let (mut groups, mut not_measured) = (Vec::<LoadGroup>::new(), Vec::new());
        for at in labels.all() {
            let label = labels.label(at);
            let of_load = summary.cells.iter().filter(|cell| cell.conditions() == at);
            let (recorded, missing): (Vec<&Cell>, Vec<&Cell>) = of_load.partition(|cell| cell.trials > 0);
            if recorded.is_empty() {
                not_measured.push(format!("every mode at {label}"));
                continue;
            }
            not_measured.extend(missing.iter().map(|cell| format!("{} at {label}", cell.mode)));
            // Fleets have their own table.
            if at.load.is_fleet() {
                continue;
            }
            let level = labels.level(at);
            let rows = recorded.iter().map(|cell| CellRow::new(summary, cell, &factors, unit, memory_unit));
            match groups.iter_mut().find(|group| group.load == level) {
                Some(group) => group.rows.extend(rows),
                None => groups.push(LoadGroup { load: level, rows: rows.collect() }),
            }
        }
        let compares = summary.cells.iter().any(|cell| cell.leading_added().is_some());
        Self {
            unit,
            memory_unit,
            compares,
            floor: floor(summary),
            closed_loop: summary.cells.iter().any(|cell| cell.load.is_closed_loop()),
            of_streams: summary.cells.iter().any(|cell| cell.load.stream.is_some()),
            shared_load: labels.shared(),
            factors: factors.iter().map(|key| label(key)).collect(),
            groups,
            not_measured,
        }
    }
}

impl CellRow {
    fn new(
        summary: &Summary,
        cell: &Cell,
        factors: &[String],
        unit: TimeUnit,
        memory_unit: SizeUnit,
    ) -> Self {
        let percentiles = cell.leading_times();
        let total = cell.total(Role::Proxy);
        let memory_bytes = total.and_then(|total| total.memory_bytes);
        let added = |figure: Figure, whole: Option<Estimate>| {
            let (estimate, verdict) = cell.leading_added()?.judged(figure)?;
            Some(Difference::of_whole((&estimate, verdict), whole, unit))
        };
        Self {
            mode: cell.mode,
            factors: factors
                .iter()
                .map(|key| cell.factors.get(key).map_or_else(String::new, ToString::to_string))
                .collect(),
            valid: cell.valid,
            trials: cell.places(),
            retakes: cell.retakes,
            no_figures: percentiles.is_none().then(|| cell.verdict.clone()),
            percentiles: percentiles.map(|all| SHOWN.map(|figure| unit.percentile(Some(all), figure))),
            marks: SHOWN.map(|figure| {
                let estimate = percentiles.and_then(|all| all.figure(figure));
                let is_censored = percentiles.is_some_and(|all| all.censored(figure).is_some());
                mark_of(cell, figure, estimate).filter(|_| !is_censored)
            }),
            added: added(Figure::P50, percentiles.and_then(|all| all.p50)),
            added_p99: added(Figure::P99, percentiles.and_then(|all| all.p99)),
            spoiled: SpoiledValues::new(cell, unit, memory_unit),
            completed: cell.rate_completed.as_ref().map(Interval::new),
            completed_mark: mark_of(cell, Figure::Throughput, cell.rate_completed),
            cores_mark: total.and_then(|total| mark_of(cell, Figure::Cpu, Some(total.cpu_cores))),
            memory_mark: total.and_then(|total| mark_of(cell, Figure::Memory, total.memory_bytes)),
            completed_change: throughput_change(summary, cell)
                .map(|(change, verdict)| Difference::percent((&change, verdict))),
            proxy_cores: total.map(|total| format::cores_interval(&total.cpu_cores)),
            proxy_memory: memory_bytes.map(|bytes| Interval::scaled(&bytes, 1.0 / memory_unit.bytes())),
            proxies: cell.components.iter().filter(|component| component.role == Role::Proxy).count(),
            errors: format::percent(cell.errors),
        }
    }
}

/// Percentiles of a row.
const SHOWN: [Figure; 4] = [Figure::P50, Figure::P90, Figure::P99, Figure::P99_9];

fn mark_of(cell: &Cell, figure: Figure, estimate: Option<Estimate>) -> Option<Mark> {
    mark(cell, figure, estimate.map_or(0, |estimate| estimate.n))
}

/// Number of valid trials of a cell, of those without reruns, with their name: `3 of 3`, `3 of 3 trials valid, 1 rerun`.
#[must_use]
pub fn valid_trials(valid: usize, trials: usize, retakes: usize, name: &str) -> String {
    let again = if retakes > 0 { format!(", {retakes} rerun") } else { String::new() };
    format!("{valid} of {trials}{name}{again}")
}

/// Name of the baseline that the modes are compared with.
#[must_use]
pub fn floor(summary: &Summary) -> &'static str {
    let mut floors: Vec<Mode> = summary.cells.iter().filter_map(|cell| cell.mode.floor()).collect();
    floors.sort_unstable();
    floors.dedup();
    match floors.as_slice() {
        [] => Mode::None.name(),
        [floor] => floor.name(),
        _ => "its floor",
    }
}

/// In a closed loop, the change in responses per second to the mode's baseline under the same conditions, as
/// a fraction.
#[must_use]
pub fn throughput_change(summary: &Summary, cell: &Cell) -> Option<(Estimate, FindingVerdict)> {
    let is_it = |comparison: &&ModeComparison| {
        comparison.conditions() == cell.conditions()
            && comparison.mode == cell.mode
            && Some(comparison.than) == cell.mode.floor()
    };
    summary.comparisons.iter().find(is_it)?.judged_throughput()
}

/// The 99.9th percentile is only in the full tables, so it does not affect the unit.
fn shown_times_us(cell: &Cell) -> Vec<f64> {
    cell.leading_times()
        .into_iter()
        .flat_map(|all| [all.p50, all.p90, all.p99])
        .flatten()
        .map(|estimate| estimate.estimate)
        .collect()
}
