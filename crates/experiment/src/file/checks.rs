//! Contradictions: values that are each valid but do not fit together.

use super::given::Given;
use super::{ingress, mesh_checks, topology};
use crate::definition::{Experiment, LoadLevels};
use crate::diagnostic::{ExperimentError, Place};
use crate::objective::{Bound, SAMPLES_BEYOND_A_PERCENTILE};
use crate::settings::stream::{MAX_PROMPT_BYTES, StreamSettings};
use results::Clock;
use results::units::{format_duration, format_rate};
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

/// Minimum number of requests in a trial's window: with fewer, not even ten lie beyond the median.
const MIN_REQUESTS: f64 = 20.0;
/// Maximum rate, per second: no generator on one machine sends more.
const MAX_RATE: f64 = 10_000_000.0;
/// Maximum number of trials in one run.
pub(super) const MAX_TRIALS: usize = 100_000;

/// Runs every check in turn.
pub(super) fn contradictions(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    rates(experiment, given)?;
    connections(experiment, given)?;
    objective_of_streams(experiment, given)?;
    objective_order(experiment, given)?;
    objective_resolution(experiment, given)?;
    delays(experiment, given)?;
    stream(experiment, given)?;
    topology::contradictions(experiment, given)?;
    mesh_checks::contradictions(experiment, given)?;
    ingress::contradictions(experiment, given)?;
    size_of_the_run(experiment, given)
}

fn rates(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let (LoadLevels::Open { rates, .. }, Some(field)) = (&experiment.load.levels, given.field("load.rate")?)
    else {
        return Ok(());
    };
    for rate in rates {
        if *rate > MAX_RATE {
            return Err(given.levels_place(&field).error(
                format!("{} requests/s is more than one machine can send", format_rate(*rate)),
                "expected at most 10000000/s",
            ));
        }
        let requests = rate * experiment.load.duration.as_secs_f64();
        if requests < MIN_REQUESTS {
            return Err(given.levels_place(&field).error(
                format!(
                    "{} requests/s for {} are {requests:.1} requests in a trial",
                    format_rate(*rate),
                    format_duration(experiment.load.duration)
                ),
                "expected at least 20 requests in each trial: a higher rate or a longer duration",
            ));
        }
    }
    Ok(())
}

fn connections(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let load = &experiment.load;
    if let (LoadLevels::Closed { clients }, Some(connections), false) =
        (&load.levels, load.connections, load.protocol.multiplexes())
    {
        let most = clients.iter().copied().max().unwrap_or(0);
        if let Some(field) = given.field("load.connections")?.filter(|_| connections < most) {
            return Err(field
                .place()
                .error(
                    format!("{connections} connections cannot carry {most} clients"),
                    format!(
                        "expected at least {most}: in {} a connection carries one request at a time",
                        load.protocol
                    ),
                )
                .with_hint("without `connections` each client has one of its own"));
        }
    }
    let fewest = match (&load.levels, load.connections) {
        (_, Some(connections)) => connections,
        (LoadLevels::Closed { clients }, None) => clients.iter().copied().min().unwrap_or(1),
        (LoadLevels::Open { .. } | LoadLevels::Fleet, None) => return Ok(()),
    };
    let connections = format!("{fewest} connection{}", if fewest == 1 { "" } else { "s" });
    if let Some(field) = given.field("load.threads")?.filter(|_| load.threads > fewest) {
        return Err(field.place().error(
            format!("{} threads for {connections}", load.threads),
            format!("expected at most {fewest}: each thread needs a connection of its own"),
        ));
    }
    let Some(field) = given.field("load.generators")? else { return Ok(()) };
    if load.generators * load.threads > fewest {
        let threads = if load.threads == 1 { String::new() } else { format!(" of {} threads", load.threads) };
        return Err(field.place().error(
            format!("{} generators{threads} for {connections}", load.generators),
            format!(
                "expected at most {}: `connections` are those of all generators together, and each thread needs one",
                fewest / load.threads
            ),
        ));
    }
    match &load.levels {
        LoadLevels::Closed { clients } if clients.iter().any(|clients| *clients < load.generators) => {
            Err(field.place().error(
                format!("{} generators for fewer clients", load.generators),
                "expected a client at least for each: `clients` are those of all generators together",
            ))
        }
        _ => Ok(()),
    }
}

