//! The size of the mesh, and other factors.

use super::Context;
use results::{BACKGROUND_SERVICES, Conditions, Estimate, FactorEffect, Finding, FindingVerdict, Metric};
use statistics::words;

/// Propagation is stated per this number of services, since it is a fraction of a millisecond per service.
const THOUSAND: f64 = 1000.0;

/// Index of the sentence that states a finding about the size of the mesh.
pub(super) fn part(finding: &Finding) -> u8 {
    match finding.metric() {
        Some(Metric::MemoryAnonymousBeforeLoadBytes | Metric::HeapAllocatedBeforeLoadBytes) => 0,
        Some(Metric::ConfiguredInS) => 1,
        _ => 2,
    }
}

/// Effects of the size of the mesh.
pub(super) fn mesh_size(run: &Context<'_>, group: &[&Finding]) -> String {
    match part(group[0]) {
        0 => held(run, group),
        1 => propagation(group),
        _ => requests(run, group),
    }
}

fn held(run: &Context<'_>, group: &[&Finding]) -> String {
    let costs: Vec<String> = group
        .chunk_by(|one, next| one.subject == next.subject)
        .filter_map(|of_proxy| {
            let cost = |figure| cost(of_proxy.iter().find(|finding| finding.is_of(figure))?);
            let heap = cost(Metric::HeapAllocatedBeforeLoadBytes);
            let heap = heap.map_or_else(String::new, |heap| format!(", {heap} of heap in use"));
            let name = of_proxy[0].subject.as_deref()?;
            Some(format!("{name} {} of memory{heap}", cost(Metric::MemoryAnonymousBeforeLoadBytes)?))
        })
        .collect();
    let mode = group[0].mode.map_or("", |mode| mode.name());
    let is_it = |effect: &&FactorEffect| {
        effect.factor == BACKGROUND_SERVICES
            && Some(effect.mode) == group[0].mode
            && effect.figure == Metric::MemoryAnonymousBeforeLoadBytes
    };
    let sizes = run.summary.factor_effects.iter().find(is_it).map_or(&[][..], |effect| &effect.values);
    let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    format!(
        "Each other service of the mesh costs {} (mode {mode} in this run, before the load, from meshes of {} other services).",
        costs.join("; "),
        words::list(&sizes)
    )
}

/// Such as `90 kB (88–92)`, and said so if it is not shown.
fn cost(finding: &Finding) -> Option<String> {
    let bytes = words::size_interval(&finding.estimate?);
    Some(match finding.verdict {
        Some(FindingVerdict::NotShown) => format!("nothing that is shown ({bytes})"),
        _ => bytes,
    })
}

fn propagation(group: &[&Finding]) -> String {
    let later: Vec<String> = group
        .iter()
        .filter_map(|finding| {
            let of_thousand = finding.estimate?.map(|time_s| time_s * THOUSAND * 1e6);
            let time = words::latency(&of_thousand);
            let later = match (finding.verdict, of_thousand.estimate) {
                (Some(FindingVerdict::NotShown), _) => format!("no difference shown ({time})"),
                (_, slope) if slope < 0.0 => format!("sooner ({time})"),
                _ => format!("{time} later"),
            };
            Some(format!("at {} {later}", finding.subject.as_deref()?))
        })
        .collect();
    let mode = group[0].mode.map_or("", |mode| mode.name());
    format!(
        "Per 1000 other services, a change is propagated {} (mode {mode} in this run).",
        words::list(&later)
    )
}

/// Response time and CPU in the largest mesh against the smallest.
fn requests(run: &Context<'_>, group: &[&Finding]) -> String {
    let median = effect(run, group[0], BACKGROUND_SERVICES, Metric::ResponseTimeP50Us);
    let values = median.map_or(&[][..], |effect| &effect.values);
    let (smallest, largest) = (values.first().unwrap_or(&0.0), values.last().unwrap_or(&0.0));
    let mode = group[0].mode.map_or("", |mode| mode.name());
    let offered = group[0].load.as_ref().map(words::offered).unwrap_or_default();
    format!(
        "Among {largest} other services instead of {smallest}, mode {mode} under {offered} in this run: {}.",
        changes(group)
    )
}

