//! Remarks that do not affect the figures.

use super::RunContext;
use results::{Arrivals, BurstArrivals, GrpcMessages, IdleCloses, LoadResult, Verdict};
use std::time::Duration;

/// With fewer bursts than this, their share of the time is left to chance.
const MIN_BURSTS: u64 = 20;
/// With more than this fraction of the messages read with the one before, their times are noted to be unknown …
const READ_TOGETHER: f64 = 0.01;
/// … if they may be longer than this, microseconds.
const READ_TOGETHER_WITHIN_US: f64 = 100.0;
/// Number of addresses named in a note.
const ADDRESSES_NAMED: usize = 3;
/// A wall clock that is off by more than this after the window was set in the meantime …
const CLOCK_TOLERANCE: Duration = Duration::from_millis(10);
/// … if it is also off by more than this fraction of the window: ntpd and adjtime(3) slew by at most 0.05 %.
const CLOCK_DRIFT: f64 = 0.001;

/// Notes that the first requests are measured: they meet a target, and connections, that have carried none.
pub(super) fn cold_start(result: &LoadResult, context: &RunContext<'_>, verdict: &mut Verdict) {
    if context.without_warmup {
        let text = "warm-up: none, so the times include the first requests to a cold target (--warmup 3s leaves them out)";
        verdict.notes.push(text.to_owned());
    } else if result.warmup.sent == 0 {
        // It has the rate that the first stage begins with.
        let text =
            "warm-up: no request was due in it, so the times include the first requests to a cold target";
        verdict.notes.push(text.to_owned());
    }
}

/// Notes messages and events of streams whose times are not known.
pub(super) fn messages_read_together(result: &LoadResult, verdict: &mut Verdict) {
    let of_calls = result.grpc.as_ref().map(|messages| {
        let GrpcMessages { read_together, read_together_within_us, message_time_us, .. } = messages;
        ("message", *read_together, *read_together_within_us, message_time_us)
    });
    let of_events = result
        .events
        .as_ref()
        .zip(result.event_gap_us.as_ref())
        .map(|(events, gaps)| ("event", events.read_together, events.read_together_within_us, gaps));
    for (what, together, within_us, times) in of_calls.into_iter().chain(of_events) {
        let share = together as f64 / times.count.max(1) as f64;
        if share > READ_TOGETHER && within_us > READ_TOGETHER_WITHIN_US {
            verdict.notes.push(format!(
                "{what}s: {:.0} % of the times from one {what} to the next are recorded as 0, since one read returned both: \
                 they are up to {within_us:.0} µs",
                share * 100.0,
            ));
        }
    }
}

/// Notes streams in which no event came: a server that sheds load may answer so, with status 200.
pub(super) fn empty_streams(result: &LoadResult, verdict: &mut Verdict) {
    let Some(events) = result.events.filter(|events| events.empty > 0) else { return };
    verdict.notes.push(format!(
        "empty-streams: {} of {} complete streams had no event with content, only comments or control frames (errors among these), \
         or were compressed; they rank above all others in the time to the first event",
        events.empty, events.per_response.count
    ));
}

/// Notes servers that got no requests.
pub(super) fn servers_left_out(context: &RunContext<'_>, verdict: &mut Verdict) {
    if let Some((left_out, servers)) = context.servers_left_out {
        verdict.notes.push(format!(
            "servers: {left_out} of {servers} servers got no request, since each connection keeps to one (more \
             --connections reach them)"
        ));
    }
}

/// Notes connections that were opened at another address of their server's name than the first.
pub(super) fn fallbacks(context: &RunContext<'_>, verdict: &mut Verdict) {
    if let Some((kind, attempts)) = context.fallbacks {
        let attempts =
            if attempts == 1 { "1 connection".to_owned() } else { format!("{attempts} connections") };
        verdict.notes.push(format!(
            "addresses: {attempts} fell back to another address of the name; at the first, {}",
            kind.meaning()
        ));
    }
}

