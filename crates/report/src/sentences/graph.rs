//! Drivers, calls and services.

use super::place;
use results::{Finding, FindingVerdict, Metric};
use statistics::words;

/// Common parts of sentences about the greatest of several candidates.
struct Greatest<'a> {
    place: String,
    name: &'a str,
    against: &'static str,
    candidates: usize,
    value: f64,
}

impl<'a> Greatest<'a> {
    fn new(finding: &'a Finding) -> Self {
        Self {
            place: place(finding),
            name: finding.subject.as_deref().unwrap_or_default(),
            against: finding.against.map_or("", words::mode),
            candidates: finding.candidates.unwrap_or(0),
            value: finding.value.unwrap_or(f64::NAN),
        }
    }
}

/// The driver with the longest response times.
pub(super) fn slowest_driver(finding: &Finding) -> String {
    let Greatest { place, name, candidates, value, .. } = Greatest::new(finding);
    let value = words::latency_value(value);
    let by = finding.estimate.as_ref().map(words::latency).unwrap_or_default();
    let what = if finding.is_of(Metric::ResponseTimeP99Us) { "p99" } else { "mean" };
    let of_all = format!("the median of {candidates} drivers");
    match finding.verdict {
        Some(FindingVerdict::Shown) => {
            format!("{place}: the slowest driver is {name}, {what} {value}, {by} above {of_all}.")
        }
        Some(FindingVerdict::NotShown) => format!(
            "{place}: no driver is shown to be slower than {of_all}; {name} reads highest, {what} {value}, {by} above it."
        ),
        _ => format!(
            "{place}: {name} reads highest of {candidates} drivers, {what} {value}; one trial shows no difference."
        ),
    }
}

/// The call whose median increased most.
pub(super) fn added_time(finding: &Finding) -> String {
    let Greatest { place, name, against, candidates, value } = Greatest::new(finding);
    let by = finding.estimate.as_ref().map(words::latency).unwrap_or_default();
    match finding.verdict {
        Some(FindingVerdict::Shown) => format!(
            "{place}: of {candidates} calls between services, {name} grew most: median {}, {by} above {against}.",
            words::latency_value(value)
        ),
        Some(FindingVerdict::NotShown) => format!(
            "{place}: no call between services is shown to take longer than with {against}; {name} reads {by} more."
        ),
        _ => format!(
            "{place}: of {candidates} calls between services, {name} reads {by} more than with {against}; one trial shows no \
             difference."
        ),
    }
}

/// The service whose CPU increased most.
pub(super) fn added_cpu(finding: &Finding) -> String {
    let Greatest { place, name, against, candidates, value } = Greatest::new(finding);
    let by = finding.estimate.as_ref().map(words::cores).unwrap_or_default();
    match finding.verdict {
        Some(FindingVerdict::Shown) => format!(
            "{place}: of {candidates} services, {name} grew most in CPU: {} with the proxies in its pods, {by} above {against}.",
            words::cores_value(value)
        ),
        Some(FindingVerdict::NotShown) => format!(
            "{place}: no service is shown to use more CPU than with {against}, the proxies in its pods included; {name} reads \
             {by} more."
        ),
        _ => format!(
            "{place}: of {candidates} services, {name} reads {by} more than with {against}; one trial shows no difference."
        ),
    }
}
