//! What is worth a word and takes nothing from the figures.

use super::Circumstances;
use experiment::schema::{LoadResult, Verdict};
use std::time::Duration;

/// A wall clock that is off by more than this after the window was set meanwhile …
const CLOCK_TOLERANCE: Duration = Duration::from_millis(10);
/// … or by more than this share of the window: ntpd and adjtime(3) slew by 0.05 % at most.
const CLOCK_DRIFT: f64 = 0.001;

/// Servers that no request was for.
pub(super) fn servers_left_out(circumstances: &Circumstances<'_>, verdict: &mut Verdict) {
    if let Some((left_out, servers)) = circumstances.servers_left_out {
        verdict.notes.push(format!(
            "servers: {left_out} of {servers} servers got no request, since each connection keeps to one (more \
             --connections reach them)"
        ));
    }
}

/// Requests that were given up since too many waited for one server.
pub(super) fn crowded_out(circumstances: &Circumstances<'_>, verdict: &mut Verdict) {
    if let Some((server, requests)) = circumstances.crowded_out {
        verdict.notes.push(format!(
            "crowded-out: {requests} of the unsent requests could not even wait, most of them for {server}, which too many \
             waited for already; those for other servers went on"
        ));
    }
}

/// A fixed number of requests that was not reached in time.
pub(super) fn number(result: &LoadResult, circumstances: &Circumstances<'_>, verdict: &mut Verdict) {
    let Some(wanted) = circumstances.requests_wanted.filter(|wanted| *wanted > result.requests.sent) else {
        return;
    };
    if !circumstances.interrupted {
        verdict
            .notes
            .push(format!("requests: {} of {wanted} were sent when the time was over", result.requests.sent));
    }
}

/// Several generators agree on a time by their wall clocks.
pub(super) fn clock(result: &LoadResult, circumstances: &Circumstances<'_>, verdict: &mut Verdict) {
    let moved = circumstances.clock_moved;
    if moved.unsigned_abs() > CLOCK_TOLERANCE.max(Duration::from_secs_f64(result.duration_s * CLOCK_DRIFT)) {
        verdict.notes.push(format!(
            "clock: the machine's clock was set by {:+.3} s during the window; started_at is by the clock as it was at its start",
            moved.as_secs_f64()
        ));
    }
    if let Some(wanted) = circumstances.start_at {
        let away = circumstances.started_at.duration_since(wanted);
        if away.unsigned_abs() > CLOCK_TOLERANCE {
            verdict.notes.push(format!(
                "start-at: the window opened {:+.3} s away from the agreed instant: the clock was set meanwhile",
                away.as_secs_f64()
            ));
        }
    }
}
