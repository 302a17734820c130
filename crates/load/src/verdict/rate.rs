//! Checks whether the offered rate was achieved, and if not, what limited it.

use super::{RunContext, connections};
use crate::clock::Nanos;
use results::{Figure, Figures, HistogramSummary, LoadResult, Rates, Verdict};
use statistics::backlog::Growth;

/// If half of the requests waited longer than this for the target, microseconds, it was behind all the time.
const BEHIND_P50_US: f64 = 1000.0;
/// A worker thread that was on a CPU for more than this fraction of the window could not have sent more. The
/// same holds for a process that used this fraction of its CPUs.
const BUSY_FRACTION: f64 = 0.95;
/// With more than this fraction of the possible requests in flight on average, the connections were the
/// limit.
const ALL_BUSY_FRACTION: f64 = 0.9;

/// In an open loop, due requests that were not sent in time make the result saturated, and so does a backlog that grows
/// throughout the window.
pub(super) fn check(result: &LoadResult, context: &RunContext, verdict: &mut Verdict) {
    let Some(offered) = result.rate.offered else { return };
    let requests = &result.requests;
    let offered_unit = if result.sessions.is_some() { " sessions/s" } else { "/s" };
    let is_missed = requests.unsent as f64 > (1.0 - Rates::ACHIEVED_FRACTION) * requests.scheduled as f64;
    let is_away = is_missed && 2 * context.unseen > requests.unsent;
    if is_away {
        let reason = format!(
            "schedule-lag: the generator did not run at the end of the window: {} requests that were due then were never sent",
            context.unseen
        );
        verdict.spoil(reason, Figures::times().with(Figure::Throughput));
    } else if is_missed {
        verdict.saturated = true;
        let who = bound(result, context);
        let reason = format!(
            "saturated: {:.0}/s completed of {offered:.0}{offered_unit} offered; {} due requests were never sent; {who}",
            result.rate.completed, requests.unsent
        );
        // Waiting times depend on the length of the run. The cost of a completed request does not.
        verdict.spoil(reason, Figures::times());
    } else if requests.late as f64 > (1.0 - Rates::ACHIEVED_FRACTION) * requests.scheduled as f64 {
        let late = format!("{} due requests were sent only after the end of the window", requests.late);
        // Behind all the time, or only at the end?
        let median = |lag: &HistogramSummary| lag.p50.unwrap_or_default();
        if median(&result.schedule_lag_us) - median(&result.generator_lag_us) > BEHIND_P50_US {
            verdict.saturated = true;
            let reason =
                format!("saturated: the target did not keep up with {offered:.0}{offered_unit}; {late}");
            verdict.spoil(reason, Figures::times());
        } else {
            verdict.notes.push(format!("behind-at-end: {late}, since the target stalled there"));
        }
    }
    if let Some(Growth { requests: [from, to], response_time_ns }) =
        context.growth.filter(|_| !verdict.saturated && !is_away)
    {
        verdict.saturated = true;
        let [early, late] = response_time_ns.map(|time: Nanos| time as f64 / 1e6);
        let who = bound(result, context);
        let reason = format!(
            "saturated: {:.1}/s completed of {offered:.1}{offered_unit} offered; unanswered requests grew throughout the window, from {from} \
             to {to}, and their typical times from {early:.1} to {late:.1} ms; {who}",
            result.rate.completed
        );
        verdict.spoil(reason, Figures::times());
    }
}

/// In a closed loop, a generator with full CPUs limits the throughput, whatever the target could do.
pub(super) fn check_generator(result: &LoadResult, cpus: f64, verdict: &mut Verdict) {
    let Some(full) = full(result, cpus).filter(|_| result.rate.offered.is_none()) else { return };
    let reason = format!(
        "generator-full: {full} of the window: throughput and times are its own limit (more --threads on free cores, \
         or a larger quota, show the target's)"
    );
    verdict.spoil(reason, Figures::times().with(Figure::Throughput));
}

/// Names the busiest thread, or all CPUs that the generator may use, if they were full. Spinning does not
/// count.
fn full(result: &LoadResult, cpus: f64) -> Option<String> {
    let generator = &result.generator;
    let thread = generator.busiest_working_fraction();
    if thread > BUSY_FRACTION {
        let (threads, share) = (result.threads, thread * 100.0);
        return Some(format!("the generator's busiest thread of {threads} worked for {share:.0} %"));
    }
    let spinning = generator.pacing.map_or(0.0, |pacing| pacing.spinning_fraction) * result.threads as f64;
    let on_cpu = (generator.cpu_user_s + generator.cpu_system_s) / result.duration_s.max(f64::MIN_POSITIVE);
    let share = (on_cpu - spinning) / cpus.max(f64::MIN_POSITIVE);
    let are = match cpus {
        1.0 => "the one CPU".to_owned(),
        whole if whole.fract() == 0.0 => "all CPUs".to_owned(),
        quota => format!("the {quota:.2} CPUs"),
    };
    (share > BUSY_FRACTION)
        .then(|| format!("the generator worked on {are} that it may use for {:.0} %", share * 100.0))
}

/// Describes what limited the rate.
fn bound(result: &LoadResult, context: &RunContext) -> String {
    if full(result, context.cpus).is_some() {
        return "the generator's CPU was full (more --threads on free cores may send more)".to_owned();
    }
    if let Some(share) = connections::missing(context) {
        let to = connections::missed(context).map_or(String::new(), |servers| format!(" to {servers}"));
        return format!("{share} of their time, connections{to} could not be opened");
    }
    // Little's law: requests in flight = rate × time of each.
    let service_time_us = result.service_time_us.mean.unwrap_or_default();
    let under_way = result.rate.completed * service_time_us / 1e6;
    let streams = context.peer_limit.unwrap_or(result.streams.max(1));
    let most = (result.connections * streams) as f64;
    if under_way > ALL_BUSY_FRACTION * most {
        let places = match result.streams {
            0 | 1 => format!("{} connections", result.connections),
            _ if context.peer_limit.is_some() => {
                format!(
                    "{streams} streams that the server allows on each of {} connections",
                    result.connections
                )
            }
            streams => format!("{streams} streams of {} connections", result.connections),
        };
        return format!(
            "all {places} were busy: with {:.1} ms for each request they carry no more (more --connections \
             show whether the target can)",
            service_time_us / 1000.0
        );
    }
    "the target did not keep up on these connections".to_owned()
}
