//! Fleets of simulated proxies.

use super::Context;
use crate::format;
use results::{Conditions, Estimate, Finding, Metric};
use statistics::findings::counts_things;
use statistics::words;

/// Example: `99 % of a change’s arrivals at 2000 proxies come within 0.81 s (0.79–0.84) of its
/// acknowledgement, the last after 1.2 s; istiod uses 1.31 cores and 1.9 GB`.
pub(super) fn convergence(group: &[&Finding]) -> String {
    let first = group[0];
    let of = |figure| group.iter().find(|finding| finding.is_of(figure)).and_then(|finding| finding.estimate);
    let proxies = format::count(first.candidates.unwrap_or(0) as u64);
    let p99 = group.iter().find(|finding| finding.is_of(Metric::ConvergenceP99Us));
    let within = match (p99.map(|finding| finding.estimate), first.subject.as_deref()) {
        (Some(Some(p99)), Some(event)) => {
            let time = words::latency(&p99);
            format!("after {event} 99 % of {proxies} proxies are complete again within {time}")
        }
        (Some(Some(p99)), None) => format!(
            "99 % of a change’s arrivals at {proxies} proxies come within {} of its acknowledgement",
            words::latency(&p99)
        ),
        (Some(None), Some(event)) => {
            format!("after {event} more than 1 % of {proxies} proxies were never complete again")
        }
        (Some(None), None) => {
            format!("more than 1 % of the changes’ arrivals at {proxies} proxies never came")
        }
        (None, _) => format!("no change was timed at {proxies} proxies"),
    };
    let last = of(Metric::ConvergenceLastUs)
        .map_or_else(String::new, |last| format!(", the last after {}", words::latency(&last)));
    let cpu = of(Metric::IstiodCpuCores).map(|cores| words::cores(&cores));
    let memory = of(Metric::IstiodMemoryBytes).map(|bytes| words::memory(&bytes));
    let usage: Vec<String> = [cpu, memory].into_iter().flatten().collect();
    let usage =
        if usage.is_empty() { String::new() } else { format!("; istiod uses {}", words::list(&usage)) };
    let place = first.conditions().filter(|at| !at.factors.is_empty());
    let place = place.map_or_else(String::new, |at| format!("{}, ", of_factors(at)));
    words::sentence(&format!("{place}{within}{last}{usage}."))
}

/// Example: `with fleet.proxies 500 and fleet.churn 25%/m`.
fn of_factors(at: Conditions<'_>) -> String {
    let factors: Vec<String> = at.factors.iter().map(|(key, value)| format!("{key} {value}")).collect();
    format!("with {}", words::list(&factors))
}

/// Example: `With fleet.proxies 500, 3 of 500 proxies missed a configuration or a change in a trial`.
pub(super) fn not_converged(finding: &Finding) -> String {
    let (never, of) = (finding.n.unwrap_or(0), finding.of.unwrap_or(0));
    let place = finding.conditions().filter(|at| !at.factors.is_empty());
    let place = place.map_or_else(String::new, |at| format!("{}, ", of_factors(at)));
    let text = format!(
        "{place}{} of {} proxies never got a configuration or a change in a trial.",
        format::count(never as u64),
        format::count(of as u64)
    );
    words::sentence(&text)
}

/// True if the effect of a factor concerns fleets.
pub(super) fn is_of_fleet(finding: &Finding) -> bool {
    [Metric::ConvergenceP99Us, Metric::IstiodCpuS, Metric::IstiodMemoryBytes]
        .iter()
        .any(|figure| finding.is_of(*figure))
}

/// Example: `Per 1000 of fleet.proxies more: p99 of convergence 120 ms (90–150) more; istiod's CPU no
/// difference shown`.
pub(super) fn factor_effect(run: &Context<'_>, group: &[&Finding]) -> String {
    let Some(key) = group[0].subject.as_deref() else { return String::new() };
    let opening = if counts_things(key) {
        format!("Per 1000 more of {key}")
    } else {
        let effect = run.summary.factor_effects.iter().find(|effect| effect.factor == key);
        let typed = run.experiment.factor(key).map_or(&[][..], |factor| &factor.values);
        let named = |number: Option<&f64>| {
            let same = |value: &&results::FactorValue| value.quantity(key) == number.copied();
            typed.iter().find(same).map(ToString::to_string).unwrap_or_default()
        };
        let values = effect.map_or(&[][..], |effect| &effect.values);
        format!("With {key} {} instead of {}", named(values.last()), named(values.first()))
    };
    let others = Some(&group[0].factors).filter(|factors| !factors.is_empty());
    let beside = others.zip(group[0].load.as_ref()).map_or_else(String::new, |(factors, load)| {
        format!(" ({})", of_factors(Conditions { factors, load }))
    });
    let clauses: Vec<String> = group.iter().filter_map(|finding| clause(finding)).collect();
    format!("{opening}{beside}, in this run: {}.", clauses.join("; "))
}

fn clause(finding: &Finding) -> Option<String> {
    let (estimate, verdict) = (finding.estimate?, finding.verdict?);
    let (what, text): (&str, fn(&Estimate) -> String) = match finding.metric()? {
        Metric::ConvergenceP99Us => ("99th percentile of convergence", words::latency),
        Metric::IstiodCpuS => ("CPU time of istiod", cpu_seconds),
        _ => ("memory of istiod", words::memory),
    };
    Some(format!("{what}: {}", super::sizes::change(&estimate, verdict, text)))
}

fn cpu_seconds(estimate: &Estimate) -> String {
    format::Interval::new(estimate).text_with_unit("s")
}
