//! Which figures of a result may be used, from the result and how it came about. docs/method.md gives each bound with its reason.
//!
//! Read [`judge`] first; each topic has a file: `connections.rs` (was there anything to measure, and on as many connections as were
//! asked for?), `rate.rs` (was the offered rate achieved?), `errors.rs`, `lag.rs` (how
//! late was the generator itself?) with `movement.rs` (what can that have done to a percentile?), and `notes.rs`, for what takes
//! nothing from the figures.

mod connections;
mod errors;
mod lag;
mod movement;
mod notes;
mod rate;
#[cfg(test)]
mod tests;

use experiment::schema::{Figures, LoadResult, Verdict};
use jiff::{SignedDuration, Timestamp};

/// What the figures of a result do not tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances<'a> {
    /// The user ended the run before its time.
    pub(crate) interrupted: bool,
    /// Connections that were open when the schedule started; absent where they roam.
    pub(crate) connections_at_start: Option<usize>,
    /// A fixed number of requests that a closed loop was to send.
    pub(crate) requests_wanted: Option<u64>,
    /// The agreed instant at which the window was to open …
    pub(crate) start_at: Option<Timestamp>,
    /// … and when it did.
    pub(crate) started_at: Timestamp,
    /// By how much the wall clock was set or drifted during the window.
    pub(crate) clock_moved: SignedDuration,
    /// Servers without a connection, where connections keep to theirs, of all servers.
    pub(crate) servers_left_out: Option<(usize, usize)>,
    /// CPUs that the process may use at once: by its affinity, and whole ones by the quota of its control group.
    pub(crate) cpus: f64,
    /// Requests that were given up since too many waited for connections, and the server of most of them.
    pub(crate) crowded_out: Option<(&'a str, u64)>,
}

/// Judges a result.
pub(crate) fn judge(result: &LoadResult, circumstances: Circumstances<'_>) -> Verdict {
    let mut verdict = Verdict::usable();
    if result.requests.scheduled == 0 {
        verdict.spoil(connections::nothing_measured(result, circumstances.interrupted), Figures::all());
        return verdict;
    }
    if circumstances.interrupted {
        verdict
            .notes
            .push(format!("interrupted: ended early, after {:.1} s of the window", result.duration_s));
    }
    // Roaming connections need not all be open at the start.
    connections::judge(
        result,
        circumstances.connections_at_start.unwrap_or(result.connections),
        &mut verdict,
    );
    rate::judge(result, circumstances.cpus, &mut verdict);
    rate::judge_generator(result, circumstances.cpus, &mut verdict);
    errors::judge(result, &mut verdict);
    lag::judge_sending(result, &mut verdict);
    lag::judge_reading(result, &mut verdict);
    lag::note_hidden_waiting(result, &mut verdict);
    notes::servers_left_out(&circumstances, &mut verdict);
    notes::crowded_out(&circumstances, &mut verdict);
    notes::number(result, &circumstances, &mut verdict);
    notes::clock(result, &circumstances, &mut verdict);
    verdict
}
