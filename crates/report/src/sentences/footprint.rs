//! Memory and configuration of proxies before the load.

use super::Context;
use results::finding::{About, Footprint, RejectedUpdates, Usage};
use results::{Cell, ConfigurationCounts, FindingVerdict, Role};
use statistics::words;

/// Memory before the first request, and the largest configuration.
pub(super) fn footprint(run: &Context<'_>, group: &[&Footprint]) -> String {
    let (mut amounts, mut configuration, mut is_most) = (Vec::new(), None, false);
    for part in group {
        match part {
            Footprint::Memory { usage, copies, verdict } => {
                amounts.push(amount(usage, *copies, amounts.is_empty()));
                is_most = *verdict == FindingVerdict::Shown;
            }
            Footprint::Configuration(usage) => configuration = Some(usage),
        }
    }
    let place = &group[0].usage().place;
    let cell = run.cell(place.key());
    let is_one = cell.is_some_and(|cell| proxies(cell) == 1);
    let share = match (is_most, is_one) {
        (false, _) => "",
        (true, true) => ", most of what it holds under load",
        (true, false) => ", most of what they hold under load",
    };
    let configuration = configuration.zip(cell).map(|(usage, cell)| largest(usage, cell, is_one));
    format!(
        "{}: before the first request in this run {}{share}.{}",
        words::sentence(words::mode(place.mode)),
        words::list(&amounts),
        configuration.map(|sentence| format!(" {sentence}")).unwrap_or_default()
    )
}

/// Example: `client-proxy holds 38 MB`, or `50 a-proxy 38 MB (35–41) each`. Only the first item has the verb.
fn amount(usage: &Usage, copies: Option<usize>, is_first: bool) -> String {
    let About { subject: name, figure } = &usage.content;
    let memory = words::memory(&figure.estimate);
    match (copies, is_first) {
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
fn largest(usage: &Usage, cell: &Cell, is_only_proxy: bool) -> String {
    let name = &usage.content.subject;
    let proxy = cell.components.iter().find(|component| component.name == *name);
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
    let size = words::size(usage.content.figure.value);
    format!("{} configuration is {size}: {}.", words::sentence(whose), words::list(&kinds))
}

/// Proxies that rejected an update.
pub(super) fn rejected_updates(updates: &RejectedUpdates) -> String {
    let RejectedUpdates { mode, subject: name, rejecting, proxies } = updates;
    if *rejecting > 1 {
        format!(
            "In mode {mode} {rejecting} of {proxies} proxies rejected updates of their configuration, {name} among them: they \
             do not hold what they were sent."
        )
    } else {
        format!(
            "In mode {mode} {name} rejected updates of its configuration: it does not hold what it was sent."
        )
    }
}
