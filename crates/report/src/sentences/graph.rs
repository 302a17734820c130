//! Drivers, calls and services.

use super::said::Said;
use super::{Context, higher_or_lower, place};
use results::finding::{Greatest, GreatestAdded, OfCell};
use results::{FindingVerdict, Metric};
use statistics::words;

/// The driver with the longest response times.
pub(super) fn slowest_driver(run: &Context<'_>, slowest: &OfCell<Greatest>) -> Said {
    let place = place(&slowest.place);
    let slowest = &slowest.content;
    let Greatest { subject, candidates, .. } = slowest;
    let value = words::latency_value(slowest.value.value);
    let by = words::latency(&slowest.difference);
    let what = if slowest.value.figure == Metric::ResponseTimeP99Us { "p99" } else { "mean" };
    let of_all = format!("the median of {candidates} drivers");
    let text = |names: &[String]| {
        let name = &names[0];
        match slowest.verdict {
            FindingVerdict::Shown => {
                format!("{place}: {name} is the slowest driver, {what} {value}; {by} above {of_all}.")
            }
            FindingVerdict::NotShown => format!(
                "{place}: no driver is shown to be slower than {of_all}; the highest is {name}, {what} {value}, {by} above it."
            ),
            FindingVerdict::CannotTell => format!(
                "{place}: {name} is the highest of {candidates} drivers, {what} {value}, not shown: one trial."
            ),
        }
    };
    Said::with_names(&[subject], text).and(&run.chance([&slowest.difference]))
}

/// The call whose median increased most.
pub(super) fn added_time(run: &Context<'_>, added: &OfCell<GreatestAdded>) -> Said {
    let GreatestAdded { greatest, against } = &added.content;
    let Greatest { subject, candidates, .. } = greatest;
    let (place, against) = (place(&added.place), words::mode(*against));
    let by = higher_or_lower(&greatest.difference, words::latency);
    let text = |names: &[String]| {
        let name = &names[0];
        match greatest.verdict {
            FindingVerdict::Shown if greatest.difference.estimate < 0.0 => format!(
                "{place}: each of {candidates} calls between services is shorter than with {against}; {by} in {name}."
            ),
            FindingVerdict::Shown => format!(
                "{place}: of {candidates} calls {name} slowed down most, by {} to a median of {}; compared with {against}.",
                words::latency(&greatest.difference),
                words::latency_value(greatest.value.value),
            ),
            FindingVerdict::NotShown => format!(
                "{place}: no call between services is shown to take longer than with {against}; {by} in {name}."
            ),
            FindingVerdict::CannotTell => format!(
                "{place}: of {candidates} calls {name} is {by} than with {against}, not shown: one trial each."
            ),
        }
    };
    Said::with_names(&[subject], text).and(&run.chance([&greatest.difference]))
}

/// The service whose CPU increased most.
pub(super) fn added_cpu(run: &Context<'_>, added: &OfCell<GreatestAdded>) -> Said {
    let GreatestAdded { greatest, against } = &added.content;
    let Greatest { subject, candidates, .. } = greatest;
    let (place, against) = (place(&added.place), words::mode(*against));
    let by = higher_or_lower(&greatest.difference, words::cores);
    let text = |names: &[String]| {
        let name = &names[0];
        match greatest.verdict {
            FindingVerdict::Shown if greatest.difference.estimate < 0.0 => {
                format!(
                    "{place}: each of {candidates} services uses less CPU than with {against}; {by} in {name}."
                )
            }
            FindingVerdict::Shown => format!(
                "{place}: CPU of {name} rose most of {candidates} services, by {} to {}; with the proxies in its pods, compared \
                 with {against}.",
                words::cores(&greatest.difference),
                words::cores_value(greatest.value.value),
            ),
            FindingVerdict::NotShown => format!(
                "{place}: no service is shown to use more CPU than with {against}; {by} in {name}, the proxies in its pods \
                 included."
            ),
            FindingVerdict::CannotTell => format!(
                "{place}: of {candidates} services {name} is {by} than with {against}, not shown: one trial each."
            ),
        }
    };
    Said::with_names(&[subject], text).and(&run.chance([&greatest.difference]))
}
