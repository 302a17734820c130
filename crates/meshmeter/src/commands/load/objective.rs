//! Objective of a load: whether a run of this length can decide it, and whether it was met.

use crate::cli::LoadArgs;
use crate::failure::Failure;
use experiment::Objective;
use experiment::objective::Bound;
use load::{LoadSpec, Protocol, Replies, ScheduleSpec};
use results::units::format_duration;
use results::{LoadResult, SpokenProtocol};
use statistics::SAMPLES_BEYOND_A_PERCENTILE;
use std::time::Duration;

/// Rejects bounds that the run cannot resolve, as an experiment file does.
pub fn check(args: &LoadArgs, spec: &LoadSpec) -> Result<(), Failure> {
    let Some(objective) = &args.goal.objective else { return Ok(()) };
    check_times(objective, spec)?;
    if objective.achieved.is_some() && !spec.targets.sessions.is_empty() {
        return Err(Failure::usage("--objective: achieved is of requests, and sessions are offered")
            .with_hint("rate=R requires R completed requests/s"));
    }
    match &spec.schedule {
        ScheduleSpec::Open { .. } | ScheduleSpec::Replay(_) => check_requests(objective, spec),
        ScheduleSpec::Closed { .. } | ScheduleSpec::ClientStages { .. } if objective.achieved.is_some() => {
            Err(Failure::usage("--objective: achieved is of the offered rate, and a closed loop offers none")
                .with_hint("rate=R requires R completed requests/s"))
        }
        ScheduleSpec::Closed { .. } | ScheduleSpec::ClientStages { .. } => Ok(()),
    }
}

/// Rejects bounds of streams if the protocol has none, and bounds above the timeout: no request takes longer, so they could never
/// be missed.
pub fn check_times(objective: &Objective, spec: &LoadSpec) -> Result<(), Failure> {
    let why_none = match (spec.protocol, spec.spoken()) {
        (Protocol::WebSocket(Replies::InOrder(_)), _) => {
            Some("a WebSocket's messages are a stream with --pushes alone".to_owned())
        }
        (_, spoken @ (SpokenProtocol::Grpc | SpokenProtocol::Raw)) => {
            Some(format!("{} has no streams of events (text/event-stream)", spoken.name()))
        }
        _ => None,
    };
    if let (Some(name), Some(why)) = (objective.of_streams(), why_none) {
        return Err(without_streams(name, &why));
    }
    for (metric, bound) in objective.times() {
        if bound > spec.timeout {
            return Err(Failure::usage(format!(
                "--objective: {} under {} cannot be missed: requests end after {}",
                Bound::Time(metric, bound).name(),
                format_duration(bound),
                format_duration(spec.timeout)
            ))
            .with_hint("a longer --timeout"));
        }
    }
    Ok(())
}

/// Refuses an objective of streams if requests were answered, and no response was a stream: nothing shows what it bounds.
pub fn check_streams(objective: &Objective, result: &LoadResult) -> Result<(), Failure> {
    match objective.of_streams() {
        Some(name) if !result.has_streams() && result.requests.completed > 0 => {
            Err(without_streams(name, "no response was a stream of events (text/event-stream)"))
        }
        _ => Ok(()),
    }
}

/// Failure of an objective of streams of a load without them.
fn without_streams(name: &str, why: &str) -> Failure {
    let plain = name.rsplit('-').next().unwrap_or(name);
    Failure::usage(format!("--objective: {name} is of streams, and {why}"))
        .with_hint(format!("{plain} is of whole responses"))
}

/// A percentile based on a handful of requests is meaningless.
fn check_requests(objective: &Objective, spec: &LoadSpec) -> Result<(), Failure> {
    let needed = objective.requests_needed(SAMPLES_BEYOND_A_PERCENTILE);
    let rate = spec.offered_rate().unwrap_or_default();
    let requests = rate * spec.duration.as_secs_f64();
    // The fraction is not exact in binary.
    if requests >= needed * 0.999 {
        return Ok(());
    }
    let longer = Duration::from_secs_f64((needed / rate * 0.999).ceil());
    Err(Failure::usage(format!(
        "--objective: {requests:.0} requests cannot resolve its highest percentile: fewer than 10 would lie beyond it"
    ))
    .with_hint(format!("at this rate it takes {}", format_duration(longer))))
}
