//! Memory and configuration of proxies before the load.

use super::resources;
use super::run::Run;
use crate::copies::{Spread, groups_of};
use results::finding::{Footprint, RejectedUpdates, Usage};
use results::{Cell, ComponentSummary, Estimate, Finding, FindingVerdict, Metric};

/// If memory before the load is more than this fraction of that under load, the load is not what needs it.
const MAX_MEMORY_SHARE_BEFORE_LOAD: f64 = 0.5;

/// Per mode, the proxies' memory before the first request, and the largest configuration.
pub(super) fn before_the_load(run: &Run<'_>) -> Vec<Finding> {
    run.reference_cells().flat_map(of_cell).map(Finding::Footprint).collect()
}

fn of_cell(cell: &Cell) -> Vec<Footprint> {
    let proxies = resources::proxies_of(cell);
    let known: Vec<&ComponentSummary> = proxies
        .iter()
        .copied()
        .filter(|proxy| proxy.estimate(Metric::MemoryBeforeLoadBytes).is_some())
        .collect();
    let is_theirs = known.len() == proxies.len()
        && known.iter().all(|proxy| {
            let moments =
                proxy.estimate(Metric::MemoryBeforeLoadBytes).zip(proxy.estimate(Metric::MemoryBytes));
            moments.is_some_and(|(before, under)| is_most(&before, &under))
        });
    let verdict = if is_theirs { FindingVerdict::Shown } else { FindingVerdict::NotShown };
    let mut findings = Vec::new();
    for group in groups_of(cell, known) {
        let before =
            group.components.iter().filter_map(|proxy| proxy.estimate(Metric::MemoryBeforeLoadBytes));
        let before: Vec<Estimate> = before.collect();
        let estimate = match before.as_slice() {
            [only] => Some(*only),
            copies => {
                Spread::new(copies.iter().map(|bytes| bytes.estimate)).map(|spread| spread.with_range())
            }
        };
        findings.extend(estimate.map(|estimate| Footprint::Memory {
            usage: Usage::about(cell, group.name.clone(), Metric::MemoryBeforeLoadBytes, &estimate),
            copies: (before.len() > 1).then_some(before.len()),
            verdict,
        }));
    }
    if !findings.is_empty() {
        findings.extend(largest_configuration(cell, &proxies));
    }
    findings
}

/// The largest configuration of any proxy.
fn largest_configuration(cell: &Cell, proxies: &[&ComponentSummary]) -> Option<Footprint> {
    let (proxy, size) = proxies
        .iter()
        .filter_map(|proxy| Some((proxy, proxy.configuration.as_ref()?.size_bytes)))
        .max_by(|(_, one), (_, other)| one.estimate.total_cmp(&other.estimate))?;
    Some(Footprint::Configuration(Usage::about(
        cell,
        proxy.name.clone(),
        Metric::ConfigurationSizeBytes,
        &size,
    )))
}

/// True if `before` is more than [`MAX_MEMORY_SHARE_BEFORE_LOAD`] of `under`, allowing for both intervals.
fn is_most(before: &Estimate, under: &Estimate) -> bool {
    before.low.unwrap_or(before.estimate)
        > MAX_MEMORY_SHARE_BEFORE_LOAD * under.high.unwrap_or(under.estimate)
}

/// Proxies that rejected an update, once per mode.
pub(super) fn rejected_updates(run: &Run<'_>) -> Vec<Finding> {
    let mut known: Vec<RejectedUpdates> = Vec::new();
    for cell in run.summary.cells.iter().filter(|cell| cell.valid > 0) {
        let rejected = |proxy: &&ComponentSummary| {
            let updates = proxy.configuration.and_then(|held| held.counts.rejected_updates);
            updates.is_some_and(|updates| updates > 0)
        };
        for group in groups_of(cell, resources::proxies_of(cell)) {
            let rejecting: Vec<&ComponentSummary> =
                group.components.iter().copied().filter(rejected).collect();
            let Some(first) = rejecting.first() else { continue };
            let one = RejectedUpdates {
                mode: cell.mode,
                subject: first.name.clone(),
                rejecting: rejecting.len(),
                proxies: group.components.len(),
            };
            let key = |of: &RejectedUpdates| (of.mode, of.subject.clone(), of.rejecting);
            if !known.iter().any(|other| key(other) == key(&one)) {
                known.push(one);
            }
        }
    }
    known.into_iter().map(Finding::RejectedUpdates).collect()
}
