//! CPU and memory of proxies and of the control plane.

use super::run::Run;
use crate::copies::{ComponentGroup, Spread, groups_of};
use crate::figure_table::Difference;
use results::finding::{Judged, Measured, OfCell, ProxyUsage, Usage, Value};
use results::{Cell, ComponentSummary, Finding, FindingVerdict, Metric, OwnedCellKey, Role};

/// The proxies of a cell, in the order of its components.
pub(super) fn proxies_of(cell: &Cell) -> Vec<&ComponentSummary> {
    cell.components.iter().filter(|component| component.role == Role::Proxy).collect()
}

/// Mean CPU per proxy of the cell, in cores; `None` if the cell has no proxy.
pub(super) fn cores_per_proxy(cell: &Cell) -> Option<f64> {
    let proxies = proxies_of(cell);
    let total: f64 = proxies.iter().map(|proxy| proxy.cpu_cores.estimate).sum();
    (!proxies.is_empty()).then(|| total / proxies.len() as f64)
}

/// CPU and memory of each proxy, by mode. For copies, `value` is the sum and `estimate` the median with its
/// range.
pub(super) fn proxies(run: &Run<'_>) -> Vec<Finding> {
    let of_cell = |cell| {
        let groups = groups_of(cell, proxies_of(cell));
        groups.into_iter().flat_map(move |group| usage_of_group(cell, &group))
    };
    run.reference_cells().flat_map(of_cell).map(Finding::ProxyUsage).collect()
}

fn usage_of_group(cell: &Cell, group: &ComponentGroup<'_>) -> Vec<ProxyUsage> {
    if let [proxy] = group.components.as_slice() {
        return usage(cell, proxy).map(ProxyUsage::from).collect();
    }
    let of_copies = |figure, spread: Spread| ProxyUsage {
        place: cell.key().into(),
        trials: None,
        subject: group.name.clone(),
        copies: Some(spread.copies),
        measured: Measured { value: spread.sum, ..Measured::new(figure, &spread.with_range()) },
    };
    let cores = Spread::new(group.components.iter().map(|proxy| proxy.cpu_cores.estimate));
    let memory = group.components.iter().filter_map(|proxy| proxy.estimate(Metric::MemoryBytes));
    let memory = Spread::new(memory.map(|bytes| bytes.estimate));
    let spreads = [(Metric::CpuCores, cores), (Metric::MemoryBytes, memory)].into_iter();
    spreads.filter_map(|(figure, spread)| Some(of_copies(figure, spread?))).collect()
}

/// CPU and memory of a component.
fn usage(cell: &Cell, component: &ComponentSummary) -> impl Iterator<Item = Usage> {
    let figures = [
        (Metric::CpuCores, Some(component.cpu_cores)),
        (Metric::MemoryBytes, component.estimate(Metric::MemoryBytes)),
    ];
    figures
        .into_iter()
        .filter_map(|(figure, estimate)| Some(Usage::about(cell, component.name.clone(), figure, &estimate?)))
}

/// The control plane at the reference load.
pub(super) fn control_plane(run: &Run<'_>) -> Vec<Finding> {
    let Some(cell) = run.reference_cells().next() else { return Vec::new() };
    let components = cell.components.iter().filter(|component| component.role == Role::ControlPlane);
    components.flat_map(|component| usage(cell, component)).map(Finding::ControlPlane).collect()
}

/// The CPU of a mode's proxies at its highest rate against the lowest, with the first value of each factor.
#[derive(Clone, Debug)]
pub(crate) struct CpuScaling {
    pub(crate) lowest: OwnedCellKey,
    pub(crate) highest: OwnedCellKey,
    /// The change, and how likely it is by chance if there is none.
    pub(crate) difference: Difference,
    /// Whether it is shown, among all that the run tests.
    pub(crate) verdict: FindingVerdict,
}

impl CpuScaling {
    fn is_shown(&self, lowest: &Cell, highest: &Cell) -> bool {
        let is_of_them = (self.lowest.key(), self.highest.key()) == (lowest.key(), highest.key());
        is_of_them && self.verdict == FindingVerdict::Shown
    }
}

/// CPU of a proxy at the lowest and the highest measured rate, only if all of them together are shown to differ, and where no
/// interval of the one touches the other's.
pub(super) fn scaling(run: &Run<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for mode in run.modes_with_proxies() {
        let mut cells: Vec<&Cell> = run.measured(mode).filter(|cell| cell.load.rate.is_some()).collect();
        // With the first value of each factor, so that only the rate differs.
        let factors = cells.first().map(|cell| &cell.factors);
        cells.retain(|cell| Some(&cell.factors) == factors);
        let (Some(lowest), Some(highest)) = (cells.first(), cells.last()) else { continue };
        let is_shown = run.cpu_scalings.iter().any(|scaling| scaling.is_shown(lowest, highest));
        if is_shown && is_apart(lowest, highest) {
            findings.extend(per_proxy(lowest).into_iter().chain(per_proxy(highest)).flatten());
        }
    }
    findings
}

fn is_apart(lowest: &Cell, highest: &Cell) -> bool {
    let is_above = |low: &ComponentSummary, high: &ComponentSummary| {
        let ends = low.cpu_cores.high.zip(high.cpu_cores.low);
        high.name == low.name && ends.is_some_and(|(below, above)| below < above)
    };
    let highest = proxies_of(highest);
    proxies_of(lowest).iter().all(|low| highest.iter().any(|high| is_above(low, high)))
}

fn per_proxy(cell: &Cell) -> [Option<Finding>; 2] {
    let proxies = proxies_of(cell);
    let per_1000_rps: f64 = proxies.iter().map(|proxy| proxy.cpu_cores_per_1000_rps.estimate).sum();
    let cores = cores_per_proxy(cell);
    let figures = [
        (Metric::CpuCores, cores),
        (Metric::CpuCoresPer1000Rps, cores.map(|_| per_1000_rps / proxies.len() as f64)),
    ];
    figures.map(|(figure, value)| {
        let figure = Value { figure, value: value? };
        Some(Finding::CpuScaling(OfCell::new(cell, Judged { figure, verdict: FindingVerdict::Shown })))
    })
}
