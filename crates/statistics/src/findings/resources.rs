//! Sentences on what the proxies use.

use super::run::Run;
use super::words;
use crate::copies::{ComponentGroup, Spread, groups_of};
use experiment::Mode;
use experiment::mesh_settings::ZtunnelPlacement;
use experiment::schema::{Cell, ComponentSummary, Role};

/// The proxies of a cell, in the order of its components.
pub(super) fn proxies_of(cell: &Cell) -> Vec<&ComponentSummary> {
    cell.components.iter().filter(|component| component.role == Role::Proxy).collect()
}

/// Mean CPU of a proxy of the cell, cores; nothing where the cell has none.
pub(super) fn cores_a_proxy(cell: &Cell) -> Option<f64> {
    let proxies = proxies_of(cell);
    let total: f64 = proxies.iter().map(|proxy| proxy.cpu_cores.estimate).sum();
    (!proxies.is_empty()).then(|| total / proxies.len() as f64)
}

/// Such as ` and 110 MB (108–112), 29 MB of it anonymous`.
fn memory(proxy: &ComponentSummary) -> String {
    let all = proxy.memory_bytes.map(|bytes| format!(" and {}", words::memory(&bytes)));
    let anonymous = proxy.memory_anonymous_bytes;
    let anonymous =
        anonymous.map(|bytes| format!(", {} of it anonymous", words::memory_value(bytes.estimate)));
    all.map(|all| all + &anonymous.unwrap_or_default()).unwrap_or_default()
}

/// Such as `50 a-proxy use 2.5 cores and 1 900 MB, each 0.05 cores (0.04–0.06 between them) and 38 MB (35–41)`: medians of
/// copies with their range.
fn usage_of_several(group: &ComponentGroup<'_>) -> String {
    let cores = Spread::new(group.components.iter().map(|proxy| proxy.cpu_cores.estimate));
    let memory = group.components.iter().filter_map(|proxy| proxy.memory_bytes);
    let memory = Spread::new(memory.map(|bytes| bytes.estimate));
    let joined =
        |figures: [Option<String>; 2]| words::list(&figures.into_iter().flatten().collect::<Vec<_>>());
    let sums = [
        cores.map(|spread| words::cores_value(spread.sum)),
        memory.map(|spread| words::memory_value(spread.sum)),
    ];
    let each = [
        cores.map(|spread| words::cores(&spread.with_range())),
        memory.map(|spread| words::memory(&spread.with_range())),
    ];
    let (count, name) = (group.components.len(), &group.name);
    format!("{count} {name} use {} in all, each {}", joined(sums), joined(each))
}

/// CPU and memory of each proxy, by mode.
pub(super) fn proxies(run: &Run<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for mode in run.modes_with_proxies() {
        let Some(cell) = run.reference_cell(mode) else { continue };
        let proxies: Vec<String> = groups_of(cell, proxies_of(cell))
            .iter()
            .map(|group| match group.components.as_slice() {
                [proxy] => {
                    let memory = memory(proxy);
                    let whose =
                        if serves_both_sides(run, mode, proxy) { " (one for both sides)" } else { "" };
                    format!("{}{whose} uses {}{memory}", proxy.name, words::cores(&proxy.cpu_cores))
                }
                _ => usage_of_several(group),
            })
            .collect();
        if !proxies.is_empty() {
            sentences.push(format!("{}: {}.", words::sentence(&words::cell(cell)), proxies.join("; ")));
        }
    }
    sentences
}

/// Whether the client's and the server's node proxy are one and the same.
pub(super) fn serves_both_sides(run: &Run<'_>, mode: Mode, proxy: &ComponentSummary) -> bool {
    let is_shared = run.experiment.istio.ztunnel == ZtunnelPlacement::Shared;
    mode.is_ambient() && is_shared && proxy.name == "ztunnel"
}

/// What configures the proxies, under the load that the headline speaks of.
pub(super) fn control_plane(run: &Run<'_>) -> Option<String> {
    let cell = run.modes_with_proxies().into_iter().find_map(|mode| run.reference_cell(mode))?;
    let used: Vec<String> = cell
        .components
        .iter()
        .filter(|component| component.role == Role::ControlPlane)
        .map(|component| {
            let memory = component
                .memory_bytes
                .map_or(String::new(), |bytes| format!(" and {}", words::memory(&bytes)));
            format!("{} {}{memory}", component.name, words::cores(&component.cpu_cores))
        })
        .collect();
    (!used.is_empty())
        .then(|| format!("The control plane during {}: {}.", words::cell(cell), used.join("; ")))
}

/// How a proxy's CPU goes with the rate, where the run shows it: the lowest and the highest measured rate, and only where
/// no interval of the one touches the other's.
pub(super) fn scaling(run: &Run<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for mode in run.modes_with_proxies() {
        let mut cells: Vec<&Cell> = run.measured(mode).filter(|cell| cell.load.rate.is_some()).collect();
        // With the first value of each factor: a rate is set against another alone.
        let factors = cells.first().map(|cell| &cell.factors);
        cells.retain(|cell| Some(&cell.factors) == factors);
        let (Some(lowest), Some(highest)) = (cells.first(), cells.last()) else { continue };
        let (Some(low_cores), Some(high_cores)) = (cores_a_proxy(lowest), cores_a_proxy(highest)) else {
            continue;
        };
        let apart = proxies_of(lowest).iter().all(|low| {
            proxies_of(highest).iter().any(|high| {
                high.name == low.name
                    && matches!((low.cpu_cores.high, high.cpu_cores.low), (Some(below), Some(above)) if below < above)
            })
        });
        if apart {
            let a_thousand = |cell: &Cell| {
                let proxies = proxies_of(cell);
                proxies.iter().map(|proxy| proxy.cpu_cores_per_1000_rps.estimate).sum::<f64>()
                    / proxies.len() as f64
            };
            sentences.push(format!(
                "With {} a proxy uses {} {} and {} {}, that is {} and {} for every 1000 requests/s.",
                words::subject(mode),
                words::cores_value(low_cores),
                words::under(lowest),
                words::cores_value(high_cores),
                words::under(highest),
                words::cores_value(a_thousand(lowest)),
                words::cores_value(a_thousand(highest))
            ));
        }
    }
    sentences
}
