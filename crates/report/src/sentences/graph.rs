//! Drivers, calls and services.

use super::{Context, higher_or_lower, place};
use results::finding::{Greatest, GreatestAdded, OfCell};
use results::{Estimate, FindingVerdict, Metric};
use statistics::words;

/// The driver with the longest response times.
pub(super) fn slowest_driver(run: &Context<'_>, slowest: &OfCell<Greatest>) -> String {
    let place = place(&slowest.place);
    let slowest = &slowest.content;
    let Greatest { subject: name, candidates, .. } = slowest;
    let value = words::latency_value(slowest.value.value);
    let by = words::latency(&slowest.difference);
    let what = if slowest.value.figure == Metric::ResponseTimeP99Us { "p99" } else { "mean" };
    let of_all = format!("the median of {candidates} drivers");
    match slowest.verdict {
        FindingVerdict::Shown => {
            format!("{place}: the slowest driver is {name}, {what} {value}, {by} above {of_all}.")
        }
        FindingVerdict::NotShown => format!(
            "{place}: no driver is shown to be slower than {of_all}; {name} is the highest, {what} {value}, {by} above it{}.",
            why(run, &slowest.difference)
        ),
        FindingVerdict::CannotTell => format!(
            "{place}: {name} is the highest of {candidates} drivers, {what} {value}; one trial shows no difference."
        ),
    }
}

/// The call whose median increased most.
pub(super) fn added_time(run: &Context<'_>, added: &OfCell<GreatestAdded>) -> String {
    let GreatestAdded { greatest, against } = &added.content;
    let Greatest { subject: name, candidates, .. } = greatest;
    let (place, against) = (place(&added.place), words::mode(*against));
    let by = higher_or_lower(&greatest.difference, words::latency);
    match greatest.verdict {
        FindingVerdict::Shown if greatest.difference.estimate < 0.0 => {
            format!(
                "{place}: each of {candidates} calls between services is shorter than with {against}; {name} is {by}."
            )
        }
        FindingVerdict::Shown => format!(
            "{place}: of {candidates} calls between services, {name} grew most: median {}, {} above {against}.",
            words::latency_value(greatest.value.value),
            words::latency(&greatest.difference)
        ),
        FindingVerdict::NotShown => format!(
            "{place}: no call between services is shown to take longer than with {against}; {name} is {by}{}.",
            why(run, &greatest.difference)
        ),
        FindingVerdict::CannotTell => format!(
            "{place}: of {candidates} calls between services, {name} is {by} than with {against}; one trial shows no \
             difference."
        ),
    }
}

/// The service whose CPU increased most.
pub(super) fn added_cpu(run: &Context<'_>, added: &OfCell<GreatestAdded>) -> String {
    let GreatestAdded { greatest, against } = &added.content;
    let Greatest { subject: name, candidates, .. } = greatest;
    let (place, against) = (place(&added.place), words::mode(*against));
    let by = higher_or_lower(&greatest.difference, words::cores);
    match greatest.verdict {
        FindingVerdict::Shown if greatest.difference.estimate < 0.0 => {
            format!(
                "{place}: each of {candidates} services uses less CPU than with {against}; {name} is {by}."
            )
        }
        FindingVerdict::Shown => format!(
            "{place}: of {candidates} services, {name} grew most in CPU: {} with the proxies in its pods, {} above {against}.",
            words::cores_value(greatest.value.value),
            words::cores(&greatest.difference)
        ),
        FindingVerdict::NotShown => format!(
            "{place}: no service is shown to use more CPU than with {against}, the proxies in its pods included; {name} is \
             {by}{}.",
            why(run, &greatest.difference)
        ),
        FindingVerdict::CannotTell => format!(
            "{place}: of {candidates} services, {name} is {by} than with {against}; one trial shows no difference."
        ),
    }
}

/// Reason why a difference is not shown, behind it; empty if its own interval includes zero.
fn why(run: &Context<'_>, difference: &Estimate) -> String {
    run.chance(difference).map(|why| format!(" ({why})")).unwrap_or_default()
}
