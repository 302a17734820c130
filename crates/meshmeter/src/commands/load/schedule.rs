//! Schedule of requests: from the options to what the engine follows.

use super::profile;
use crate::cli::{Clients, LoadArgs, OfferedRate, StartAt};
use crate::failure::Failure;
use experiment::definition::MAX_RUN_DURATION;
use jiff::{SignedDuration, Timestamp};
use load::{Arrival, ClientStage, RateStage, ScheduleSpec, Start, StartSignal, ThinkTime};
use std::time::Duration;

/// Length of the window if no option gives it.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);
/// Minimum length of a probe in a search if no option gives it.
const DEFAULT_PROBE: Duration = Duration::from_secs(5);

/// Maximum number of bursts to be expected: each is a stage of the schedule.
const MAX_BURSTS: f64 = 50_000.0;

/// A schedule and the length of the window.
pub struct Planned {
    pub schedule: ScheduleSpec,
    pub duration: Duration,
}

/// `at_once`: requests that the connections can carry concurrently. `threads`: total of all generators that
/// share the load. `implied`: clients of a load that no option describes.
pub fn plan(
    args: &LoadArgs,
    at_once: usize,
    threads: usize,
    implied: Option<usize>,
) -> Result<Planned, Failure> {
    let given = &args.schedule;
    let bound = given.duration.unwrap_or(match given.requests {
        Some(_) => MAX_RUN_DURATION,
        None => DEFAULT_DURATION,
    });
    if args.search.search {
        // Measures the capacity; the probes are open loops of their own.
        return Ok(closed(args, at_once, given.duration.unwrap_or(DEFAULT_PROBE)));
    }
    let stages = match &given.profile {
        Some(path) => Some(profile::stages(given, path)?),
        None if given.profile_steps || given.profile_scale.is_some() => {
            return Err(Failure::usage("--profile-steps and --profile-scale are for --profile"));
        }
        None => given.stages.clone(),
    };
    let is_open = stages.is_some() || matches!(given.rate, Some(OfferedRate::PerSecond(_)));
    if !is_open && given.arrival != Arrival::Uniform {
        return Err(Failure::usage("--arrival: in a closed loop responses bring the next requests")
            .with_hint("--rate or --profile make an open loop"));
    }
    let stages = match (stages, given.rate, &given.clients) {
        (Some(stages), _, _) => stages,
        (None, Some(OfferedRate::PerSecond(rate)), _) => vec![RateStage::steady(rate, bound)],
        (None, Some(OfferedRate::Unlimited), _) => return Ok(closed(args, at_once, bound)),
        (None, None, Some(Clients::Constant(clients))) => return Ok(closed(args, *clients, bound)),
        (None, None, Some(Clients::Ramp(from, to))) => {
            return changing(args, vec![ClientStage { from: *from, to: *to, duration: bound }]);
        }
        (None, None, Some(Clients::Stages(_))) if given.duration.is_some() => {
            return Err(Failure::usage("--duration: stages of clients have their own durations"));
        }
        (None, None, Some(Clients::Stages(stages))) => return changing(args, stages.clone()),
        (None, None, None) => {
            return Ok(closed(args, implied.map_or(at_once, |clients| clients.min(at_once)), bound));
        }
    };
    if stages.iter().all(|stage| stage.requests() == 0.0) {
        return Err(Failure::usage("every stage has the rate 0: nothing would be sent"));
    }
    if let Arrival::Bursts(bursts) = given.arrival {
        let whole: Duration = stages.iter().map(|stage| stage.duration).sum();
        if bursts.expected(given.warmup + whole) > MAX_BURSTS {
            return Err(Failure::usage(format!("--arrival: a run has at most {MAX_BURSTS} bursts"))
                .with_hint("longer bursts, or a shorter --duration"));
        }
    }
    let duration = open_duration(args, &stages, threads)?;
    Ok(Planned { schedule: ScheduleSpec::Open { stages, arrival: given.arrival }, duration })
}

fn closed(args: &LoadArgs, clients: usize, duration: Duration) -> Planned {
    let think_time = args.schedule.think_time.unwrap_or(ThinkTime::NONE);
    let schedule = ScheduleSpec::Closed { clients, think_time, requests: args.schedule.requests };
    Planned { schedule, duration }
}

/// A closed loop whose number of clients changes.
fn changing(args: &LoadArgs, stages: Vec<ClientStage>) -> Result<Planned, Failure> {
    if args.schedule.requests.is_some() {
        return Err(Failure::usage("--requests: a changing number of clients needs a time to change over"));
    }
    let duration = stages.iter().map(|stage| stage.duration).sum();
    let think_time = args.schedule.think_time.unwrap_or(ThinkTime::NONE);
    Ok(Planned { schedule: ScheduleSpec::ClientStages { stages, think_time }, duration })
}

/// Total duration of the stages, or the time until the requested number of requests was due.
fn open_duration(args: &LoadArgs, stages: &[RateStage], threads: usize) -> Result<Duration, Failure> {
    let given = &args.schedule;
    let whole = stages.iter().map(|stage| stage.duration).sum();
    let Some(requests) = given.requests else { return Ok(whole) };
    let (arrival, warmup) = (given.arrival, given.warmup);
    if let Some(duration) = load::duration_of(requests, stages, arrival, warmup, given.seed, threads) {
        return Ok(duration);
    }
    // An explicit duration may leave fewer requests. Stages that cannot produce the requested number are a
    // mistake.
    let most: f64 = stages.iter().map(RateStage::requests).sum();
    if given.duration.is_none() && most + 0.5 < requests as f64 {
        return Err(Failure::usage(format!(
            "--requests: only {most:.0} of {requests} requests would be due"
        ))
        .with_hint("a higher rate or longer stages bring more; one run takes 24h at most"));
    }
    Ok(whole)
}

/// Time at which the window opens.
pub fn start(args: &LoadArgs) -> Result<Start, Failure> {
    let (now, warmup) = (Timestamp::now(), args.schedule.warmup);
    let start = match args.schedule.start_at {
        None => return Ok(Start::AtOnce),
        Some(StartAt::StandardInput) => return Ok(Start::OnSignal(StartSignal::default())),
        Some(StartAt::After(time)) => now + time,
        Some(StartAt::Instant(instant)) => instant,
    };
    let ahead = start.duration_since(now);
    if ahead.is_negative() {
        return Err(Failure::usage(format!("--start-at: {start} is past, by {:.1?}", ahead.unsigned_abs())));
    }
    if ahead > SignedDuration::from_hours(1) {
        return Err(Failure::usage(format!("--start-at: {start} is more than an hour away")));
    }
    if ahead.unsigned_abs() < warmup {
        return Err(Failure::usage(
            "--start-at: the warm-up, which comes before, would have to start already",
        )
        .with_hint("a later instant, or a shorter --warmup"));
    }
    Ok(Start::At(start))
}
