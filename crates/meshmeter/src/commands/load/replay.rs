//! `meshmeter load --replay`: requests at the instants of a recording.

use super::schedule::Planned;
use crate::cli::LoadArgs;
use crate::failure::Failure;
use crate::input;
use experiment::definition::MAX_RUN_DURATION;
use http::Method;
use load::{
    Arrival, RecordedRequests, Recording, RecordingError, RequestTemplate, ScheduleSpec, ServerPer,
    TargetError, Targets,
};
use report::format::counted;
use results::units::format_duration;
use results::{RecordingFormat, ReplayArrivals};
use std::io::BufReader;
use std::time::Duration;

const FORMATS: &str = "expected an instant per line (seconds, or 2026-11-20T12:00:00.5Z), an access log of Envoy, nginx or Apache in its \
                       default format, Envoy's JSON with start_time, method and path, or a HAR";

/// A recording that was read, and what a result says of it.
pub struct Replay {
    recording: Recording,
    of: ReplayArrivals,
    /// Requests with methods that have bodies, which no recording has.
    without_body: u64,
}

/// Reads the recording, if one is given.
pub fn read(args: &LoadArgs) -> Result<Option<Replay>, Failure> {
    let given = &args.schedule;
    let Some(path) = &given.replay else {
        return match given.speed {
            Some(_) => Err(Failure::usage("--speed is for --replay")),
            None => Ok(None),
        };
    };
    if given.arrival != Arrival::Uniform {
        return Err(Failure::usage("--arrival: a recording has its own arrivals"));
    }
    let about = format!("replay `{}`", path.display());
    let file = input::open(path).map_err(|error| Failure::usage(error.to_string()).about(&about))?;
    let recording = Recording::read(BufReader::new(file), given.seed).map_err(|error| {
        let failure = Failure::from_usage(&error).about(&about);
        match error {
            RecordingError::Read(_) => failure,
            RecordingError::TooManyRequests | RecordingError::TooManyPaths => {
                failure.with_hint("replay a part of it")
            }
            RecordingError::Compressed => failure.with_hint("--replay <(zcat FILE) replays what it contains"),
            _ => failure.with_hint(FORMATS),
        }
    })?;
    let speed = given.speed.unwrap_or(1.0);
    let of = ReplayArrivals {
        file: path.display().to_string(),
        format: recording.format,
        requests: recording.instants.len() as u64,
        speed,
        ignored: recording.ignored,
        out_of_order: recording.out_of_order,
    };
    let methods = recording.requests.iter().flat_map(|requests| &requests.methods);
    let with_body = methods.filter(|(method, _)| load::has_body(method)).map(|(_, count)| u64::from(*count));
    let has_body = args.body.is_some() || args.body_size.is_some();
    let without_body = if has_body { 0 } else { with_body.sum() };
    Ok(Some(Replay { recording: recording.at_speed(speed), of, without_body }))
}

impl Replay {
    /// Takes the requests out of it; absent if it has only instants.
    pub fn take_requests(&mut self) -> Option<RecordedRequests> {
        self.recording.requests.take()
    }

    /// The schedule and the length of the window: the rest of the recording after the warm-up, or the first part of it.
    pub fn plan(self, args: &LoadArgs) -> Result<Planned, Failure> {
        let given = &args.schedule;
        let Recording { instants, length, .. } = self.recording;
        let rest = length.saturating_sub(given.warmup);
        let duration = given.duration.map_or(rest, |duration| duration.min(rest));
        let end = given.warmup + duration;
        let before = |at: Duration| instants.partition_point(|instant| u128::from(*instant) < at.as_nanos());
        if before(given.warmup) == before(end) {
            return Err(Failure::usage(format!(
                "--replay: no request is due in the window, after {} of the recording's {}",
                shown(given.warmup),
                shown(length)
            ))
            .with_hint("a shorter --warmup, or a longer --duration"));
        }
        if duration > MAX_RUN_DURATION {
            let speed = self.of.speed * length.as_secs_f64() / Duration::from_hours(1).as_secs_f64();
            return Err(Failure::usage(format!(
                "--replay: the recording takes {}, and one run takes 24h at most{}",
                shown(length),
                longest_gap(&instants)
            ))
            .with_hint(format!(
                "--speed {} replays it within an hour, --duration 10m its first ten minutes",
                speed.ceil()
            )));
        }
        let replay = load::Replay { instants: instants.into(), of: self.of };
        Ok(Planned { schedule: ScheduleSpec::Replay(replay), duration })
    }

