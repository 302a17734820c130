//! Fleets of simulated proxies.

use super::Context;
use crate::format;
use results::finding::{Convergence, Effect, Empty, Measured, OfCell, Timed};
use results::{Conditions, Estimate, Metric, OwnedCellKey};
use statistics::findings::counts_things;
use statistics::words;

/// Example: `99 % of a change’s arrivals at 2000 proxies come within 0.81 s (0.79–0.84) of its
/// acknowledgement, the last after 1.2 s; istiod uses 1.31 cores and 1.9 GB`.
pub(super) fn convergence(group: &[&OfCell<Convergence>]) -> String {
    let OfCell { place, content: first, .. } = group[0];
    let of = |figure: Metric| {
        group.iter().find_map(|one| match one.content.timed {
            Timed::Measured(measured) if measured.figure == figure => Some(measured.estimate),
            _ => None,
        })
    };
    let proxies = format::count(first.proxies);
    let never = group.iter().any(|one| matches!(one.content.timed, Timed::Never(_)));
    let within = match (of(Metric::ConvergenceP99Us), first.event.as_deref()) {
        (Some(p99), Some(event)) => {
            let time = words::latency(&p99);
            format!("after {event} 99 % of {proxies} proxies are complete again within {time}")
        }
        (Some(p99), None) => format!(
            "99 % of a change’s arrivals at {proxies} proxies come within {} of its acknowledgement",
            words::latency(&p99)
        ),
        (None, Some(event)) if never => {
            format!("after {event} more than 1 % of {proxies} proxies were never complete again")
        }
        (None, None) if never => {
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
    words::sentence(&format!("{}{within}{last}{usage}.", of_place(place)))
}

/// Example: `with fleet.proxies 500, `; empty without factors.
fn of_place(place: &OwnedCellKey) -> String {
    if place.factors.is_empty() { String::new() } else { format!("{}, ", of_factors(place.conditions())) }
}

/// Example: `with fleet.proxies 500 and fleet.churn 25%/m`.
fn of_factors(at: Conditions<'_>) -> String {
    let factors: Vec<String> = at.factors.iter().map(|(key, value)| format!("{key} {value}")).collect();
    format!("with {}", words::list(&factors))
}

/// Example: `With fleet.proxies 500, 3 of 500 proxies missed a configuration or a change in a trial`.
pub(super) fn not_converged(missed: &OfCell<Empty>) -> String {
    let text = format!(
        "{}{} of {} proxies never got a configuration or a change in a trial.",
        of_place(&missed.place),
        format::count(missed.trials.n as u64),
        format::count(missed.trials.of as u64)
    );
    words::sentence(&text)
}

/// True if the effect of a factor concerns fleets.
pub(super) fn is_of_fleet(effect: &Effect) -> bool {
    let figure = effect.measured.figure;
    matches!(figure, Metric::ConvergenceP99Us | Metric::IstiodCpuS | Metric::IstiodMemoryBytes)
}

/// Example: `Per 1000 of fleet.proxies more: p99 of convergence 120 ms (90–150) more; istiod's CPU no
/// difference shown`.
pub(super) fn factor_effect(run: &Context<'_>, group: &[&Effect]) -> String {
    let key = group[0].subject.as_str();
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
    let others = group[0].conditions().filter(|at| !at.factors.is_empty());
    let beside = others.map_or_else(String::new, |at| format!(" ({})", of_factors(at)));
    let clauses: Vec<String> = group.iter().map(|effect| clause(run, effect)).collect();
    format!("{opening}{beside}, in this run: {}.", clauses.join("; "))
}

fn clause(run: &Context<'_>, effect: &Effect) -> String {
    let Measured { figure, estimate, .. } = &effect.measured;
    let (what, text): (&str, fn(&Estimate) -> String) = match figure {
        Metric::ConvergenceP99Us => ("99th percentile of convergence", words::latency),
        Metric::IstiodCpuS => ("CPU time of istiod", cpu_seconds),
        _ => ("memory of istiod", words::memory),
    };
    format!("{what}: {}", super::sizes::change(run, estimate, effect.verdict, text))
}

fn cpu_seconds(estimate: &Estimate) -> String {
    format::Interval::new(estimate).text_with_unit("s")
}
