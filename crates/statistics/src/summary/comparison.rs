//! Comparison of modes with the same factors and load: times by their difference, throughput and CPU by their
//! ratio.

use super::pairs;
use super::tables::{Subject, Tables};
use super::verdicts::{Statement, Tested};
use crate::figure_table::Difference;
use results::{
    AddedLatency, AddedStreamTimes, AddedVerdicts, Conditions, Metric, Mode, ModeComparison, OwnedCellKey,
};

const TIMES: [Metric; 3] = [Metric::ResponseTimeP50Us, Metric::ResponseTimeP90Us, Metric::ResponseTimeP99Us];
const FIRST_EVENTS: [Metric; 3] = [Metric::FirstEventP50Us, Metric::FirstEventP90Us, Metric::FirstEventP99Us];
const EVENT_GAPS: [Metric; 3] = [Metric::EventGapP50Us, Metric::EventGapP90Us, Metric::EventGapP99Us];
const RATE: Metric = Metric::RateCompleted;
const CPU: Metric = Metric::ProxiesCpuCoresPer1000Rps;

/// Compares every mode with every earlier one that leads to the same server, under all conditions. Also
/// returns what each comparison tests.
pub(super) fn comparisons(
    cells: &[OwnedCellKey],
    modes: &[Mode],
    tables: &Tables<'_>,
) -> (Vec<ModeComparison>, Vec<Tested>) {
    let (mut comparisons, mut tested) = (Vec::new(), Vec::new());
    for (cell, other) in pairs::of_modes(cells, modes) {
        let (mode, than) = (cell.mode, other.mode);
        let Some((factors, load)) = cell.conditions().joined(other.conditions()) else { continue };
        let position = comparisons.len();
        // The response time of a stream is that of its tokens' schedule: it is not tested.
        let is_stream = load.stream.is_some();
        let mut test = |metric: Metric, difference: Option<Difference>| {
            let statement = Statement::Modes(metric, position);
            let is_tested = !(is_stream && TIMES.contains(&metric));
            tested.extend(
                difference.filter(|_| is_tested).map(|difference| Tested::new(statement, difference)),
            );
            difference.map(|difference| difference.estimate)
        };
        let of = |metrics: [Metric; 3]| {
            metrics.map(|metric| (metric, tables.difference(metric, cell.key(), other.key())))
        };
        let differences = of(TIMES);
        if differences.iter().all(|(_, difference)| difference.is_none()) {
            continue;
        }
        let mut added = |differences: [(Metric, Option<Difference>); 3]| {
            let [p50, p90, p99] = differences.map(|(metric, difference)| test(metric, difference));
            AddedLatency { p50, p90, p99, verdicts: AddedVerdicts::default() }
        };
        let response_time_us = added(differences);
        let streams = is_stream.then(|| AddedStreamTimes {
            first_event_us: added(of(FIRST_EVENTS)),
            event_gap_us: added(of(EVENT_GAPS)),
        });
        let change = |metric| tables.change(Subject::Path, metric, cell.key(), other.key());
        let is_closed_loop = load.is_closed_loop();
        // A bypassed sidecar is idle: a ratio to almost nothing is meaningless.
        let carry_requests = than.floor().is_some() && mode.floor().is_some();
        comparisons.push(ModeComparison {
            factors,
            load,
            mode,
            than,
            response_time_us,
            streams,
            throughput: test(RATE, is_closed_loop.then(|| change(RATE)).flatten()),
            throughput_verdict: None,
            proxy_cpu_per_request: test(CPU, carry_requests.then(|| change(CPU)).flatten()),
            proxy_cpu_verdict: None,
        });
    }
    (comparisons, tested)
}

/// What a mode adds to its baseline, looked up in the comparisons.
pub(super) fn added_to_floor(
    mode: Mode,
    at: Conditions<'_>,
    comparisons: &[ModeComparison],
) -> Option<AddedLatency> {
    with_floor(mode, at, comparisons).map(|comparison| comparison.response_time_us)
}

/// Like [`added_to_floor`], of streams.
pub(super) fn added_streams(
    mode: Mode,
    at: Conditions<'_>,
    comparisons: &[ModeComparison],
) -> Option<AddedStreamTimes> {
    with_floor(mode, at, comparisons)?.streams
}

/// Comparison of a mode with its baseline.
fn with_floor<'a>(
    mode: Mode,
    at: Conditions<'_>,
    comparisons: &'a [ModeComparison],
) -> Option<&'a ModeComparison> {
    let floor = mode.floor()?;
    let is_meant = |comparison: &&ModeComparison| {
        (comparison.mode, comparison.than) == (mode, floor) && comparison.conditions() == at
    };
    comparisons.iter().find(is_meant)
}