/// Times of streams have no bound without them.
fn objective_of_streams(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let Some(name) = experiment.objective.of_streams().filter(|_| !experiment.load.stream.declared) else {
        return Ok(());
    };
    match given.field(&format!("objective.{name}"))? {
        Some(field) => Err(field
            .key_place
            .error(
                format!("`objective.{name}` has no effect without `load.stream`"),
                "expected only with streams: other responses have no events",
            )
            .with_hint("`load.stream: {}` makes responses streams of tokens")),
        None => Ok(()),
    }
}

/// Bounds must be ordered: no higher percentile, nor the maximum, is smaller than a lower percentile.
fn objective_order(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let Some([lower, higher]) = experiment.objective.contradiction() else { return Ok(()) };
    let [lower_name, name] = [lower, higher].map(|(metric, bound)| Bound::Time(metric, bound).name());
    let Some(field) = given.field(&format!("objective.{name}"))? else { return Ok(()) };
    let (least, bound) = (format_duration(lower.1), format_duration(higher.1));
    Err(field.place().error(
        format!("{name} under {bound} contradicts {lower_name} under {least}"),
        format!("expected at least {least}: a higher percentile is never smaller"),
    ))
}

/// Rejects bounds on percentiles that rest on too few requests, or on too few times between the tokens of streams.
fn objective_resolution(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    for (metric, bound) in experiment.objective.times() {
        let key = Bound::Time(metric, bound).name();
        let Some(field) = given.field(&format!("objective.{key}"))? else { continue };
        if bound > experiment.load.timeout {
            return Err(field.place().error(
                format!("requests end after {}", format_duration(experiment.load.timeout)),
                "expected at most `load.timeout`: no response can be slower",
            ));
        }
        let (Some(percentile), LoadLevels::Open { rates, .. }) =
            (metric.spoiled_by().percentile(), &experiment.load.levels)
        else {
            continue;
        };
        let (of_each, what) = match metric.clock() {
            Some(Clock::EventGap) => {
                (experiment.load.stream.tokens.saturating_sub(1) as f64, "times between tokens")
            }
            _ => (1.0, "requests"),
        };
        let lowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let beyond_fraction = 1.0 - percentile / 100.0;
        let measured = lowest * experiment.load.duration.as_secs_f64() * of_each;
        let needed = SAMPLES_BEYOND_A_PERCENTILE / beyond_fraction;
        // Tolerance: the fraction is not exact in binary.
        if measured < needed * 0.999 {
            let error = field.key_place.error(
                format!("the trials cannot resolve {key}"),
                format!(
                    "{measured:.0} {what} in a trial at {}/s leave {:.1} beyond it, expected at least 10",
                    format_rate(lowest),
                    measured * beyond_fraction
                ),
            );
            let longer_s = (needed / (lowest * of_each) * 0.999).ceil();
            let longer = Duration::try_from_secs_f64(longer_s).ok();
            return Err(error.with_some_hint(longer.map(|longer| {
                format!("at {}/s it takes `duration: {}`", format_rate(lowest), format_duration(longer))
            })));
        }
    }
    Ok(())
}

fn delays(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    match given.field("server.delay")? {
        Some(field) if experiment.server.delay >= experiment.load.timeout => Err(field.place().error(
            format!(
                "the server would answer after the timeout of {}",
                format_duration(experiment.load.timeout)
            ),
            "expected less than `load.timeout`",
        )),
        _ => Ok(()),
    }
}

/// A stream of tokens needs HTTP and the synthetic service.
fn stream(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let (load, stream) = (&experiment.load, &experiment.load.stream);
    if !stream.declared {
        return Ok(());
    }
    let section = given.section("load.stream")?;
    let (path, place) = section.first_key().unwrap_or_else(|| ("load.stream".to_owned(), section.place()));
    let refused = |what: String, expected: &str| Err(place.error(format!("`{path}` {what}"), expected));
    if !load.protocol.has_http_statuses() {
        return refused(
            format!("contradicts protocol `{}`", load.protocol),
            "expected with `http/1.1` or `http/2`",
        );
    }
    if !experiment.topology.follows_mode() {
        let what = format!("has no effect with topology `{}`", experiment.topology.name());
        return refused(what, "expected with `pair`, whose service completes chats");
    }
    if let Some(field) = given.field("load.payload")? {
        return Err(field.key_place.error(
            "`load.payload` has no effect with `load.stream`",
            "leave out one of both: tokens are the response",
        ));
    }
    if let Some(field) = given.field("ingress.paths")? {
        return Err(field.key_place.error(
            "`ingress.paths` contradicts `load.stream`: its requests have a path of their own",
            "leave out one of both",
        ));
    }
    match given.field("load.stream.prompt")? {
        Some(field) if stream.prompt_bytes > MAX_PROMPT_BYTES => {
            return Err(field.place().error("`load.stream.prompt` is too large", "expected at most 1MiB"));
        }
        _ => {}
    }
    match given.field("load.stream.pause")? {
        Some(field) if !stream.pause.is_zero() && matches!(load.levels, LoadLevels::Open { .. }) => {
            return Err(field.key_place.error(
                "`load.stream.pause` has no effect with `load.rate`",
                "expected only with `clients`: requests of an open loop are due at fixed times",
            ));
        }
        _ => {}
    }
    stream_lengths(experiment, given)
}

