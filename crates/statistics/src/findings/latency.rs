//! What the modes add to the latency of a request.

use super::run::Run;
use super::{pauses, resources};
use crate::curve::{Distribution, merged};
use results::{Cell, Figure, Finding, FindingKind, FindingVerdict, Metric, Mode, TimeFigure};

/// A response time above this multiple of the service time hides waiting, if it is at least a millisecond.
const HIDES_FACTOR: f64 = 3.0;
const MIN_HIDDEN_US: f64 = 1000.0;

/// The median of the first mode with proxies and what it adds, then the CPU of a proxy. Without such a mode,
/// the median of the baseline; without a valid trial, a finding without a mode.
pub(super) fn headline(run: &Run<'_>) -> Vec<Finding> {
    for mode in run.modes_with_proxies() {
        let Some(cell) = run.reference_cell(mode) else { continue };
        if let Some(median) = median(cell) {
            let cpu = resources::cores_per_proxy(cell).map(|cores| {
                Finding::of_cell(FindingKind::Headline, cell).with_value(Metric::CpuCores, cores)
            });
            return [median].into_iter().chain(cpu).collect();
        }
    }
    let floors = [Mode::None, Mode::EgressBypass].into_iter();
    let floor = floors.filter_map(|mode| run.reference_cell(mode)).find_map(median);
    let nothing = || Finding {
        verdict: Some(FindingVerdict::CannotTell),
        n: Some(0),
        of: Some(run.trials.all().len()),
        ..Finding::new(FindingKind::Headline)
    };
    vec![floor.unwrap_or_else(nothing)]
}

fn median(cell: &Cell) -> Option<Finding> {
    let times = cell.response_time_us?;
    let finding = Finding::of_cell(FindingKind::Headline, cell);
    let Some(median) = times.p50 else {
        // The median falls among requests without a response.
        let verdict = Some(FindingVerdict::CannotTell);
        return Some(Finding { figure: Some(Metric::ResponseTimeP50Us.into()), verdict, ..finding });
    };
    let finding = finding.with_figure(Metric::ResponseTimeP50Us, &median);
    let added = cell.added_us.and_then(|added| added.judged(TimeFigure::P50));
    Some(match (added, cell.mode.floor()) {
        (Some((added, verdict)), Some(floor)) => finding.against(floor, &added, verdict),
        _ => finding,
    })
}

/// Median and 99th percentile of what each mode adds; the latter only with enough requests beyond it.
pub(super) fn added(run: &Run<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for mode in run.modes_with_proxies() {
        let Some(cell) = run.reference_cell(mode) else { continue };
        let (Some(added), Some(times), Some(floor)) = (cell.added_us, cell.response_time_us, mode.floor())
        else {
            continue;
        };
        let finding = |name, figure: TimeFigure| {
            let (added, verdict) = added.judged(figure)?;
            let finding =
                Finding::of_cell(FindingKind::AddedLatency, cell).with_figure(name, &times.figure(figure)?);
            Some(finding.against(floor, &added, verdict))
        };
        findings.extend(finding(Metric::ResponseTimeP50Us, TimeFigure::P50));
        if run.resolves(cell, Figure::P99) {
            let share = pauses::share(run, cell, TimeFigure::P99);
            findings.extend(
                finding(Metric::ResponseTimeP99Us, TimeFigure::P99).map(|tail| Finding { share, ..tail }),
            );
        }
    }
    findings
}

/// Cells whose service time looks good because requests waited before they were sent: response time, then
/// service time.
pub(super) fn hidden_waiting(run: &Run<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    // If the generator itself was late in most trials, or requests had no response, the service is not to
    // blame.
    let is_known = |cell: &&Cell| {
        let p99 = cell.response_time_us.and_then(|times| times.p99);
        p99.is_some_and(|p99| 2 * p99.n > cell.valid)
    };
    for cell in run.summary.cells.iter().filter(|cell| cell.load.rate.is_some()).filter(is_known) {
        let (response_us, service_us) = (
            whole_p99(run, cell, Distribution::ResponseTime),
            whole_p99(run, cell, Distribution::ServiceTime),
        );
        if response_us > service_us * HIDES_FACTOR && response_us > service_us + MIN_HIDDEN_US {
            let finding =
                |figure, us| Finding::of_cell(FindingKind::HiddenWaiting, cell).with_value(figure, us);
            findings.push(finding(Metric::ResponseTimeP99Us, response_us));
            findings.push(finding(Metric::ServiceTimeP99Us, service_us));
        }
    }
    findings
}

/// The 99th percentile over all valid trials of a cell; the mean over trials if a histogram cannot be
/// decoded.
fn whole_p99(run: &Run<'_>, cell: &Cell, distribution: Distribution) -> f64 {
    match merged(run.trials, cell.key(), distribution) {
        Ok(Some(histogram)) => histogram.percentile_us(99.0),
        _ => {
            let percentiles: Vec<f64> = run
                .trials
                .valid_results(cell.key())
                .filter_map(|result| match distribution {
                    Distribution::ResponseTime => result.response_time_us.p99,
                    Distribution::ServiceTime => result.service_time_us.p99,
                    Distribution::ScheduleLag => result.schedule_lag_us.p99,
                })
                .collect();
            percentiles.iter().sum::<f64>() / percentiles.len().max(1) as f64
        }
    }
}
