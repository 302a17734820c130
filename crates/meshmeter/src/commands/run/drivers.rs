//! Drivers of a trial and their generators: arguments, start times, and results.

use super::fleet;
use experiment::environment::deploy::{
    Argument, DriverEnd, DriverLoad, DriverResult, DriverStart, DriverVerb,
};
use experiment::environment::{SentLoad, TCP_REQUEST_BYTES, error_chain};
use experiment::settings::fleet::FleetSettings;
use experiment::settings::stream::chat_request;
use experiment::topology::{DriverPlacement, Workload};
use experiment::{PlannedTrial, Protocol};
use jiff::Timestamp;
use results::units::format_duration;
use results::{FleetResult, LoadResult, StreamLoad};
use statistics::merge::{MergeError, MergeInput, merge_drivers, merge_generators};
use std::time::Duration;

/// Time between sending the start time and the start of the warm-up, for the message to arrive.
const START_LEAD: Duration = Duration::from_millis(250);
/// Added per generator.
const START_LEAD_PER_GENERATOR: Duration = Duration::from_millis(5);

/// A generator after a trial.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GeneratorRun {
    /// Name of the generator.
    pub name: String,
    /// How it ended; `None` if it never did.
    pub end: Option<DriverEnd>,
}

/// A driver after a trial.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DriverRun {
    /// Name of the driver in the topology.
    pub name: String,
    pub generators: Vec<GeneratorRun>,
    /// The result of its generator, or the merged results of several; the error says why there is none.
    pub result: Result<DriverResult, String>,
}

impl DriverRun {
    /// A driver with its generators, which have ended.
    pub(super) fn new(name: String, generators: Vec<GeneratorRun>) -> Self {
        let result = match generators.as_slice() {
            [GeneratorRun { end: Some(end), .. }] => end.result.clone(),
            several => together(several).map(DriverResult::from),
        };
        Self { name, generators, result }
    }

    /// A driver that did not end.
    pub(super) fn without_end(name: &str) -> Self {
        Self::new(name.to_owned(), Vec::new())
    }

    /// The result if the driver is a load.
    pub(super) fn result(&self) -> Option<&LoadResult> {
        self.result.as_ref().ok()?.load()
    }

    /// The result if the driver is a fleet.
    pub(super) fn fleet(&self) -> Option<&FleetResult> {
        self.result.as_ref().ok()?.fleet()
    }

    /// True if `component` is one of this driver's generators.
    pub(super) fn has_generator(&self, component: &str) -> bool {
        self.generators.iter().any(|generator| generator.name == component)
    }

