//! Response times.

use super::{Context, at_first, fleets, place, sizes, throughput, word_factors};
use results::{Estimate, Finding, Metric, Mode};
use statistics::words;

/// The answer in one sentence.
pub(super) fn headline(run: &Context<'_>, group: &[&Finding]) -> String {
    let first = group[0];
    if first.from.is_some() {
        return word_factors::headline(group);
    }
    if first.is_of(Metric::RateCompleted) {
        return throughput::headline(group);
    }
    if first.is_of(Metric::ConvergenceP99Us) {
        return fleets::convergence(group);
    }
    if first.is_of(Metric::MemoryAnonymousBeforeLoadBytes) {
        return sizes::mesh_size(run, group);
    }
    let Some(mode) = first.mode else { return "Nothing can be said: no trial is valid.".to_owned() };
    let cpu = group.iter().find(|finding| finding.is_of(Metric::CpuCores)).and_then(|finding| finding.value);
    let cpu = |join: &str| {
        cpu.map_or_else(String::new, |cores| format!("{join} uses {} a proxy", words::cores_value(cores)))
    };
    let at = at_first(first);
    if first.estimate.is_some() && first.against.is_some() {
        let join = if first.is_shown() { " and" } else { "; it" };
        return format!("{at} {}{}.", compared(run, first), cpu(join));
    }
    let through = match mode {
        Mode::None => "without a mesh".to_owned(),
        Mode::EgressBypass => "past the sidecar".to_owned(),
        mode => format!("through {}", run.subject(mode)),
    };
    let median = match &first.estimate {
        Some(median) => format!("is {}", words::latency(median)),
        None => "falls among requests without a response: every second request or more had none".to_owned(),
    };
    format!("{at} the median response time {through} {median}{}.", cpu("; it"))
}

/// Clause on what a mode adds to its baseline, worded as strongly as the interval allows.
fn compared(run: &Context<'_>, finding: &Finding) -> String {
    let (Some(mode), Some(added)) = (finding.mode, &finding.estimate) else { return String::new() };
    let (subject, baseline) = (run.subject(mode), words::mode(finding.against.unwrap_or(Mode::None)));
    let what = percentile(finding);
    if added.low.is_none() {
        let more = words::latency(added);
        return format!("{subject} reads {more} more in {what} (one trial each, which shows no difference)");
    }
    if !finding.is_shown() && added.excludes_zero() {
        let (by, side) = match added.estimate > 0.0 {
            true => (words::latency(added), "higher"),
            false => (words::latency(&added.map_reversed(std::ops::Neg::neg)), "lower"),
        };
        return format!(
            "{what} of {subject} is {by} {side} than of {baseline} by its own interval, but not shown among all that this \
             run tests (more repeats show more)"
        );
    }
    if !finding.is_shown() {
        let interval = words::latency(added);
        return format!("no difference is shown between {subject} and {baseline} in {what}: {interval}");
    }
    format!("{subject} {}", changes(finding, added))
}

/// `adds 0.38 ms (0.35–0.41) to the median (×7.1)`, for a difference that is shown.
fn changes(finding: &Finding, added: &Estimate) -> String {
    let relative = finding.value.and_then(|value| words::relative(value, value - added.estimate));
    let relative = relative.map_or_else(String::new, |relative| format!(" ({relative})"));
    let what = percentile(finding);
    if added.estimate > 0.0 {
        return format!("adds {} to {what}{relative}", words::latency(added));
    }
    let less = added.map_reversed(std::ops::Neg::neg);
    format!("takes {} off {what}{relative}", words::latency(&less))
}

fn percentile(finding: &Finding) -> &'static str {
    if finding.is_of(Metric::ResponseTimeP99Us) { "the 99th percentile" } else { "the median" }
}

/// What a mode adds to both percentiles.
pub(super) fn added(run: &Context<'_>, group: &[&Finding]) -> String {
    let first = group[0];
    let clauses = match group {
        [median, tail] if median.is_shown() && tail.is_shown() => {
            let subject = first.mode.map(|mode| run.subject(mode)).unwrap_or_default();
            let change = |finding: &Finding| {
                finding.estimate.as_ref().map(|added| (changes(finding, added), added.estimate > 0.0))
            };
            let ((first, rises), (second, _)) =
                (change(median).unwrap_or_default(), change(tail).unwrap_or_default());
            let second = if rises { second.trim_start_matches("adds ") } else { &second };
            format!("{subject} {first} and {second}")
        }
        clauses => {
            let clauses: Vec<String> = clauses.iter().map(|finding| compared(run, finding)).collect();
            clauses.join("; ")
        }
    };
    let pauses = match group.iter().any(|finding| finding.share.is_some()) {
        true => " Pauses of the machine can make this 99th percentile.",
        false => "",
    };
    format!("{} {clauses}.{pauses}", at_first(first))
}

/// Service time that looks good because requests waited before they were sent.
pub(super) fn hidden_waiting(group: &[&Finding]) -> String {
    let of = |figure| group.iter().find(|finding| finding.is_of(figure)).and_then(|finding| finding.value);
    let time = |figure| words::latency_value(of(figure).unwrap_or(f64::NAN));
    format!(
        "{}: the 99th percentile of the response time is {}, while service time reads {}. Requests waited for their turn \
         behind slow ones, and service time, which counts from the actual send, hides that.",
        place(group[0]),
        time(Metric::ResponseTimeP99Us),
        time(Metric::ServiceTimeP99Us)
    )
}