/// Effect of a factor from its smallest to its largest value.
pub(super) fn factor_effect(run: &Context<'_>, group: &[&Finding]) -> String {
    let (Some(key), Some(mode)) = (group[0].subject.as_deref(), group[0].mode) else { return String::new() };
    let typed = run.experiment.factor(key).map_or(&[][..], |factor| &factor.values);
    let effect = effect(run, group[0], key, Metric::ResponseTimeP50Us);
    let typed = |number: Option<&f64>| {
        let value = number.and_then(|number| typed.iter().find(|value| value.quantity(key) == Some(*number)));
        value.map(ToString::to_string).unwrap_or_default()
    };
    let values = effect.map_or(&[][..], |effect| &effect.values);
    let at = group[0].load.as_ref().map(|load| Conditions { factors: &group[0].factors, load });
    format!(
        "With {key} {} instead of {}, mode {mode} under {} in this run: {}.{}",
        typed(values.last()),
        typed(values.first()),
        at.map(words::described).unwrap_or_default(),
        changes(group),
        cost_of_one(run, group[0], key)
    )
}

/// The effect on a figure where a finding states an effect.
fn effect<'a>(run: &Context<'a>, finding: &Finding, key: &str, figure: Metric) -> Option<&'a FactorEffect> {
    run.summary.factor_effects.iter().find(|effect| {
        effect.factor == key
            && effect.figure == figure
            && (Some(effect.mode), &effect.factors, &effect.load)
                == (finding.mode, &finding.factors, &finding.load)
    })
}

/// Cost of one more hop or connection: the slope over all values. Empty if it is not shown, and for other
/// factors.
fn cost_of_one(run: &Context<'_>, finding: &Finding, key: &str) -> String {
    let what = match key {
        "topology.hops" => "hop",
        "load.connections" => "connection",
        _ => return String::new(),
    };
    let cost = |figure, of: &str, text: fn(&Estimate) -> String| {
        let effect = effect(run, finding, key, figure)?;
        let is_shown = effect.verdict == FindingVerdict::Shown;
        is_shown.then(|| format!("{} {of}", change(&effect.per_unit, FindingVerdict::Shown, text)))
    };
    let costs: Vec<String> = [
        cost(Metric::ResponseTimeP50Us, "in the median", words::latency),
        cost(Metric::ProxiesMemoryAnonymousBytes, "anonymous memory of all proxies", words::size_interval),
    ]
    .into_iter()
    .flatten()
    .collect();
    if costs.is_empty() { String::new() } else { format!(" Each further {what}: {}.", words::list(&costs)) }
}

fn changes(group: &[&Finding]) -> String {
    let clauses: Vec<String> = group
        .iter()
        .filter_map(|finding| {
            let (estimate, verdict) = (finding.estimate.as_ref()?, finding.verdict?);
            let (what, text): (_, fn(&Estimate) -> String) = match finding.metric() {
                Some(Metric::ResponseTimeP50Us) => ("median response time", words::latency),
                Some(Metric::RateCompleted) => ("throughput", words::rate_interval),
                Some(Metric::MemoryAnonymousBytes) => {
                    ("anonymous memory of all proxies", words::size_interval)
                }
                _ => ("CPU of all proxies per request", words::cpu_time),
            };
            Some(format!("{what}: {}", change(estimate, verdict, text)))
        })
        .collect();
    clauses.join("; ")
}

pub(super) fn change(
    difference: &Estimate,
    verdict: FindingVerdict,
    text: fn(&Estimate) -> String,
) -> String {
    match (verdict, difference.estimate < 0.0) {
        (FindingVerdict::CannotTell, _) => {
            format!("{} more in one repeat, which shows no difference", text(difference))
        }
        (FindingVerdict::NotShown, _) => format!("no difference shown ({})", text(difference)),
        (FindingVerdict::Shown, true) => {
            format!("{} less", text(&difference.map_reversed(std::ops::Neg::neg)))
        }
        (FindingVerdict::Shown, false) => format!("{} more", text(difference)),
    }
}