    /// Requests sent, warm-up included. The size of a request is measured in the window; warm-up requests
    /// have the same size.
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

/// Merges the results of those generators of a driver that have one.
fn together(generators: &[GeneratorRun]) -> Result<LoadResult, String> {
    let part = |generator: &GeneratorRun| {
        let result = generator.end.as_ref()?.result.as_ref().ok()?.load()?.clone();
        Some(MergeInput { name: generator.name.clone(), result })
    };
    let merged = merge_generators(generators.iter().filter_map(part).collect());
    merged.map_err(|error| error_chain(&error))?.ok_or_else(|| "it has no result".to_owned())
}

/// Total number of generators in a trial.
pub(super) fn generator_count(planned: &PlannedTrial) -> usize {
    let topology = &planned.spec.topology;
    topology.drivers.iter().map(|driver| topology.workloads[driver.at].replicas).sum()
}

/// Starts of every generator of every driver, or of the fleet. Several generators are held until all are
/// ready.
pub(crate) fn starts(planned: &PlannedTrial) -> Vec<DriverStart> {
    if let Some(settings) = &planned.fleet {
        return fleet_starts(planned, settings);
    }
    let topology = &planned.spec.topology;
    let held = generator_count(planned) > 1;
    let mut starts = Vec::new();
    for (number, driver) in (0..).zip(&topology.drivers) {
        let generators: Vec<String> = topology.generator_names(driver).collect();
        // Each driver has its own arrival times, which its generators share.
        let seed = planned.generator_seed.wrapping_add(number);
        let arguments = arguments(planned, seed, &topology.workloads[driver.target]);
        let count = generators.len();
        starts.extend(generators.into_iter().enumerate().map(|(pod, generator)| DriverStart {
            driver: driver.name.clone(),
            generator,
            pod,
            verb: DriverVerb::Load { held, queries: planned.queries.clone() },
            arguments: arguments.iter().cloned().chain(share_arguments(pod, count)).collect(),
        }));
    }
    starts
}

fn fleet_starts(planned: &PlannedTrial, settings: &FleetSettings) -> Vec<DriverStart> {
    let drivers = planned.spec.topology.drivers.iter();
    let start = |driver: &DriverPlacement| DriverStart {
        driver: driver.name.clone(),
        generator: driver.name.clone(),
        pod: 0,
        verb: DriverVerb::Fleet,
        arguments: fleet::arguments(settings),
    };
    drivers.map(start).collect()
}

/// Options for one of several generators that share a load. Histograms per second make merged seconds exact.
fn share_arguments(generator: usize, of: usize) -> Vec<Argument> {
    let share = format!("{}/{of}", generator + 1);
    let texts: &[&str] = if of > 1 { &["--share", &share, "--series-histograms"] } else { &[] };
    texts.iter().map(|text| Argument::Text((*text).to_owned())).collect()
}

/// Window opening of each generator, if all are released at `now` and their warm-up starts after `lead`. Generators of one driver open their windows together. Drivers are spread evenly over the
/// interval between two requests of one driver: drivers that send at the same instants would delay each
/// other.
pub(super) fn window_openings(
    planned: &PlannedTrial,
    now: Timestamp,
    lead: Duration,
) -> Vec<(String, Timestamp)> {
    let topology = &planned.spec.topology;
    let opening = now + lead + planned.warmup;
    let phase = phase_step(planned.load.rate, topology.drivers.len());
    let drivers = (0..).zip(&topology.drivers);
    drivers
        .flat_map(|(number, driver): (u32, _)| {
            topology.generator_names(driver).map(move |generator| (generator, opening + phase * number))
        })
        .collect()
}

/// Time between sending the start time and the start of the warm-up, if the message takes up to `release_delay`. It doubles with each
/// of the `attempts` that were too late for a generator.
pub(super) fn start_lead(planned: &PlannedTrial, release_delay: Duration, attempts: u32) -> Duration {
    let generators = u32::try_from(generator_count(planned)).unwrap_or(u32::MAX);
    let lead = START_LEAD + release_delay + START_LEAD_PER_GENERATOR.saturating_mul(generators);
    lead.saturating_mul(1 << attempts)
}

/// Offset between the first requests of consecutive drivers. Closed loops have no common pace, hence no
/// offset.
fn phase_step(rate: Option<f64>, drivers: usize) -> Duration {
    let step_s = rate.map_or(0.0, |rate| 1.0 / (rate * drivers as f64));
    Duration::try_from_secs_f64(step_s).unwrap_or_default()
}

/// Arguments of `meshmeter load`, except those that the deployment adds.
fn arguments(planned: &PlannedTrial, seed: u64, target: &Workload) -> Vec<Argument> {
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
    if planned.queries.len() > 1 {
        options.push(("--order", "random".to_owned()));
    }
    options.extend(load.requests_per_connection.map(|each| ("--requests-per-connection", each.to_string())));
    options.extend(planned.expected_status.iter().map(|expected| ("--expect-status", expected.to_string())));
    options.extend(planned.pacing.map(|pacing| ("--pacing", pacing.name().to_owned())));
    let options = options.into_iter();
    let options =
        options.flat_map(|(option, value)| [Argument::Text(option.to_owned()), Argument::Text(value)]);
    let apart = (planned.queries.len() > 1).then(|| Argument::Text("--per-url".to_owned()));
    let chat = load.stream.iter().flat_map(chat_arguments);
    options.chain(apart).chain(chat).chain(protocol_arguments(target)).collect()
}

/// Options for requests for streams of tokens.
fn chat_arguments(stream: &StreamLoad) -> Vec<Argument> {
    let text = |text: &str| Argument::Text(text.to_owned());
    let name = "chat.json".to_owned();
    let file = Argument::File { prefix: "@".to_owned(), name, content: chat_request(stream) };
    let mut arguments =
        vec![text("--method"), text("POST"), text("--header"), text("Content-Type: application/json")];
    arguments.extend([text("--body"), file]);
    if stream.pause_s > 0.0 {
        let pause = format_duration(Duration::from_secs_f64(stream.pause_s));
        arguments.extend([text("--think-time"), Argument::Text(format!("exp:{pause}"))]);
    }
    arguments
}

/// Options that the protocol needs beyond the URL.
pub(crate) fn protocol_arguments(target: &Workload) -> Vec<Argument> {
    let text = |text: &str| Argument::Text(text.to_owned());
    match target.protocol {
        Protocol::Http1 => Vec::new(),
        Protocol::Http2 => vec![text("--http"), text("2")],
        // Reflection would send requests to the service that are not part of the load.
        Protocol::Grpc => {
            let content = service::ECHO_PROTO.as_bytes().to_vec();
            let file = Argument::File { prefix: String::new(), name: "echo.proto".to_owned(), content };
            vec![text("--proto"), file]
        }
        Protocol::Tcp => vec![
            text("--body-size"),
            Argument::Text(TCP_REQUEST_BYTES.to_string()),
            text("--reply-size"),
            Argument::Text(target.tcp_reply_bytes().to_string()),
        ],
    }
}

/// The result of a single driver, or the merged results of several; `None` if no driver has one. Per-driver
/// parts are left out of a merged result: they are stored with the drivers.
///
/// # Errors
/// Returns an error if a result cannot be decoded, or two are identical.
pub(super) fn merged_result(drivers: &[DriverRun]) -> Result<Option<LoadResult>, MergeError> {
    if let [driver] = drivers {
        return Ok(driver.result().cloned());
    }
    let part =
        |driver: &DriverRun| Some(MergeInput { name: driver.name.clone(), result: driver.result()?.clone() });
    merge_drivers(drivers.iter().filter_map(part).collect())
}
