//! Figures that istiod, the API server and etcd report, and a breakdown of a change's time.

use super::super::style::Options;
use super::super::tables::drawn_table;
use super::wrapped;
use crate::format::{self, SizeUnit};
use results::{ControlPlaneFigures, FleetResult, ReportedHistogram};

pub(super) const ISTIOD: &str = "istiod";

pub(super) fn lines(result: &FleetResult, options: Options) -> Vec<String> {
    let (known, unknown): (Vec<&ControlPlaneFigures>, Vec<_>) =
        result.control_plane.iter().partition(|figures| figures.failure.is_none());
    let mut lines = if known.is_empty() { Vec::new() } else { usage(result, &known, options) };
    for figures in unknown {
        let why = figures.failure.as_deref().unwrap_or_default();
        lines.extend(wrapped(&format!("No figures of {}: {why}", figures.name), options));
    }
    for (place, istiod) in istiods(result).enumerate() {
        lines.extend(where_the_time_went(result, istiod, place, options));
    }
    lines
}

/// istiods with or without figures, in the order of the result's addresses.
pub(super) fn istiods(result: &FleetResult) -> impl Iterator<Item = &ControlPlaneFigures> {
    result.control_plane.iter().filter(|figures| figures.name == ISTIOD)
}

fn usage(result: &FleetResult, known: &[&ControlPlaneFigures], options: Options) -> Vec<String> {
    let unit =
        SizeUnit::for_sizes(known.iter().filter_map(|figures| Some(figures.memory_peak_bytes? as f64)));
    let memory = format!("memory, {}", unit.symbol());
    let header = ["Control plane", "CPU, s", "of it changes", "cores", &memory, "peak", "goroutines"];
    let seconds = |seconds: Option<f64>| seconds.map_or_else(|| format::ABSENT.to_owned(), format::digits);
    let size = |bytes: Option<u64>| {
        bytes.map_or_else(|| format::ABSENT.to_owned(), |bytes| format::tick(bytes as f64 / unit.bytes()))
    };
    let row = |figures: &&ControlPlaneFigures| {
        let cores = figures.cpu_s.filter(|_| result.duration_s > 0.0).map(|cpu_s| cpu_s / result.duration_s);
        vec![
            name(figures),
            seconds(figures.cpu_s),
            seconds(figures.cpu_changing_s),
            cores.map_or_else(|| format::ABSENT.to_owned(), format::cores_number),
            size(figures.memory_bytes),
            size(figures.memory_peak_bytes),
            figures.goroutines.map_or_else(|| format::ABSENT.to_owned(), format::count),
        ]
    };
    let mut lines = drawn_table(&header.map(ToOwned::to_owned), known.iter().map(row), options);
    for figures in known.iter().filter(|figures| figures.restarts > 0) {
        let restarts = format::counted(figures.restarts, "restart", "restarts");
        lines.extend(wrapped(
            &format!("{}: {restarts} in between; its figures are those of all its processes.", name(figures)),
            options,
        ));
    }
    lines
}

pub(super) fn name(figures: &ControlPlaneFigures) -> String {
    match &figures.version {
        Some(version) => format!("{} {}", figures.name, format::version(version, false)),
        None => figures.name.clone(),
    }
}

/// Mean times of a change's stages as istiod reports them, in seconds.
struct Stages {
    debounce: f64,
    push_context: f64,
    queue: f64,
    push: f64,
}

impl Stages {
    fn from_figures(figures: &ControlPlaneFigures) -> Option<Self> {
        let histogram = |name: &str| figures.chain.get(name);
        let mean = |name: &str| histogram(name).and_then(ReportedHistogram::mean);
        let push_context = mean("push_context").unwrap_or(0.0);
        let queue = histogram("queue")?;
        Some(Self {
            // istiod's debounce time includes the push context.
            debounce: (mean("debounce")? - push_context).max(0.0),
            push_context,
            queue: queue.mean()?,
            // A push to a proxy consists of several types, each counted separately.
            push: histogram("push")?.sum / queue.count as f64,
        })
    }

    fn sum(&self) -> f64 {
        self.debounce + self.push_context + self.queue + self.push
    }
}

/// The mean of one istiod's convergence in seconds; `None` if there is none, or if a proxy was never reached.
fn measured_mean_s(result: &FleetResult, place: usize) -> Option<f64> {
    let times = result.by_istiod.get(place).map_or(&result.convergence_us, |own| &own.convergence_us);
    times.mean.filter(|_| times.count > 0).map(|mean_us| mean_us / 1e6)
}

fn where_the_time_went(
    result: &FleetResult,
    figures: &ControlPlaneFigures,
    place: usize,
    options: Options,
) -> Vec<String> {
    let (Some(stages), Some(measured)) = (Stages::from_figures(figures), measured_mean_s(result, place))
    else {
        return Vec::new();
    };
    let rest = measured - stages.sum();
    let time = |seconds: f64| format::time(seconds * 1e6);
    let rest = if rest >= 0.0 {
        format!("{} for the API's watch, the network and arrival", time(rest))
    } else {
        "nothing for the rest: what was waited for came before the end of its push".to_owned()
    };
    let of = if istiods(result).count() > 1 {
        format!(" at {}", result.istiod.get(place).map_or(ISTIOD, String::as_str))
    } else {
        String::new()
    };
    let text = format!(
        "Where the time went{of}: of {} on average, istiod's own figures have {} for debounce, {} for the push context, {} in \
         the push queue and {} for pushing to a proxy, which leaves {rest}.",
        time(measured),
        time(stages.debounce),
        time(stages.push_context),
        time(stages.queue),
        time(stages.push)
    );
    wrapped(&text, options)
}
