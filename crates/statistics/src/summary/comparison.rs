//! Comparison of modes with the same factors and load: times by their difference, throughput and CPU by their
//! ratio.

use super::tables::Tables;
use super::verdicts::{Statement, Tested};
use crate::figure_table::Difference;
use results::{AddedLatency, AddedVerdicts, Conditions, Mode, ModeComparison, TimeFigure};

/// Compares every mode with every earlier one that leads to the same server, under all conditions. Also
/// returns what each comparison tests.
pub(super) fn comparisons(
    conditions: &[Conditions<'_>],
    modes: &[Mode],
    tables: &Tables<'_>,
) -> (Vec<ModeComparison>, Vec<Tested>) {
    let pairs = || {
        let later = modes.iter().enumerate();
        later.flat_map(|(index, mode)| modes[..index].iter().map(move |than| (*mode, *than)))
    };
    let comparable =
        |at| pairs().filter(|(mode, than)| mode.compares_with(*than)).map(move |pair| (at, pair));
    let (mut comparisons, mut tested) = (Vec::new(), Vec::new());
    for (at, (mode, than)) in conditions.iter().flat_map(|at| comparable(*at)) {
        let position = comparisons.len();
        let mut test = |statement: fn(usize) -> Statement, difference: Option<Difference>| {
            tested.extend(difference.map(|difference| Tested { statement: statement(position), difference }));
            difference.map(|difference| difference.estimate)
        };
        let added = |figure| tables.added(at.cell(mode), at.cell(than), figure);
        let differences = [TimeFigure::P50, TimeFigure::P90, TimeFigure::P99].map(added);
        if differences.iter().all(Option::is_none) {
            continue;
        }
        let in_closed_loop = || tables.throughput_change(at.cell(mode), at.cell(than));
        // A bypassed sidecar is idle: a ratio to almost nothing is meaningless.
        let carry_requests = than.floor().is_some() && mode.floor().is_some();
        let proxy_cpu = || tables.proxy_cpu_change(at.cell(mode), at.cell(than));
        comparisons.push(ModeComparison {
            factors: at.factors.clone(),
            load: at.load.clone(),
            mode,
            than,
            response_time_us: AddedLatency {
                p50: test(Statement::P50, differences[0]),
                p90: test(Statement::P90, differences[1]),
                p99: test(Statement::P99, differences[2]),
                verdicts: AddedVerdicts::default(),
            },
            throughput: test(Statement::Throughput, at.load.rate.is_none().then(in_closed_loop).flatten()),
            throughput_verdict: None,
            proxy_cpu_per_request: test(Statement::ProxyCpu, carry_requests.then(proxy_cpu).flatten()),
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
