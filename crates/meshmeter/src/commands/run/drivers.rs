//! Drivers of a trial: how each is started, when, and what its result says.

use experiment::environment::deploy::{Argument, DriverEnd, DriverLoad, DriverStart};
use experiment::environment::{SentLoad, TCP_REQUEST_BYTES};
use experiment::schema::{LoadResult, MergedPart};
use experiment::topology::Workload;
use experiment::units::format_duration;
use experiment::{PlannedTrial, Protocol};
use jiff::Timestamp;
use statistics::merge::{MergeError, merge_drivers};
use std::time::Duration;

/// Time that several drivers get to start and connect before their common warm-up.
const START_LEAD: Duration = Duration::from_secs(1);
/// Added for each driver.
const START_LEAD_PER_DRIVER: Duration = Duration::from_millis(50);

/// A driver after a trial.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DriverRun {
    /// Its name in the topology.
    pub name: String,
    /// How it ended; absent where it never did.
    pub end: Option<DriverEnd>,
}

impl DriverRun {
    /// A driver that has not ended.
    pub(super) fn without_end(name: &str) -> Self {
        Self { name: name.to_owned(), end: None }
    }

    /// Its result.
    pub(super) fn result(&self) -> Option<&LoadResult> {
        self.end.as_ref()?.result.as_ref().ok()
    }

    /// What it sent. Its bytes are those of the window; a request of the warm-up is as large.
    pub(super) fn sent(&self) -> Option<DriverLoad> {
        let result = self.result()?;
        let (requests, bytes) = (result.requests.sent, result.bytes.sent);
        let sent = SentLoad {
            requests: requests + result.warmup.sent,
            request_bytes: (requests > 0).then(|| bytes as f64 / requests as f64),
        };
        Some(DriverLoad { driver: self.name.clone(), sent })
    }
}

/// Time between the start of the drivers of a trial and their common warm-up. A single driver warms up at once.
pub(super) fn start_lead(planned: &PlannedTrial) -> Duration {
    match planned.spec.topology.drivers.len() {
        0 | 1 => Duration::ZERO,
        drivers => START_LEAD + START_LEAD_PER_DRIVER * u32::try_from(drivers).unwrap_or(u32::MAX),
    }
}

/// Every driver of the topology. Several open their windows together, counted from `now`: evenly spread over the time between
/// two requests of one of them, since drivers that send at the same instants would be late by each other.
pub(super) fn starts(planned: &PlannedTrial, now: Timestamp) -> Vec<DriverStart> {
    let drivers = &planned.spec.topology.drivers;
    let start_at = (drivers.len() > 1).then(|| now + start_lead(planned) + planned.warmup);
    let phase = phase_step(planned.load.rate, drivers.len());
    let start = |(number, driver): (u32, &experiment::topology::DriverPlacement)| DriverStart {
        driver: driver.name.clone(),
        // Each has arrivals of its own.
        arguments: arguments(
            planned,
            planned.generator_seed.wrapping_add(number.into()),
            start_at.map(|instant| instant + phase * number),
            &planned.spec.topology.workloads[driver.target],
        ),
        query: planned.query.clone(),
    };
    (0..).zip(drivers).map(start).collect()
}

/// Time by which the first request of a driver follows that of the driver before it. Closed loops have no common pace.
fn phase_step(rate: Option<f64>, drivers: usize) -> Duration {
    let step_s = rate.map_or(0.0, |rate| 1.0 / (rate * drivers as f64));
    Duration::try_from_secs_f64(step_s).unwrap_or_default()
}

/// Arguments of `meshmeter load`, but for those that the deployment adds.
fn arguments(
    planned: &PlannedTrial,
    seed: u64,
    start_at: Option<Timestamp>,
    target: &Workload,
) -> Vec<Argument> {
    let load = &planned.load;
    let (kind, amount) = match (load.rate, load.clients) {
        (Some(rate), _) => ("--rate", rate.to_string()),
        (None, clients) => ("--clients", clients.unwrap_or(1).to_string()),
    };
    let mut options = vec![
        (kind, amount),
        ("--arrival", load.arrival.clone()),
        ("--connections", load.connections.to_string()),
        ("--threads", planned.threads.to_string()),
        ("--warmup", format_duration(planned.warmup)),
        ("--duration", format_duration(planned.duration)),
        ("--timeout", format_duration(planned.timeout)),
        ("--seed", seed.to_string()),
    ];
    options.extend(planned.pacing.map(|pacing| ("--pacing", pacing.name().to_owned())));
    options.extend(start_at.map(|instant| ("--start-at", instant.to_string())));
    let options = options.into_iter();
    let options =
        options.flat_map(|(option, value)| [Argument::Text(option.to_owned()), Argument::Text(value)]);
    options.chain(protocol_arguments(target)).collect()
}

/// What the protocol needs that the URL does not say.
pub(crate) fn protocol_arguments(target: &Workload) -> Vec<Argument> {
    let text = |text: &str| Argument::Text(text.to_owned());
    match target.protocol {
        Protocol::Http1 => Vec::new(),
        Protocol::Http2 => vec![text("--http"), text("2")],
        // Reflection would send requests to the service that are not part of the load.
        Protocol::Grpc => {
            let content = service::ECHO_PROTO.as_bytes().to_vec();
            vec![text("--proto"), Argument::File { name: "echo.proto".to_owned(), content }]
        }
        Protocol::Tcp => vec![
            text("--body-size"),
            Argument::Text(TCP_REQUEST_BYTES.to_string()),
            text("--reply-size"),
            Argument::Text(target.tcp_reply_bytes().to_string()),
        ],
    }
}

/// The result of a single driver, or of all that have one together; absent where none has. The parts of a merged result
/// are left out: they are stored with the drivers.
///
/// # Errors
/// A result cannot be read, or two are the same.
pub(super) fn merged_result(drivers: &[DriverRun]) -> Result<Option<LoadResult>, MergeError> {
    if let [driver] = drivers {
        return Ok(driver.result().cloned());
    }
    let part =
        |driver: &DriverRun| Some(MergedPart { name: driver.name.clone(), result: driver.result()?.clone() });
    merge_drivers(drivers.iter().filter_map(part).collect())
}
