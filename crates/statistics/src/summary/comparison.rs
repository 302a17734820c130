//! Comparison of modes with the same factors and load: times by their difference, throughput and CPU by their
//! ratio.

use super::pairs;
use super::tables::{Subject, Tables};
use super::verdicts::{Statement, Tested};
use crate::figure_table::Difference;
use results::{AddedLatency, AddedVerdicts, Conditions, Metric, Mode, ModeComparison, OwnedCellKey};

const TIMES: [Metric; 3] = [Metric::ResponseTimeP50Us, Metric::ResponseTimeP90Us, Metric::ResponseTimeP99Us];
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
        let mut test = |metric: Metric, difference: Option<Difference>| {
            let statement = Statement::Modes(metric, position);
            tested.extend(difference.map(|difference| Tested::new(statement, difference)));
            difference.map(|difference| difference.estimate)
        };
        let differences = TIMES.map(|metric| tables.difference(metric, cell.key(), other.key()));
        if differences.iter().all(Option::is_none) {
            continue;
        }
        let change = |metric| tables.change(Subject::Path, metric, cell.key(), other.key());
        let is_closed_loop = load.rate.is_none();
        // A bypassed sidecar is idle: a ratio to almost nothing is meaningless.
        let carry_requests = than.floor().is_some() && mode.floor().is_some();
        comparisons.push(ModeComparison {
            factors,
            load,
            mode,
            than,
            response_time_us: AddedLatency {
                p50: test(TIMES[0], differences[0]),
                p90: test(TIMES[1], differences[1]),
                p99: test(TIMES[2], differences[2]),
                verdicts: AddedVerdicts::default(),
            },
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
    let floor = mode.floor()?;
    let is_meant = |comparison: &&ModeComparison| {
        (comparison.mode, comparison.than) == (mode, floor) && comparison.conditions() == at
    };
    comparisons.iter().find(is_meant).map(|comparison| comparison.response_time_us)
}