/// Streams end before their requests fail and within the window, and an open loop has a connection for each that is under way.
fn stream_lengths(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let (load, mean_s) = (&experiment.load, experiment.load.stream.mean_length_s());
    let length = Duration::try_from_secs_f64(mean_s).unwrap_or(Duration::MAX);
    let told = format_duration(Duration::from_millis(u64::try_from(length.as_millis()).unwrap_or(u64::MAX)));
    let refused = |limit: String, expected: &str| -> Result<()> {
        let (path, place) = key_of_length(&load.stream, given)?;
        Err(place.error(format!("`{path}` makes streams of {told}, and {limit}"), expected))
    };
    if length >= load.timeout {
        return refused(
            format!("requests fail after {}", format_duration(load.timeout)),
            "expected shorter ones, or a longer `load.timeout`",
        );
    }
    if length > load.duration {
        return refused(
            format!("the measured window is {}", format_duration(load.duration)),
            "expected shorter ones, or a longer `load.duration`",
        );
    }
    let (LoadLevels::Open { rates, .. }, Some(connections), false) =
        (&load.levels, load.connections, load.protocol.multiplexes())
    else {
        return Ok(());
    };
    let rate = rates.iter().copied().fold(0.0, f64::max);
    // Tolerance: the length is not exact in binary.
    let under_way = (rate * mean_s * 0.999_999).ceil() as usize;
    let of_connections = given.field("load.connections")?.map(|field| field.place().clone());
    let of_rate = given.field("load.rate")?.map(|field| given.levels_place(&field));
    match of_connections.or(of_rate) {
        Some(place) if under_way > connections => Err(place
            .error(
                format!(
                    "{connections} connection{} cannot carry {} streams/s of {told} each",
                    if connections == 1 { "" } else { "s" },
                    format_rate(rate)
                ),
                format!(
                    "expected `load.connections` of at least {under_way}: in {} each carries one stream at a time",
                    load.protocol
                ),
            )
            .with_hint("a lower `load.rate`, or shorter streams, need fewer")),
        _ => Ok(()),
    }
}

/// The key that makes streams as long as they are, and its place; that of the section if all of it are defaults.
fn key_of_length(stream: &StreamSettings, given: &Given<'_>) -> Result<(String, Place)> {
    let default = StreamSettings::default();
    let is_of_gap = stream.gap.0.mean() / default.gap.0.mean() > stream.tokens as f64 / default.tokens as f64;
    let keys: &[&str] = if stream.first.0.mean() > stream.mean_length_s() / 2.0 {
        &["first"]
    } else if is_of_gap {
        &["gap", "tokens"]
    } else {
        &["tokens", "gap"]
    };
    for key in keys {
        if let Some(field) = given.field(&format!("load.stream.{key}"))? {
            return Ok((field.path, field.key_place.clone()));
        }
    }
    Ok(("load.stream".to_owned(), given.section("load.stream")?.place().clone()))
}

fn size_of_the_run(experiment: &Experiment, given: &Given<'_>) -> Result<()> {
    let trials = experiment.load.levels.count() * experiment.modes.len() * experiment.repeats;
    match given.field("load.rate")?.or(given.field("load.clients")?) {
        Some(field) if trials > MAX_TRIALS => Err(field
            .key_place
            .error(format!("the run would have {trials} trials"), format!("expected at most {MAX_TRIALS}"))),
        _ => Ok(()),
    }
}
