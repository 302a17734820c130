//! Checks whether there was anything to measure, and on as many connections as requested.

use super::RunContext;
use crate::error::ErrorKind;
use results::{Figures, LoadResult, Verdict};

/// With less than this fraction of the connections open at the start, or of their time in the window, the load was not the
/// requested one.
const OPEN_FRACTION: f64 = 0.99;

/// The share of the window's connection time for which connections could not be opened, if it is more than negligible.
pub(super) fn missing(context: &RunContext<'_>) -> Option<String> {
    let share = context.without_connection;
    (share > 1.0 - OPEN_FRACTION).then(|| format!("for {:.0} %", share * 100.0))
}

/// Explains why nothing was due in the window.
pub(super) fn nothing_measured(result: &LoadResult) -> String {
    if result.interrupted {
        return "interrupted: ended before the measured window".to_owned();
    }
    match commonest(result, |_| true) {
        Some((kind, _)) => format!("unreachable: {}", kind.meaning()),
        None => "nothing-measured: no request was due in the window".to_owned(),
    }
}

/// The most frequent error that `wanted` selects, and the total count of the selected errors.
fn commonest(result: &LoadResult, wanted: impl Fn(ErrorKind) -> bool) -> Option<(ErrorKind, u64)> {
    let count = |kind: &ErrorKind| result.requests.errors.get(kind.name()).copied().unwrap_or(0);
    let seen = || ErrorKind::ALL.into_iter().filter(|kind| wanted(*kind) && count(kind) > 0);
    seen().max_by_key(count).map(|kind| (kind, seen().map(|kind| count(&kind)).sum()))
}

/// With fewer connections than requested, the load was a different one. In an open loop, requests are due without them: what waits
/// for one has that wait in its response time.
pub(super) fn check(result: &LoadResult, context: &RunContext<'_>, verdict: &mut Verdict) {
    let failed = commonest(result, ErrorKind::is_of_connecting);
    let why = failed.map_or("they were closed at once, or not answered", |(kind, _)| kind.meaning());
    // Roaming connections need not all be open at the start.
    let at_start = context.connections_at_start.unwrap_or(result.connections);
    if (at_start as f64) < OPEN_FRACTION * result.connections as f64 {
        let reason =
            format!("connections: {at_start} of {} were open at the start; {why}", result.connections);
        verdict.spoil(reason, Figures::all());
    } else if let Some(share) = missing(context) {
        let text =
            format!("connections: {share} of their time in the window, they could not be opened; {why}");
        match result.rate.offered {
            None => verdict.spoil(text, Figures::all()),
            Some(_) => verdict.notes.push(text),
        }
    } else if let Some((_, attempts)) = failed {
        let attempts = if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
        verdict.notes.push(format!("connections: {attempts} to open one failed; {why}"));
    }
}
