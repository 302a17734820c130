//! Memory and configuration of proxies before the load.

use super::Context;
use results::{Cell, ConfigurationCounts, Finding, Metric, Role};
use statistics::words;

/// Memory before the first request, and the largest configuration.
pub(super) fn footprint(run: &Context<'_>, group: &[&Finding]) -> String {
    let (memory, configuration): (Vec<&Finding>, Vec<&Finding>) =
        group.iter().partition(|finding| finding.is_of(Metric::MemoryBeforeLoadBytes));
    let amounts: Vec<String> =
        memory.iter().enumerate().map(|(index, finding)| amount(finding, index == 0)).collect();
    let cell = run.cell(group[0]);
    let is_one = cell.is_some_and(|cell| proxies(cell) == 1);
    let share = match (memory.first().is_some_and(|finding| finding.is_shown()), is_one) {
        (false, _) => "",
        (true, true) => ", most of what it holds under load",
        (true, false) => ", most of what they hold under load",
    };
    let configuration = configuration.first().zip(cell).map(|(finding, cell)| largest(finding, cell, is_one));
    format!(
        "{}: before the first request in this run {}{share}.{}",
        words::sentence(group[0].mode.map_or("", words::mode)),
        words::list(&amounts),
        configuration.map(|sentence| format!(" {sentence}")).unwrap_or_default()
    )
}

/// Example: `client-proxy holds 38 MB`, or `50 a-proxy 38 MB (35–41) each`. Only the first item has the verb.
fn amount(finding: &Finding, is_first: bool) -> String {
    let name = finding.subject.as_deref().unwrap_or_default();
    let memory = finding.estimate.as_ref().map(words::memory).unwrap_or_default();
    match (finding.candidates, is_first) {
        (None, true) => format!("{name} holds {memory}"),
        (None, false) => format!("{name} {memory}"),
        (Some(copies), true) => format!("{copies} {name} hold {memory} each"),
        (Some(copies), false) => format!("{copies} {name} {memory} each"),
    }
}

fn proxies(cell: &Cell) -> usize {
    cell.components.iter().filter(|component| component.role == Role::Proxy).count()
}

/// The largest configuration of any proxy.
fn largest(finding: &Finding, cell: &Cell, is_only_proxy: bool) -> String {
    let name = finding.subject.as_deref().unwrap_or_default();
    let proxy = cell.components.iter().find(|component| component.name == name);
    let counts = proxy.and_then(|proxy| proxy.configuration).map(|held| held.counts).unwrap_or_default();
    let kinds = [
        ("clusters", counts.clusters),
        ("routes", counts.routes),
        ("endpoints", counts.endpoints),
        ("services", counts.services),
        ("workloads", counts.workloads),
    ];
    let kinds = kinds.into_iter().filter_map(|(kind, count)| Some((kind, count?)));
    let kinds: Vec<String> =
        kinds.map(|(kind, count)| format!("{count} {}", ConfigurationCounts::noun(kind, count))).collect();
    let whose = if is_only_proxy { "its" } else { &format!("{name}'s") };
    let size = words::size(finding.value.unwrap_or(f64::NAN));
    format!("{} configuration is {size}: {}.", words::sentence(whose), words::list(&kinds))
}

/// Proxies that rejected an update.
pub(super) fn rejected_updates(finding: &Finding) -> String {
    let mode = finding.mode.map_or("", |mode| mode.name());
    let name = finding.subject.as_deref().unwrap_or_default();
    match (finding.n, finding.of) {
        (Some(rejecting), Some(all)) if rejecting > 1 => format!(
            "In mode {mode} {rejecting} of {all} proxies rejected updates of their configuration, {name} among them: they do \
             not hold what they were sent."
        ),
        _ => format!(
            "In mode {mode} {name} rejected updates of its configuration: it does not hold what it was sent."
        ),
    }
}
