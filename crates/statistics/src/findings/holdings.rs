//! Sentences on what the proxies hold.

use super::run::Run;
use super::{resources, words};
use crate::copies::{ComponentGroup, Spread, groups_of};
use experiment::schema::{Cell, ComponentSummary, ConfigurationCounts, Estimate};

/// Memory that is there before the load is more than this share of that under load: it is not the load's.
const MOST: f64 = 0.5;

/// For each mode, how much of the proxies' memory is there before the first request, and what the largest configuration
/// is.
pub(super) fn before_the_load(run: &Run<'_>) -> Vec<String> {
    let cells = run.modes_with_proxies().into_iter().filter_map(|mode| run.reference_cell(mode));
    cells.filter_map(sentence).collect()
}

fn sentence(cell: &Cell) -> Option<String> {
    let proxies = resources::proxies_of(cell);
    let held: Vec<&ComponentSummary> =
        proxies.iter().copied().filter(|proxy| proxy.memory_before_load_bytes.is_some()).collect();
    let is_theirs = held.len() == proxies.len()
        && held.iter().all(|proxy| {
            let moments = proxy.memory_before_load_bytes.zip(proxy.memory_bytes);
            moments.is_some_and(|(before, under)| is_most(&before, &under))
        });
    let groups = groups_of(cell, held);
    let (first, rest) = groups.split_first()?;
    let verb = if first.components.len() == 1 { "holds" } else { "hold" };
    let mut amounts = vec![format!("{} {verb} {}", name(first), before(first)?)];
    amounts.extend(rest.iter().filter_map(|group| Some(format!("{} {}", name(group), before(group)?))));
    let share = match (is_theirs, proxies.len() == 1) {
        (false, _) => "",
        (true, true) => ", most of what it holds under load",
        (true, false) => ", most of what they hold under load",
    };
    Some(format!(
        "{}: before the first request {}{share}.{}",
        words::sentence(words::mode(cell.mode)),
        words::list(&amounts),
        largest_configuration(&proxies).map_or_else(String::new, |sentence| format!(" {sentence}"))
    ))
}

/// Such as `client-proxy`, or `50 a-proxy`.
fn name(group: &ComponentGroup<'_>) -> String {
    match group.components.len() {
        1 => group.name.clone(),
        copies => format!("{copies} {}", group.name),
    }
}

/// Memory before the load; of copies each's, as the median with its range.
fn before(group: &ComponentGroup<'_>) -> Option<String> {
    let before = group.components.iter().filter_map(|proxy| proxy.memory_before_load_bytes);
    match before.collect::<Vec<_>>().as_slice() {
        [only] => Some(words::memory(only)),
        copies => {
            let spread = Spread::new(copies.iter().map(|bytes| bytes.estimate))?;
            Some(format!("{} each", words::memory(&spread.with_range())))
        }
    }
}

/// The configuration of the proxy that has most of it.
fn largest_configuration(proxies: &[&ComponentSummary]) -> Option<String> {
    let (proxy, configuration) = proxies
        .iter()
        .filter_map(|proxy| Some((proxy, proxy.configuration.as_ref()?)))
        .max_by(|(_, one), (_, other)| one.size_bytes.estimate.total_cmp(&other.size_bytes.estimate))?;
    let counts = configuration.counts;
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
    let whose = if proxies.len() == 1 { "its" } else { &format!("{}'s", proxy.name) };
    let size = words::size(configuration.size_bytes.estimate);
    Some(format!("{} configuration is {size}: {}.", words::sentence(whose), words::list(&kinds)))
}

/// Whether the one is surely most of the other: beyond what their intervals leave open.
fn is_most(before: &Estimate, under: &Estimate) -> bool {
    before.low.unwrap_or(before.estimate) > MOST * under.high.unwrap_or(under.estimate)
}

/// Proxies that do not hold what they were sent.
pub(super) fn refusals(run: &Run<'_>) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for cell in run.summary.cells.iter().filter(|cell| cell.valid > 0) {
        let refused = |proxy: &&ComponentSummary| {
            proxy
                .configuration
                .and_then(|held| held.counts.rejected_updates)
                .is_some_and(|refused| refused > 0)
        };
        let groups = groups_of(cell, resources::proxies_of(cell));
        for group in groups {
            let refusing: Vec<&ComponentSummary> = group.components.iter().copied().filter(refused).collect();
            let sentence = match refusing.as_slice() {
                [] => continue,
                [proxy] => format!(
                    "In mode {} {} refused updates of its configuration: it does not hold what it was sent.",
                    cell.mode, proxy.name
                ),
                [first, ..] => format!(
                    "In mode {} {} of {} {} refused updates of their configuration, {} among them: they do not hold what \
                     they were sent.",
                    cell.mode,
                    refusing.len(),
                    group.components.len(),
                    group.name,
                    first.name
                ),
            };
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
    }
    sentences
}
