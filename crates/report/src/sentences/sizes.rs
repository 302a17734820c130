//! The size of the mesh, and other factors.

use super::said::Said;
use super::word_factors::{figure_name, judged, requests_per_s};
use super::{Context, fleets, with_place};
use results::finding::{Effect, Headline};
use results::{BACKGROUND_SERVICES, Estimate, FactorEffect, FindingVerdict, Metric};
use statistics::words;

/// Propagation is stated per this number of services, since it is a fraction of a millisecond per service.
const THOUSAND: f64 = 1000.0;

/// Index of the sentence that states a finding about the size of the mesh.
pub(super) fn part(effect: &Effect) -> u8 {
    match effect.measured.figure {
        Metric::MemoryAnonymousBeforeLoadBytes | Metric::HeapAllocatedBeforeLoadBytes => 0,
        Metric::ConfiguredInS => 1,
        _ => 2,
    }
}

/// Effects of the size of the mesh.
pub(super) fn mesh_size(run: &Context<'_>, group: &[&Effect]) -> Said {
    match part(group[0]) {
        0 => held(run, group),
        1 => propagation(run, group),
        _ => requests(run, group),
    }
}

/// Memory of each proxy per service.
pub(super) fn held(run: &Context<'_>, group: &[&Effect]) -> Said {
    let costs: Vec<String> = group
        .chunk_by(|one, next| one.subject == next.subject)
        .filter_map(|of_proxy| {
            let cost = |figure, what| {
                of_proxy
                    .iter()
                    .find(|effect| effect.measured.figure == figure)
                    .map(|one| of_memory(one, what))
            };
            let heap = cost(Metric::HeapAllocatedBeforeLoadBytes, "heap in use");
            let heap = heap.map_or_else(String::new, |heap| format!("; {heap}"));
            let memory = cost(Metric::MemoryAnonymousBeforeLoadBytes, "memory")?;
            Some(format!("{} {memory}{heap}", of_proxy[0].subject))
        })
        .collect();
    let mode = group[0].mode;
    let is_it = |effect: &&FactorEffect| {
        (effect.factor.as_str(), effect.mode, effect.figure)
            == (BACKGROUND_SERVICES, mode, Metric::MemoryAnonymousBeforeLoadBytes)
    };
    let sizes = run.summary.factor_effects.iter().find(is_it).map_or(&[][..], |effect| &effect.values);
    let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    let measured = format!(
        "Measured in mode {mode} before the load, in meshes of {} background services.",
        words::list(&sizes)
    );
    Said::from(format!("Each background service costs {}.", costs.join("; ")))
        .and(&measured)
        .and(&run.chance(group.iter().map(|effect| &effect.measured.estimate)))
}

/// Such as `90 kB (88–92) of memory`, and said so if it is not shown.
fn of_memory(effect: &Effect, what: &str) -> String {
    let estimate = &effect.measured.estimate;
    let size = |estimate: &Estimate| format!("{} of {what}", words::size_interval(estimate));
    match effect.verdict {
        FindingVerdict::NotShown => judged(estimate, effect.verdict, size),
        _ => size(estimate),
    }
}

fn propagation(run: &Context<'_>, group: &[&Effect]) -> Said {
    let later = group.iter().map(|effect| {
        let of_thousand = effect.measured.estimate.map(|time_s| time_s * THOUSAND * 1e6);
        let time = words::latency(&of_thousand);
        let later = match (effect.verdict, of_thousand.estimate) {
            (FindingVerdict::NotShown, _) => {
                judged(&of_thousand, effect.verdict, |time| format!("{} later", words::latency(time)))
            }
            (_, slope) if slope < 0.0 => format!("sooner ({time})"),
            _ => format!("{time} later"),
        };
        format!("{later} at {}", effect.subject)
    });
    let later = later.collect::<Vec<_>>().join("; ");
    Said::from(format!("Per 1000 background services a change is propagated {later}."))
        .and(&format!("Mode {}.", group[0].mode))
        .and(&run.chance(group.iter().map(|effect| &effect.measured.estimate)))
}

