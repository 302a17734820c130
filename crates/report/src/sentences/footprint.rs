//! Memory and configuration of proxies before the load.

use super::Context;
use super::said::Said;
use results::finding::{Footprint, RejectedUpdates, Usage};
use results::{Cell, ConfigurationCounts, FindingVerdict, Role};
use statistics::words;

/// More proxies than this are summed up in the line.
const MAX_LISTED: usize = 2;

/// Memory before the first request, and the largest configuration.
pub(super) fn footprint(run: &Context<'_>, group: &[&Footprint]) -> Said {
    let (mut held, mut configuration, mut is_most) = (Vec::new(), None, false);
    for part in group {
        match part {
            Footprint::Memory { usage, copies, verdict } => {
                held.push((usage, *copies));
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
        (true, true) => "; most of what it holds under load",
        (true, false) => "; most of what they hold under load",
    };
    let configuration = configuration.zip(cell).map(|(usage, cell)| largest(usage, cell, is_one));
    let names: Vec<&str> = held.iter().map(|(usage, _)| usage.content.subject.as_str()).collect();
    let amounts = |names: &[String]| {
        let amounts = held.iter().zip(names).enumerate();
        let amounts =
            amounts.map(|(index, ((usage, copies), name))| amount(usage, name, *copies, index == 0));
        words::list(&amounts.collect::<Vec<_>>())
    };
    let mode = words::sentence(words::mode(place.mode));
    let text = |held: &str| format!("{mode} before the first request: {held}{share}.");
    let said = match held.len() {
        0..=MAX_LISTED => Said::with_names(&names, |names| text(&amounts(names))),
        _ => {
            let medians = held.iter().map(|(usage, _)| usage.content.figure.estimate.estimate);
            let (least, greatest) =
                (medians.clone().fold(f64::INFINITY, f64::min), medians.fold(0.0, f64::max));
            let all = held.iter().map(|(_, copies)| copies.unwrap_or(1)).sum::<usize>();
            let (least, greatest) = (words::memory_value(least), words::memory_value(greatest));
            let each = if least == greatest { least } else { format!("{least} to {greatest}") };
            let owned: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let listed = words::sentence(&amounts(&owned));
            Said::from(text(&format!("{all} proxies hold {each} each"))).and(&format!("{listed}."))
        }
    };
    said.and(&configuration.unwrap_or_default())
}

/// Example: `client-proxy holds 38 MB`, or `50 a-proxy 38 MB (35–41) each`. Only the first item has the verb.
fn amount(usage: &Usage, name: &str, copies: Option<usize>, is_first: bool) -> String {
    let memory = words::memory(&usage.content.figure.estimate);
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
pub(super) fn rejected_updates(updates: &RejectedUpdates) -> Said {
    let RejectedUpdates { mode, subject, rejecting, proxies } = updates;
    Said::with_names(&[subject], |names| match (rejecting, &names[0]) {
        (2.., name) => format!(
            "In mode {mode} {rejecting} of {proxies} proxies rejected updates of their configuration, such as {name}; they do \
             not hold what they were sent."
        ),
        (_, name) => {
            format!("In mode {mode} {name} rejected updates of its configuration; it lacks what istiod sent.")
        }
    })
}
