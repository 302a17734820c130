//! Fleets of simulated proxies.

use super::said::Said;
use super::word_factors::{figure_name, judged};
use super::{Context, settings};
use crate::fleets::NOT_INCLUDED;
use crate::format;
use experiment::file::label::label;
use results::finding::{Convergence, Effect, Empty, Measured, OfCell, Timed};
use results::{Estimate, Factors, Metric, OwnedCellKey};
use statistics::findings::counts_things;
use statistics::words;

/// Example: `99 % of 2000 proxies have a change in 0.81 s (0.79–0.84), all in 1.2 s; istiod 1.31 cores, 1.9 GB.`
///
/// With the limits of the figures in the headline alone: they are those of all fleets.
pub(super) fn convergence(group: &[&OfCell<Convergence>], is_headline: bool) -> Said {
    let OfCell { place, content: first, .. } = group[0];
    let of = |figure: Metric| {
        group.iter().find_map(|one| match one.content.timed {
            Timed::Measured(measured) if measured.figure == figure => Some(measured.estimate),
            _ => None,
        })
    };
    let proxies = format::counted(first.proxies, "proxy", "proxies");
    let never = group.iter().any(|one| matches!(one.content.timed, Timed::Never(_)));
    let what = match first.event.as_deref() {
        Some(event) => format!("are complete again after {event}"),
        None => "have a change".to_owned(),
    };
    let last = of(Metric::ConvergenceLastUs);
    let within = match of(Metric::ConvergenceP99Us) {
        Some(p99) => {
            let all = last.map(|last| format!(", all in {}", words::latency_value(last.estimate)));
            format!("99 % of {proxies} {what} in {}{}", words::latency(&p99), all.unwrap_or_default())
        }
        None if never => format!("more than 1 % of {proxies} never {what}"),
        None => format!("no change was timed at {proxies}"),
    };
    let cpu = of(Metric::IstiodCpuCores);
    let memory = of(Metric::IstiodMemoryBytes);
    let values = [
        cpu.map(|one| words::cores_value(one.estimate)),
        memory.map(|one| words::memory_value(one.estimate)),
    ];
    let values: Vec<String> = values.into_iter().flatten().collect();
    let istiod = if values.is_empty() { String::new() } else { format!("; istiod {}", values.join(", ")) };
    let line = words::sentence(&format!("{}{within}{istiod}.", of_place(place)));
    let intervals = [
        last.map(|last| format!("the last proxy {}", words::latency(&last))),
        cpu.map(|cores| format!("istiod {}", words::cores(&cores))),
        memory.map(|bytes| format!("istiod {}", words::memory(&bytes))),
    ];
    let intervals: Vec<String> = intervals.into_iter().flatten().collect();
    let intervals = words::sentence(&intervals.join("; "));
    let said = Said::from(line).and(&if intervals.is_empty() { intervals } else { intervals + "." });
    match first.event {
        _ if !is_headline => said,
        Some(_) => said.and(NOT_INCLUDED),
        None => said.and("From the API’s acknowledgement to the arrival at a proxy.").and(NOT_INCLUDED),
    }
}

/// Example: `with churn 25%/m, `; empty without factors beside the number of proxies, which the sentence has.
fn of_place(place: &OwnedCellKey) -> String {
    of_factors(&place.factors).map_or_else(String::new, |factors| format!("with {factors}, "))
}

/// Example: `churn 25%/m and 400 services`.
fn of_factors(factors: &Factors) -> Option<String> {
    let mut factors = factors.clone();
    factors.remove("fleet.proxies");
    Some(settings(&factors)).filter(|settings| !settings.is_empty())
}

/// Example: `3 of 500 proxies never got a configuration or a change in a trial.`
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

/// Example: `Per 1000 more proxies: p99 of convergence +120 ms (90–150); istiod CPU time +20 s (−3 to 43), not shown.`
pub(super) fn factor_effect(run: &Context<'_>, group: &[&Effect]) -> Said {
    let key = group[0].subject.as_str();
    let opening = if counts_things(key) {
        format!("Per 1000 more {}", label(key))
    } else {
        let effect = run.summary.factor_effects.iter().find(|effect| effect.factor == key);
        run.greatest_instead(key, effect.map_or(&[][..], |effect| &effect.values))
    };
    let others = group[0].conditions().and_then(|at| of_factors(at.factors));
    let beside = others.map_or_else(String::new, |others| format!(" ({others})"));
    let clauses: Vec<String> = group.iter().filter_map(|effect| clause(effect)).collect();
    Said::from(format!("{opening}{beside}: {}.", clauses.join("; ")))
        .and(&run.chance(group.iter().map(|effect| &effect.measured.estimate)))
}

fn clause(effect: &Effect) -> Option<String> {
    let Measured { figure, estimate, .. } = &effect.measured;
    let text: fn(&Estimate) -> String = match figure {
        Metric::ConvergenceP99Us => words::latency,
        Metric::IstiodCpuS => cpu_seconds,
        _ => words::memory,
    };
    Some(format!("{} {}", figure_name(*figure)?, judged(estimate, effect.verdict, text)))
}

fn cpu_seconds(estimate: &Estimate) -> String {
    format::Interval::new(estimate).text_with_unit("s")
}
