//! The verdict: which figures of a result are usable. docs/method.md gives each bound with its reason.
//!
//! Read [`check`] first; each topic has a file. `connections.rs`: was there anything to measure, on as many
//! connections as requested? `rate.rs`: was the offered rate achieved? `errors.rs`: did too many requests
//! fail? `lag.rs`: how late was the generator itself, with `movement.rs`: how much can that have moved a
//! percentile? `notes.rs`: remarks that do not affect the figures.

mod connections;
mod errors;
mod lag;
mod movement;
mod notes;
mod rate;
#[cfg(test)]
mod tests;

use crate::error::ErrorKind;
use jiff::{SignedDuration, Timestamp};
use results::{Figures, LoadResult, Verdict};
use statistics::backlog::Growth;

/// Facts about the run that the result does not contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunContext<'a> {
    /// Connections that were open when the schedule started; `None` if connections roam.
    pub(crate) connections_at_start: Option<usize>,
    /// Fraction of the window's connection time for which connections could not be opened: of the server for which it is highest.
    pub(crate) without_connection: f64,
    /// That server, if each has its own connections and there are several.
    pub(crate) least_reached: Option<&'a str>,
    /// The window opened with the schedule.
    pub(crate) without_warmup: bool,
    /// Fixed number of requests of a closed loop.
    pub(crate) requests_wanted: Option<u64>,
    /// Agreed opening time of the window …
    pub(crate) start_at: Option<Timestamp>,
    /// … and the actual one.
    pub(crate) started_at: Timestamp,
    /// Amount by which the wall clock was set or drifted during the window.
    pub(crate) clock_moved: SignedDuration,
    /// Number of servers without a connection, if connections keep to theirs, and the number of all servers.
    pub(crate) servers_left_out: Option<(usize, usize)>,
    /// CPUs that the process may use at once: those of its affinity, limited by the quota of its control
    /// group.
    pub(crate) cpus: f64,
    /// The server with most of the requests dropped because too many waited, and the number of all such
    /// requests.
    pub(crate) crowded_out: Option<(&'a str, u64)>,
    /// The commonest failure at a server's first addresses, and how many attempts failed there before another one was tried.
    pub(crate) fallbacks: Option<(ErrorKind, u64)>,
    /// Addresses of servers' names at which no connection was left at the end of the window.
    pub(crate) abandoned_addresses: &'a [String],
    /// A name that could not be looked up again, and how often.
    pub(crate) failed_lookups: Option<(&'a str, u64)>,
    /// Fewest requests that a server allowed at once on a connection, if fewer than asked for.
    pub(crate) peer_limit: Option<usize>,
    /// The backlog, if it grows throughout the window.
    pub(crate) growth: Option<Growth>,
}

/// Computes the verdict of a result.
pub(crate) fn check(result: &LoadResult, context: RunContext<'_>) -> Verdict {
    let mut verdict = Verdict::usable();
    if result.requests.scheduled == 0 {
        verdict.spoil(connections::nothing_measured(result), Figures::all());
        return verdict;
    }
    if result.interrupted {
        verdict
            .notes
            .push(format!("interrupted: ended early, after {:.1} s of the window", result.duration_s));
    }
    connections::check(result, &context, &mut verdict);
    rate::check(result, &context, &mut verdict);
    rate::check_generator(result, context.cpus, &mut verdict);
    errors::check(result, &mut verdict);
    lag::check_sending(result, &mut verdict);
    lag::check_arrivals(result, &mut verdict);
    lag::note_hidden_waiting(result, &mut verdict);
    notes::cold_start(result, &context, &mut verdict);
    notes::servers_left_out(&context, &mut verdict);
    notes::fallbacks(&context, &mut verdict);
    notes::abandoned_addresses(&context, &mut verdict);
    notes::failed_lookups(&context, &mut verdict);
    notes::idle_closes(result, &mut verdict);
    notes::redirects(result, &mut verdict);
    notes::peer_limit(result, &context, &mut verdict);
    notes::messages_read_together(result, &mut verdict);
    notes::empty_streams(result, &mut verdict);
    notes::crowded_out(&context, &mut verdict);
    notes::number(result, &context, &mut verdict);
    notes::few_bursts(result, &mut verdict);
    notes::clock(result, &context, &mut verdict);
    verdict
}
