//! Sentences on what the modes add to a request.

use super::run::Run;
use super::words;
use crate::curve::{Distribution, merged};
use experiment::Mode;
use experiment::schema::{Cell, Estimate};

/// Response time above so many times the service time is worth a sentence, where it is a millisecond and more.
const HIDES_FACTOR: f64 = 3.0;
const HIDES_AT_LEAST_US: f64 = 1000.0;

/// The answer in one sentence.
pub(super) fn headline(run: &Run<'_>) -> String {
    for mode in run.modes_with_proxies() {
        let Some(cell) = run.reference_cell(mode) else { continue };
        let cpu = super::resources::cores_a_proxy(cell).map(words::cores_value);
        let cpu =
            |join: &str| cpu.as_ref().map_or(String::new(), |cores| format!("{join} uses {cores} a proxy"));
        let under = words::sentence(&words::under(cell));
        let subject = words::subject(mode);
        match (cell.added_us.and_then(|added| added.p50), cell.response_time_us.and_then(|times| times.p50)) {
            (Some(added), _) => {
                let join = if added.excludes_zero() { " and" } else { "; it" };
                return format!("{under} {}{}.", compared(mode, &added, "the median"), cpu(join));
            }
            (None, Some(median)) => {
                let median = words::latency(&median);
                return format!(
                    "{under} the median response time through {subject} is {median}{}.",
                    cpu("; it")
                );
            }
            (None, None) => {}
        }
    }
    let floors = [Mode::None, Mode::EgressBypass].into_iter();
    let floor = floors
        .filter_map(|mode| run.reference_cell(mode))
        .find_map(|cell| Some((cell, cell.response_time_us?.p50?)));
    match floor {
        Some((cell, median)) => format!(
            "{} the median response time {} is {}.",
            words::sentence(&words::under(cell)),
            if cell.mode == Mode::None { "without a mesh" } else { "past the sidecar" },
            words::latency(&median)
        ),
        None => "Nothing can be said: no trial is valid.".into(),
    }
}

/// A clause on what a mode adds to its floor, as strong as the interval allows.
fn compared(mode: Mode, added_us: &Estimate, what: &str) -> String {
    let (subject, floor) = (words::subject(mode), words::mode(mode.floor().unwrap_or(Mode::None)));
    if added_us.low.is_none() {
        let more = words::latency(added_us);
        return format!("{subject} reads {more} more in {what} (one trial each, which shows no difference)");
    }
    if !added_us.excludes_zero() {
        let interval = words::latency(added_us);
        return format!("no difference is shown between {subject} and {floor} in {what}: {interval}");
    }
    format!("{subject} {} {what}", changes(added_us))
}

/// `adds 0.38 ms (0.35–0.41) to`, of an interval that excludes zero.
fn changes(added_us: &Estimate) -> String {
    if added_us.estimate > 0.0 {
        return format!("adds {} to", words::latency(added_us));
    }
    format!("takes {} off", words::latency(&added_us.map_reversed(std::ops::Neg::neg)))
}

/// The 99th percentile of the headline's mode; both percentiles of the other modes.
pub(super) fn tails_and_other_modes(run: &Run<'_>) -> Vec<String> {
    let headline_mode = run.modes_with_proxies().into_iter().find(|mode| run.reference_cell(*mode).is_some());
    let mut sentences = Vec::new();
    for mode in run.modes_with_proxies() {
        let Some((cell, added)) =
            run.reference_cell(mode).and_then(|cell| Some((cell, cell.added_us.as_ref()?)))
        else {
            continue;
        };
        let subject = words::subject(mode);
        let median = added.p50.as_ref().filter(|_| headline_mode != Some(mode)).map(|by| (by, "the median"));
        let tail = added.p99.as_ref().filter(|_| run.resolves(cell, 99.0));
        let tail = tail.map(|by| (by, "the 99th percentile"));
        let clauses = match (median, tail) {
            (Some((median, median_name)), Some((tail, tail_name)))
                if median.excludes_zero() && tail.excludes_zero() =>
            {
                let (first, second) = (changes(median), changes(tail));
                let second = if median.estimate > 0.0 { second.trim_start_matches("adds ") } else { &second };
                format!("{subject} {first} {median_name} and {second} {tail_name}")
            }
            (median, tail) => {
                let clauses: Vec<String> =
                    median.into_iter().chain(tail).map(|(added, name)| compared(mode, added, name)).collect();
                clauses.join("; ")
            }
        };
        if !clauses.is_empty() {
            sentences.push(format!("{} {clauses}.", words::sentence(&words::under(cell))));
        }
    }
    sentences
}

/// Cells whose service time looks good because requests waited before they were sent.
pub(super) fn hidden_by_service_time(run: &Run<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for cell in run.summary.cells.iter().filter(|cell| cell.valid > 0 && cell.load.rate.is_some()) {
        let (response_us, service_us) = (
            whole_p99(run, cell, Distribution::ResponseTime),
            whole_p99(run, cell, Distribution::ServiceTime),
        );
        if response_us > service_us * HIDES_FACTOR && response_us > service_us + HIDES_AT_LEAST_US {
            sentences.push(format!(
                "{}: the 99th percentile of the response time is {}, while service time reads {}. Requests waited for \
                 their turn behind slow ones, and service time, which counts from the actual send, hides that.",
                words::sentence(&words::cell(cell)),
                words::latency_value(response_us),
                words::latency_value(service_us)
            ));
        }
    }
    sentences
}

/// The 99th percentile over all valid trials of a cell; the mean over trials where a histogram cannot be read.
fn whole_p99(run: &Run<'_>, cell: &Cell, distribution: Distribution) -> f64 {
    match merged(run.trials, cell.key(), distribution) {
        Ok(Some(histogram)) => histogram.percentile_us(99.0),
        _ => {
            let percentiles: Vec<f64> = run
                .trials
                .valid_results(cell.key())
                .filter_map(|result| match distribution {
                    Distribution::ResponseTime => result.response_time_us.p99,
                    Distribution::ServiceTime => result.service_time_us.p99,
                    Distribution::ScheduleLag => result.schedule_lag_us.p99,
                })
                .collect();
            percentiles.iter().sum::<f64>() / percentiles.len().max(1) as f64
        }
    }
}
