//! CPU and memory of proxies and of the control plane.

use super::run::Run;
use crate::copies::{ComponentGroup, Spread, groups_of};
use crate::figure_table::Difference;
use experiment::plan::PlannedCell;
use results::{Cell, ComponentSummary, Finding, FindingKind, FindingVerdict, Metric, Role};

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
    let cells = run.modes_with_proxies().into_iter().filter_map(|mode| run.reference_cell(mode));
    cells
        .flat_map(|cell| {
            let groups = groups_of(cell, proxies_of(cell));
            groups.into_iter().flat_map(move |group| usage(cell, &group))
        })
        .collect()
}

fn usage(cell: &Cell, group: &ComponentGroup<'_>) -> Vec<Finding> {
    let finding = || Finding::of_cell(FindingKind::ProxyUsage, cell).about(&group.name);
    if let [proxy] = group.components.as_slice() {
        return usage_of_one(finding, proxy);
    }
    let of_copies = |figure, spread: Spread| Finding {
        value: Some(spread.sum),
        candidates: Some(spread.copies),
        n: None,
        of: None,
        ..finding().with_figure(figure, &spread.with_range())
    };
    let cores = Spread::new(group.components.iter().map(|proxy| proxy.cpu_cores.estimate));
    let memory = group.components.iter().filter_map(|proxy| proxy.estimate(Metric::MemoryBytes));
    let memory = Spread::new(memory.map(|bytes| bytes.estimate));
    let cores = cores.map(|spread| of_copies(Metric::CpuCores, spread));
    cores.into_iter().chain(memory.map(|spread| of_copies(Metric::MemoryBytes, spread))).collect()
}

fn usage_of_one(finding: impl Fn() -> Finding, component: &ComponentSummary) -> Vec<Finding> {
    let memory = component
        .estimate(Metric::MemoryBytes)
        .map(|bytes| finding().with_figure(Metric::MemoryBytes, &bytes));
    [finding().with_figure(Metric::CpuCores, &component.cpu_cores)].into_iter().chain(memory).collect()
}

/// The control plane at the reference load.
pub(super) fn control_plane(run: &Run<'_>) -> Vec<Finding> {
    let cell = run.modes_with_proxies().into_iter().find_map(|mode| run.reference_cell(mode));
    let Some(cell) = cell else { return Vec::new() };
    let components = cell.components.iter().filter(|component| component.role == Role::ControlPlane);
    components
        .flat_map(|component| {
            let finding = || Finding::of_cell(FindingKind::ControlPlane, cell).about(&component.name);
            usage_of_one(finding, component)
        })
        .collect()
}

/// The CPU of a mode's proxies at its highest rate against the lowest, with the first value of each factor.
#[derive(Clone, Debug)]
pub(crate) struct CpuScaling {
    pub(crate) lowest: PlannedCell,
    pub(crate) highest: PlannedCell,
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
    let finding = |figure, value| Finding {
        verdict: Some(FindingVerdict::Shown),
        ..Finding::of_cell(FindingKind::CpuScaling, cell).with_value(figure, value)
    };
    let cores = cores_per_proxy(cell);
    [
        cores.map(|cores| finding(Metric::CpuCores, cores)),
        cores.map(|_| finding(Metric::CpuCoresPer1000Rps, per_1000_rps / proxies.len() as f64)),
    ]
}