/// Response time and CPU in the largest mesh against the smallest.
fn requests(run: &Context<'_>, group: &[&Effect]) -> Said {
    let median = effect(run, group[0], BACKGROUND_SERVICES, Metric::ResponseTimeP50Us);
    let values = median.map_or(&[][..], |effect| &effect.values);
    let (smallest, largest) = (values.first().unwrap_or(&0.0), values.last().unwrap_or(&0.0));
    let offered = group[0].load.as_ref().map(words::offered).unwrap_or_default();
    let text = format!(
        "{largest} background services instead of {smallest} ({}, {}): {}.",
        words::mode(group[0].mode),
        offered.replacen(" requests/s", "/s", 1),
        changes(group)
    );
    Said::from(text).and(&run.chance(group.iter().map(|effect| &effect.measured.estimate)))
}

/// Effect of a factor from its smallest to its largest value.
pub(super) fn factor_effect(run: &Context<'_>, group: &[&Effect]) -> Said {
    if fleets::is_of_fleet(group[0]) {
        return fleets::factor_effect(run, group);
    }
    let is_stated = |headline: &Headline, one: &Effect| match headline {
        Headline::Effect(stated) => {
            let key = |of: &Effect| {
                (of.mode, of.factors.clone(), of.load.clone(), of.subject.clone(), of.measured.figure)
            };
            key(stated) == key(one)
        }
        _ => false,
    };
    let group = &run.beyond_headline(group, is_stated)[..];
    let first = group[0];
    let key = first.subject.as_str();
    let median =
        first.load.as_ref().map_or(Metric::ResponseTimeP50Us, |load| Metric::ResponseTimeP50Us.under(load));
    let effect = effect(run, first, key, median);
    let values = run.greatest_instead(key, effect.map_or(&[][..], |effect| &effect.values));
    let said = |at: &str| Said::from(format!("{values}{at}: {}.", changes(group)));
    let placed = match first.conditions() {
        Some(at) => with_place(first.mode, at, said),
        None => said(&format!(" ({})", words::mode(first.mode))),
    };
    placed
        .and(cost_of_one(run, first, key).trim_start())
        .and(&run.chance(group.iter().map(|effect| &effect.measured.estimate)))
}

/// The effect on a figure where a finding states an effect.
fn effect<'a>(run: &Context<'a>, stated: &Effect, key: &str, figure: Metric) -> Option<&'a FactorEffect> {
    run.summary.factor_effects.iter().find(|effect| {
        effect.factor == key
            && effect.figure == figure
            && (effect.mode, &effect.factors, &effect.load) == (stated.mode, &stated.factors, &stated.load)
    })
}

/// Cost of one more hop or connection: the slope over all values. Empty if it is not shown, and for other
/// factors.
fn cost_of_one(run: &Context<'_>, stated: &Effect, key: &str) -> String {
    let what = match key {
        "topology.hops" => "hop",
        "load.connections" => "connection",
        _ => return String::new(),
    };
    let cost = |figure, of: &str, text: fn(&Estimate) -> String| {
        let effect = effect(run, stated, key, figure)?;
        let is_shown = effect.verdict == FindingVerdict::Shown;
        is_shown.then(|| format!("{of} {}", judged(&effect.per_unit, FindingVerdict::Shown, text)))
    };
    let costs: Vec<String> = [
        cost(Metric::ResponseTimeP50Us, "median", words::latency),
        cost(Metric::ProxiesMemoryAnonymousBytes, "anonymous proxy memory", words::size_interval),
    ]
    .into_iter()
    .flatten()
    .collect();
    if costs.is_empty() { String::new() } else { format!(" Each further {what}: {}.", words::list(&costs)) }
}

fn changes(group: &[&Effect]) -> String {
    let clause = |effect: &&Effect| {
        let figure = effect.measured.figure;
        let text: fn(&Estimate) -> String = match figure {
            time if time.is_time() => words::latency,
            Metric::RateCompleted => requests_per_s,
            Metric::MemoryAnonymousBytes => words::size_interval,
            _ => words::cpu_time,
        };
        Some(format!("{} {}", figure_name(figure)?, judged(&effect.measured.estimate, effect.verdict, text)))
    };
    group.iter().filter_map(clause).collect::<Vec<_>>().join("; ")
}