/// Notes addresses that the load has left: hosts that were away for a while and have returned carry none of it.
pub(super) fn abandoned_addresses(context: &RunContext<'_>, verdict: &mut Verdict) {
    let abandoned = context.abandoned_addresses;
    if !abandoned.is_empty() {
        let more = match abandoned.len().saturating_sub(ADDRESSES_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        verdict.notes.push(format!(
            "addresses: no connection was left at {}{more} at the end of the window; connections that fell back to another \
             address stay there",
            abandoned[..abandoned.len().min(ADDRESSES_NAMED)].join(", ")
        ));
    }
}

/// Notes a name that could not be looked up again.
pub(super) fn failed_lookups(context: &RunContext<'_>, verdict: &mut Verdict) {
    if let Some((endpoint, times)) = context.failed_lookups {
        let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
        verdict.notes.push(format!(
            "lookups: {endpoint} could not be looked up {times}; new connections went to the addresses found last"
        ));
    }
}

/// Notes a server that closes idle connections: requests that it meets fail here, and not behind a proxy that sends them again.
pub(super) fn idle_closes(result: &LoadResult, verdict: &mut Verdict) {
    let Some(IdleCloses { connections, requests }) = result.idle_closes else { return };
    let closed = match connections {
        0 => String::new(),
        count => format!("the server closed {count} of them while no request was under way"),
    };
    let text = if requests == 0 {
        format!("{closed}, and they were opened again; its keep-alive timeout is the likely reason")
    } else {
        let closed = if closed.is_empty() { closed } else { format!("; {closed}") };
        format!(
            "{requests} of {} requests were lost on connections that had been idle for 100 ms or longer{closed}; the server's \
             keep-alive timeout is the likely reason; a proxy in front of it sends such requests again, so that a mode without \
             proxies (none) looks worse than one with them (sidecar): a longer timeout or a higher rate avoids it",
            result.requests.sent
        )
    };
    verdict.notes.push(format!("idle-connections: {text}"));
}

/// Notes responses that are neither success nor error, unless the user said what they mean.
pub(super) fn redirects(result: &LoadResult, verdict: &mut Verdict) {
    if result.expected_status.is_some() {
        return;
    }
    let redirects = || result.requests.status.iter().filter(|(code, _)| code.starts_with('3'));
    let count: u64 = redirects().map(|(_, count)| count).sum();
    if count > 0 {
        let codes: Vec<&str> = redirects().map(|(code, _)| code.as_str()).collect();
        let percent = 100.0 * count as f64 / result.requests.completed.max(1) as f64;
        verdict.notes.push(format!(
            "redirects: {percent:.0} % of the responses have status {}; they are counted as answers, and no request follows them \
             (the expected statuses say whether they are errors: --expect-status, load.expect-status in an experiment)",
            codes.join(", ")
        ));
    }
}

/// Notes a server that allows fewer requests at once than asked for: the load is another one.
pub(super) fn peer_limit(result: &LoadResult, context: &RunContext<'_>, verdict: &mut Verdict) {
    if let Some(limit) = context.peer_limit {
        verdict.notes.push(format!(
            "streams: the server allows {limit} concurrent requests on a connection, fewer than the {} requested (more \
             --connections reach more)",
            result.streams
        ));
    }
}

/// Notes requests dropped because too many waited for one server.
pub(super) fn crowded_out(context: &RunContext<'_>, verdict: &mut Verdict) {
    if let Some((server, requests)) = context.crowded_out {
        verdict.notes.push(format!(
            "crowded-out: {requests} of the unsent requests could not even wait, most of them for {server}, which too many \
             waited for already; those for other servers went on"
        ));
    }
}

/// Notes that the requested number of requests was not reached in time.
pub(super) fn number(result: &LoadResult, context: &RunContext<'_>, verdict: &mut Verdict) {
    let Some(wanted) = context.requests_wanted.filter(|wanted| *wanted > result.requests.sent) else {
        return;
    };
    if !result.interrupted {
        verdict
            .notes
            .push(format!("requests: {} of {wanted} were sent when the time was over", result.requests.sent));
    }
}

/// Notes that the rate is another than the given one for the few bursts that a window has.
pub(super) fn few_bursts(result: &LoadResult, verdict: &mut Verdict) {
    let Some(Arrivals::Bursts(BurstArrivals { count, .. })) = result.arrivals else { return };
    if count < MIN_BURSTS {
        verdict.notes.push(format!(
            "bursts: {count} in the window, so that its offered rate is {:.0}/s by chance (a longer window, or shorter bursts, come \
             closer to the given rate)",
            result.rate.offered.unwrap_or_default()
        ));
    }
}

/// Notes clock problems: several generators agree on a start by their wall clocks.
pub(super) fn clock(result: &LoadResult, context: &RunContext<'_>, verdict: &mut Verdict) {
    let moved = context.clock_moved;
    if moved.unsigned_abs() > CLOCK_TOLERANCE.max(Duration::from_secs_f64(result.duration_s * CLOCK_DRIFT)) {
        verdict.notes.push(format!(
            "clock: the machine's clock was set by {:+.3} s during the window; started_at is by the clock as it was at its start",
            moved.as_secs_f64()
        ));
    }
    if let Some(wanted) = context.start_at {
        let away = context.started_at.duration_since(wanted);
        if away.unsigned_abs() > CLOCK_TOLERANCE {
            verdict.notes.push(format!(
                "start-at: the window opened {:+.3} s away from the agreed instant: the clock was set meanwhile",
                away.as_secs_f64()
            ));
        }
    }
}