    /// Notes on the recording, for the result.
    pub fn notes(&self) -> Vec<String> {
        let ReplayArrivals { file, format, ignored, out_of_order, .. } = &self.of;
        let one = if *format == RecordingFormat::Har { ["entry", "entries"] } else { ["line", "lines"] };
        let was = |count: u64| if count == 1 { "was" } else { "were" };
        let mut notes = Vec::new();
        if *ignored > 0 {
            notes.push(format!(
                "replay: {} of {file} {} not understood and left out; the first is {} {}",
                counted(*ignored, one[0], one[1]),
                was(*ignored),
                one[0],
                self.recording.first_ignored
            ));
        }
        if *out_of_order > 0 {
            notes.push(format!(
                "replay: {} {} before an earlier one in time, as in logs that are written when requests end; all are sent in order \
                 of time",
                counted(*out_of_order, one[0], one[1]),
                was(*out_of_order)
            ));
        }
        if *format == RecordingFormat::CommonLog {
            notes.push(
                "replay: the log has times in whole seconds: requests are spread over their second at random, by the seed".to_owned(),
            );
        }
        if self.without_body > 0 {
            notes.push(format!(
                "replay: {} of the recording had a method with a body, which is not in it: they are sent without (--body gives them one)",
                counted(self.without_body, "request", "requests")
            ));
        }
        notes
    }
}

/// The server and requests of a recording.
pub fn targets(
    args: &LoadArgs,
    template: &RequestTemplate,
    requests: RecordedRequests,
) -> Result<Targets, Failure> {
    let refused = [
        (args.urls.len() > 1, "a recording of requests goes to one URL, which its paths follow"),
        (args.method != Method::GET, "--method: the recording has the methods of its requests"),
        (args.targets.order.is_some(), "--order: the recording has an order of its own"),
        (args.targets.server_per == ServerPer::Connection, "--server-per: the recording goes to one server"),
        (args.output.per_url, "--per-url: the methods of a recording are always measured apart"),
    ];
    if let Some((_, text)) = refused.into_iter().find(|(is_given, _)| *is_given) {
        return Err(Failure::usage(text));
    }
    load::resolve_recording(&args.urls[0], template, requests).map_err(|error| match error {
        TargetError::KindsOfHttp(_) => {
            Failure::usage("a recording of requests is replayed over HTTP: name an http:// or https:// URL")
        }
        TargetError::Kind { cause, .. } => super::targets::failure(&cause),
        error => super::targets::failure(&error),
    })
}

/// A length in whole hours if it is long, in milliseconds otherwise.
fn shown(length: Duration) -> String {
    let hours = (length.as_secs_f64() / 3600.0).round() as u64;
    match hours {
        10.. => format!("{hours}h"),
        _ => format_duration(Duration::from_millis(length.as_millis() as u64)),
    }
}

/// The longest time without requests, if it is most of the recording.
fn longest_gap(instants: &[u64]) -> String {
    let gaps = instants.windows(2).map(|two| two[1] - two[0]);
    let whole = instants.last().copied().unwrap_or_default();
    match gaps.enumerate().max_by_key(|(_, gap)| *gap) {
        Some((before, gap)) if gap > whole / 2 => format!(
            "; after its first {} there is none for {}",
            counted(before as u64 + 1, "request", "requests"),
            shown(Duration::from_nanos(gap))
        ),
        _ => String::new(),
    }
}
