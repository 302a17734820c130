//! What the modes add to the latency of a request.

use super::run::Run;
use super::{pauses, resources};
use crate::curve::merged;
use crate::trials::{are_enough, usable};
use results::finding::{Added, Against, Headline, Nothing, OfCell, Trials, Unanswered, Value};
use results::{Cell, Clock, Figure, Finding, FindingVerdict, Metric, Mode};

/// A response time above this multiple of the service time hides waiting, if it is at least a millisecond.
const HIDES_FACTOR: f64 = 3.0;
const MIN_HIDDEN_US: f64 = 1000.0;

/// A percentile of the first mode with proxies and what it adds, then the CPU of a proxy. Without such a mode,
/// that of the baseline; without a valid trial, a finding without a mode.
pub(super) fn headline(run: &Run<'_>, figure: Metric) -> Vec<Finding> {
    for mode in run.modes_with_proxies() {
        let Some(cell) = run.reference_cell(mode) else { continue };
        if let Some(median) = percentile(cell, figure) {
            let cpu = resources::cores_per_proxy(cell).map(|cores| {
                Headline::Cpu(OfCell::new(cell, Value { figure: Metric::CpuCores, value: cores }))
            });
            return [Some(median), cpu].into_iter().flatten().map(Finding::Headline).collect();
        }
    }
    let floors = [Mode::None, Mode::EgressBypass].into_iter();
    let floor = floors.filter_map(|mode| run.reference_cell(mode)).find_map(|cell| percentile(cell, figure));
    let trials = Trials { n: 0, of: run.trials.all().len() };
    let nothing = Headline::Nothing(Nothing { verdict: FindingVerdict::CannotTell, trials });
    vec![Finding::Headline(floor.unwrap_or(nothing))]
}

fn percentile(cell: &Cell, figure: Metric) -> Option<Headline> {
    let (figure, times) = (figure.under(&cell.load), cell.leading_times()?);
    let Some(value) = times.figure(figure.spoiled_by()) else {
        let unanswered = Unanswered { figure, verdict: FindingVerdict::CannotTell };
        return Some(Headline::Unanswered(OfCell::new(cell, unanswered)));
    };
    let added = added_to_floor(cell, figure).map(Headline::Added);
    Some(added.unwrap_or_else(|| Headline::Measured(OfCell::measured(cell, figure, &value))))
}

/// A percentile of a cell and what its mode adds to the baseline's; `None` if either is unknown.
pub(super) fn added_to_floor(cell: &Cell, figure: Metric) -> Option<OfCell<Added>> {
    let clock = figure.clock()?;
    let value = cell.times(clock)?.figure(figure.spoiled_by())?.estimate;
    let (difference, verdict) = cell.added(clock)?.judged(figure.spoiled_by())?;
    let added = Against { against: cell.mode.floor()?, difference, verdict };
    let added = Added { value: Value { figure, value }, added, share: None };
    Some(OfCell::new(cell, added).resting_on(&difference))
}

/// The 99th percentile of the time between the events of streams and what a mode adds to it; `None` without streams, and with
/// too few gaps.
pub(super) fn added_between_events(cell: &Cell) -> Option<OfCell<Added>> {
    let gaps = cell.streams.as_ref()?.gaps_beyond_p99;
    added_to_floor(cell, Metric::EventGapP99Us).filter(|_| are_enough(gaps as f64))
}

/// Median and 99th percentile of what each mode adds; the latter only with enough requests beyond it. Of streams the median
/// until the first event, and the 99th percentile between events.
pub(super) fn added(run: &Run<'_>) -> Vec<Finding> {
    let of_cell = |cell: &Cell| {
        let median = added_to_floor(cell, Metric::ResponseTimeP50Us.under(&cell.load));
        if cell.load.stream.is_some() {
            return [median, added_between_events(cell)].into_iter().flatten();
        }
        let mut tail =
            added_to_floor(cell, Metric::ResponseTimeP99Us).filter(|_| run.resolves(cell, Figure::P99));
        if let Some(tail) = &mut tail {
            tail.content.share = pauses::share(run, cell, Figure::P99);
        }
        [median, tail].into_iter().flatten()
    };
    run.reference_cells().flat_map(of_cell).map(Finding::AddedLatency).collect()
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
        let [response_us, service_us] =
            [Clock::ResponseTime, Clock::ServiceTime].map(|clock| whole_p99(run, cell, clock));
        if response_us > service_us * HIDES_FACTOR && response_us > service_us + MIN_HIDDEN_US {
            let finding = |figure, value| Finding::HiddenWaiting(OfCell::new(cell, Value { figure, value }));
            findings.push(finding(Metric::ResponseTimeP99Us, response_us));
            findings.push(finding(Metric::ServiceTimeP99Us, service_us));
        }
    }
    findings
}

/// The 99th percentile over all valid trials of a cell; the mean over trials if a histogram cannot be
/// decoded.
fn whole_p99(run: &Run<'_>, cell: &Cell, clock: Clock) -> f64 {
    match merged(run.trials, cell.key(), clock) {
        Ok(Some(histogram)) => histogram.percentile_us(99.0),
        _ => {
            let valid = usable(run.trials.of(cell.key()), Figure::P50).into_iter();
            let percentiles: Vec<f64> = valid.filter_map(|trial| clock.of(trial)?.p99).collect();
            percentiles.iter().sum::<f64>() / percentiles.len().max(1) as f64
        }
    }
}
