//! Checks whether there was anything to measure, and on as many connections as requested.

use super::{RunContext, listed};
use crate::error::ErrorKind;
use results::{Figures, LoadResult, Verdict};
use std::collections::BTreeMap;

/// With less than this fraction of the connections open at the start, or of their time in the window, the load was not the
/// requested one.
const OPEN_FRACTION: f64 = 0.99;

/// The share of the window's connection time for which connections could not be opened, if it is more than negligible.
pub(super) fn missing(context: &RunContext) -> Option<String> {
    let share = context.without_connection;
    let up_to = if context.least_reached.len() > 1 { "up to " } else { "" };
    is_missed(share).then(|| format!("for {up_to}{:.0} %", share * 100.0))
}

/// True if this fraction of a window without connections is more than negligible.
pub(crate) fn is_missed(share: f64) -> bool {
    share > 1.0 - OPEN_FRACTION
}

/// Names the servers, if there are several.
pub(super) fn missed(context: &RunContext) -> Option<String> {
    (!context.least_reached.is_empty()).then(|| listed(&context.least_reached))
}

/// Explains why nothing was due in the window.
pub(super) fn nothing_measured(result: &LoadResult) -> String {
    if result.interrupted {
        return "interrupted: ended before the measured window".to_owned();
    }
    match commonest(&[&result.requests.errors, &result.warmup.errors], |_| true) {
        Some(kind) => format!("unreachable: {}", kind.meaning()),
        None => "nothing-measured: no request was due in the window".to_owned(),
    }
}

/// The most frequent error that `wanted` selects.
fn commonest(errors: &[&BTreeMap<String, u64>], wanted: impl Fn(ErrorKind) -> bool) -> Option<ErrorKind> {
    let count = |kind: &ErrorKind| errors.iter().filter_map(|counts| counts.get(kind.name())).sum::<u64>();
    let seen = ErrorKind::ALL.into_iter().filter(|kind| wanted(*kind) && count(kind) > 0);
    seen.max_by_key(count)
}

/// Failed attempts to open a connection.
fn attempts(errors: &BTreeMap<String, u64>) -> u64 {
    let kinds = ErrorKind::ALL.into_iter().filter(|kind| kind.is_of_connecting());
    kinds.filter_map(|kind| errors.get(kind.name())).sum()
}

/// With fewer connections than requested, the load was a different one. In an open loop, requests are due without them: what waits
/// for one has that wait in its response time.
pub(super) fn check(result: &LoadResult, context: &RunContext, verdict: &mut Verdict) {
    let [in_window, before] = [&result.requests.errors, &result.warmup.errors]
        .map(|errors| (attempts(errors), commonest(&[errors], ErrorKind::is_of_connecting)));
    let why = |kind: Option<ErrorKind>| {
        kind.map_or("they were closed at once, or not answered", ErrorKind::meaning)
    };
    // Roaming connections need not all be open at the start.
    let at_start = context.connections_at_start.unwrap_or(result.connections);
    if (at_start as f64) < OPEN_FRACTION * result.connections as f64 {
        let which = missed(context).map_or(String::new(), |servers| format!(", not those to {servers}"));
        let reason = format!(
            "connections: {at_start} of {} were open at the start{which}; {}",
            result.connections,
            why(before.1.or(in_window.1))
        );
        verdict.spoil(reason, Figures::all());
    } else if let Some(share) = missing(context) {
        let why = why(in_window.1.or(before.1));
        let which = missed(context).map_or("they".to_owned(), |servers| format!("those to {servers}"));
        let text =
            format!("connections: {share} of their time in the window, {which} could not be opened; {why}");
        match result.rate.offered {
            None => verdict.spoil(text, Figures::all()),
            Some(_) => verdict.notes.push(text),
        }
    } else if in_window.0 + before.0 > 0 {
        let (attempts, when) = match (in_window.0, before.0) {
            (0, before) => (before, " before the window".to_owned()),
            (in_window, 0) => (in_window, String::new()),
            (in_window, before) => (in_window, format!(", and {before} before the window")),
        };
        let attempts = if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
        let why = why(in_window.1.or(before.1));
        verdict.notes.push(format!("connections: {attempts} to open one failed{when}; {why}"));
    }
}
