//! Output of `meshmeter load` at its end.
//!
//! A saturated result starts with a warning: its percentiles depend on how long the run lasted.

use super::style::plain;
use crate::format::{self, TimeUnit};
use results::{
    Clock, FIRST_ERROR_STATUS, Figure, GrpcMessages, HistogramSummary, LoadResult, Metric, RequestCounts,
    SessionCounts, SessionResults, SizeSummary, UrlResult,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A run of the load generator as text, ending with a line break.
#[must_use]
pub fn load_text(result: &LoadResult) -> String {
    let mut text = String::new();
    verdict(&mut text, result);
    objective(&mut text, result);
    rates(&mut text, result);
    times(&mut text, result);
    apart(&mut text, result);
    counts(&mut text, result);
    generator(&mut text, result);
    exports(&mut text, result);
    for note in &result.verdict.notes {
        let _ = writeln!(text, "note: {}", plain(note));
    }
    text
}

/// Snapshots that a receiver of live metrics did not accept.
fn exports(text: &mut String, result: &LoadResult) {
    for export in result.exports.iter().filter(|export| export.dropped() > 0) {
        let causes: Vec<String> =
            export.errors.iter().map(|(cause, count)| format!("{} ({count})", plain(cause))).collect();
        let because = if causes.is_empty() { String::new() } else { format!(": {}", causes.join(", ")) };
        let _ = writeln!(
            text,
            "note: {} of {} snapshots did not reach {}{because}",
            export.dropped(),
            export.snapshots,
            plain(&export.to)
        );
    }
}

fn verdict(text: &mut String, result: &LoadResult) {
    let verdict = &result.verdict;
    if verdict.saturated {
        let unsent = result.requests.unsent;
        let _ = write!(text, "SATURATED: the offered rate was not kept up");
        if unsent > 0 {
            let requests = format::counted(unsent, "due request was", "due requests were");
            let _ = write!(text, "; {requests} never sent");
        }
        text.push_str(".\nHow long requests waited depends on how long the run lasted.\n");
    }
    let spoiled: Vec<&str> = verdict.spoiled_figures().iter().map(Figure::name).collect();
    match (verdict.valid, spoiled.as_slice()) {
        (true, []) => text.push_str("valid\n"),
        (true, spoiled) => {
            let _ = writeln!(text, "valid, UNUSABLE: {}", spoiled.join(", "));
        }
        (false, _) => text.push_str("NOT VALID\n"),
    }
    for reason in &verdict.reasons {
        let _ = writeln!(text, "  {}", plain(reason));
    }
    text.push('\n');
}

fn objective(text: &mut String, result: &LoadResult) {
    let Some(objective) = &result.objective else { return };
    let _ = writeln!(text, "{:<14} {}", "objective", if objective.met { "met" } else { "NOT MET" });
    for bound in &objective.bounds {
        let least = matches!(bound.figure.as_str(), "rate" | "achieved");
        let is_of_streams =
            Metric::bounded(&bound.figure).and_then(Metric::clock).is_some_and(Clock::is_of_streams);
        let known_above = result.censored_above_us.filter(|_| !is_of_streams);
        let _ = writeln!(
            text,
            "  {:<12} {}, required {} or {}: {}",
            plain(&bound.figure),
            bound.measured.map_or_else(|| format::above(known_above), |us| in_unit(us, &bound.unit)),
            in_unit(bound.limit, &bound.unit),
            if least { "more" } else { "less" },
            if bound.holds { "holds" } else { "DOES NOT HOLD" }
        );
    }
    for note in &objective.notes {
        let _ = writeln!(text, "  {}", plain(note));
    }
    text.push('\n');
}

/// A figure of an objective in its unit.
pub(super) fn in_unit(figure: f64, unit: &str) -> String {
    match unit {
        "us" => format::time(figure),
        "fraction" => format::percent(figure),
        _ => format::rate(figure),
    }
}

fn rates(text: &mut String, result: &LoadResult) {
    for url in &result.urls {
        let _ = writeln!(text, "{:<14} {}", "target", plain(url));
    }
    if let Some(merged) = &result.merged {
        let together = format!(
            "{}, together for {} of {}",
            format::counted(merged.parts.len() as u64, "generator", "generators"),
            format::duration(merged.overlap_s),
            format::duration(result.duration_s)
        );
        let _ = writeln!(text, "{:<14} {together}", "sum of");
    }
    let loop_kind = match result.clients {
        Some(clients) => {
            let least = result.client_stages.iter().map(|stage| stage.from.min(stage.to)).min();
            let least = least.map_or_else(String::new, |least| format!("{least} to "));
            format!("closed loop, {least}{}", format::counted(clients as u64, "client", "clients"))
        }
        None if result.rate.offered.is_none() => "open and closed loops".to_owned(),
        None => "open loop".to_owned(),
    };
    let _ = writeln!(
        text,
        "{:<14} {}, {loop_kind}, {}{}, {}",
        "window",
        format::duration(result.duration_s),
        format::counted(result.connections as u64, "connection", "connections"),
        if result.streams > 1 { format!(" of {} streams", result.streams) } else { String::new() },
        format::counted(result.threads as u64, "thread", "threads"),
    );
    if let Some(settings) = &result.connection_settings {
        let _ = writeln!(text, "{:<14} {}", "connections", plain(&settings.to_string()));
    }
    if let Some(arrivals) = &result.arrivals {
        let _ = writeln!(text, "{:<14} {}", "arrivals", plain(&arrivals.to_string()));
    }
    let offered = result
        .rate
        .offered
        .map(|rate| {
            format!(
                "offered {}{}, ",
                format::offered_rate(rate),
                if result.sessions.is_some() { " of sessions" } else { "" }
            )
        })
        .unwrap_or_default();
    let _ = writeln!(
        text,
        "{:<14} {offered}sent {}, completed {}",
        "rate",
        format::rate(result.rate.sent),
        format::rate(result.rate.completed)
    );
    text.push('\n');
}

fn times(text: &mut String, result: &LoadResult) {
    let lines = [
        ("response time", &result.response_time_us),
        ("service time", &result.service_time_us),
        ("schedule lag", &result.schedule_lag_us),
    ];
    if lines.iter().all(|(_, times)| times.requests() == 0) {
        text.push_str("No request was completed in the window: there are no times.\n\n");
        return;
    }
    let unit = TimeUnit::for_times(lines.iter().flat_map(|(_, times)| [times.p50, times.p99]).flatten());
    let _ = writeln!(
        text,
        "{:<14} {:>9} {:>9} {:>9} {:>9} {:>9}",
        format!("times in {}", unit.symbol()),
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max"
    );
    for (name, times) in lines {
        let _ = write!(text, "{name:<14}");
        for figure in figures(times) {
            let number = if times.requests() == 0 {
                format::ABSENT.to_owned()
            } else {
                unit.number_or_above(figure, result.censored_above_us)
            };
            let _ = write!(text, " {number:>9}");
        }
        text.push('\n');
    }
    text.push_str("response time: from when the request was due; service time: from when it was sent\n");
    let censored = result.response_time_us.censored;
    if censored > 0 {
        let requests = format::counted(censored, "request", "requests");
        let above = format::above(result.censored_above_us);
        let _ = writeln!(text, "{requests} without a response: {above}, above all others");
    }
    text.push('\n');
}

/// A line per URL or kind of request, if they were measured apart.
fn apart(text: &mut String, result: &LoadResult) {
    let urls = result.per_url.iter().map(|record| (record.url.as_str(), record));
    let kinds = result.kinds.iter().map(|kind| (kind.name.as_str(), &kind.requests));
    let records: Vec<(&str, &UrlResult)> = urls.chain(kinds).collect();
    if records.is_empty() {
        return;
    }
    let one = if result.kinds.is_empty() { "URL" } else { "kind" };
    let medians = records.iter().map(|(_, record)| &record.response_time_us);
    let unit = TimeUnit::for_times(medians.flat_map(|times| [times.p50, times.p99]).flatten());
    let head = format!("in {}", unit.symbol());
    let _ = writeln!(
        text,
        "{:>9} {:>9} {:>9} {:>9} {:>9}  response time per {one}, {head}",
        "sent", "failed", "unsent", "p50", "p99"
    );
    for (name, record) in records {
        let times = &record.response_time_us;
        let number = |figure: Option<f64>| {
            if times.requests() == 0 {
                format::ABSENT.to_owned()
            } else {
                unit.number_or_above(figure, record.censored_above_us)
            }
        };
        let [sent, failed, unsent] = [record.sent, record.failed, record.unsent].map(format::count);
        let (p50, p99) = (number(times.p50), number(times.p99));
        let name = plain(name);
        let _ =
            writeln!(text, "{sent:>9} {failed:>9} {unsent:>9} {p50:>9} {p99:>9}  {name}{}", faults(record));
    }
    text.push('\n');
}

/// Errors of a URL or kind, and its statuses that are errors unless they are expected.
fn faults(record: &UrlResult) -> String {
    let is_error = |status: &str| status.parse().is_ok_and(|code: u16| code >= FIRST_ERROR_STATUS);
    let mut counts = record.errors.clone();
    counts.extend(record.status.clone().into_iter().filter(|(status, _)| is_error(status)));
    if counts.is_empty() { String::new() } else { format!(" ({})", by_kind(&counts)) }
}

fn figures(times: &HistogramSummary) -> [Option<f64>; 5] {
    [times.p50, times.p90, times.p99, times.p99_9, times.max]
}

fn counts(text: &mut String, result: &LoadResult) {
    let requests = &result.requests;
    let mut line = format!(
        "{} due, {} sent, {} completed, {} failed",
        format::count(requests.scheduled),
        format::count(requests.sent),
        format::count(requests.completed),
        format::count(requests.failed)
    );
    if requests.late > 0 {
        let _ = write!(line, ", {} of the sent after the end of the window", format::count(requests.late));
    }
    if requests.unsent > 0 {
        let _ = write!(line, ", {} never sent", format::count(requests.unsent));
    }
    let _ = writeln!(text, "{:<14} {line}", "requests");
    sessions(text, result);
    if !requests.status.is_empty() {
        let _ = writeln!(text, "{:<14} {}", "statuses", by_kind(&requests.status));
    }
    if let Some(unexpected) = requests.unexpected_status.as_ref().filter(|statuses| !statuses.is_empty()) {
        let _ = writeln!(text, "{:<14} {}", "not expected", by_kind(unexpected));
    }
    if !requests.grpc_status.is_empty() {
        let _ = writeln!(text, "{:<14} {}", "gRPC statuses", by_kind(&requests.grpc_status));
    }
    let errors = if requests.errors.is_empty() { "none".to_owned() } else { by_kind(&requests.errors) };
    let _ = writeln!(text, "{:<14} {errors}", "errors");
    if !result.warmup.errors.is_empty() {
        let _ = writeln!(text, "{:<14} {}, before the window", "", by_kind(&result.warmup.errors));
    }
    handshakes(text, &result.handshake_time_us);
    if let Some(grpc) = &result.grpc {
        messages(text, grpc, requests);
    }
    events(text, result);
}

/// A line for sessions and how they ended.
fn sessions(text: &mut String, result: &LoadResult) {
    let Some(SessionResults { counts, .. }) = &result.sessions else { return };
    let SessionCounts { started, completed, failed, cut, failed_at } = counts;
    let [started, completed, failed, cut] =
        [started, completed, failed, cut].map(|count| format::count(*count));
    let at = if failed_at.is_empty() { String::new() } else { format!(" ({})", by_kind(failed_at)) };
    let line = format!("{started} started, {completed} completed, {failed} failed{at}, {cut} cut by the end");
    let _ = writeln!(text, "{:<14} {line}", "sessions");
}

/// Lines for the events of streams of events.
fn events(text: &mut String, result: &LoadResult) {
    let Some(events) = &result.events else { return };
    let SizeSummary { count, min, mean, max, .. } = events.per_response;
    let per_response = match count {
        0 => "no complete response".to_owned(),
        _ if min == max => format!("{} per response", format::count(min)),
        _ => format!("{} to {} per response, {mean:.1} on average", format::count(min), format::count(max)),
    };
    let _ = writeln!(text, "{:<14} {} received, {per_response}", "events", format::count(events.received));
    let lines = [
        ("first byte", &result.first_byte_us),
        ("first event", &result.first_event_us),
        ("next event", &result.event_gap_us),
    ];
    lines.into_iter().for_each(|(name, times)| times.iter().for_each(|times| time_line(text, name, times)));
}

/// A line for a distribution, unless it is empty.
fn time_line(text: &mut String, name: &str, times: &HistogramSummary) {
    if times.count == 0 {
        return;
    }
    let [p50, p99, max] = [times.p50, times.p99, times.max].map(|time| format::time_or_above(time, None));
    let _ = writeln!(text, "{name:<14} p50 {p50}, p99 {p99}, max {max}");
}

/// Lines for the messages of gRPC calls, if there were more messages than calls.
fn messages(text: &mut String, grpc: &GrpcMessages, calls: &RequestCounts) {
    if grpc.messages_sent <= calls.sent && grpc.messages_received <= calls.completed {
        return;
    }
    let _ = writeln!(
        text,
        "{:<14} {} sent, {} received",
        "messages",
        format::count(grpc.messages_sent),
        format::count(grpc.messages_received)
    );
    time_line(text, "first message", &grpc.first_message_time_us);
    time_line(text, "next message", &grpc.message_time_us);
}

/// A line for the TLS handshakes of the whole run, if there were any. The generator never resumes a session.
fn handshakes(text: &mut String, times: &HistogramSummary) {
    if times.count > 0 {
        let _ = writeln!(
            text,
            "{:<14} {}: p50 {}, p99 {}, max {}",
            "TLS",
            format::counted(times.count, "full handshake", "full handshakes"),
            format::time_or_above(times.p50, None),
            format::time_or_above(times.p99, None),
            format::time_or_above(times.max, None)
        );
    }
}

fn by_kind(counts: &BTreeMap<String, u64>) -> String {
    let parts: Vec<String> =
        counts.iter().map(|(kind, count)| format!("{}: {}", plain(kind), format::count(*count))).collect();
    parts.join(", ")
}

fn generator(text: &mut String, result: &LoadResult) {
    let generator = &result.generator;
    let cores = if result.duration_s > 0.0 {
        format::cores((generator.cpu_user_s + generator.cpu_system_s) / result.duration_s)
    } else {
        format::ABSENT.to_owned()
    };
    let network = generator.network.map(|network| format!(", on {}", network.name())).unwrap_or_default();
    let _ = writeln!(
        text,
        "{:<14} {cores}, {} per request, busiest thread {} of its time, {} memory at most{network}",
        "generator",
        format::time(generator.cpu_us_per_request),
        format::percent(generator.busiest_thread_fraction),
        format::size(generator.memory_peak_bytes as f64)
    );
}
