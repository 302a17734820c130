//! Options of `meshmeter load` for when requests are due.

use super::{parse_run_duration, parse_run_duration_or_zero};
use crate::cli::words::{one_of, word};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Args, Command};
use jiff::Timestamp;
use load::{Arrival, Bursts, ClientStage, GeneratorShare, RateStage, ThinkTime};
use results::units::{parse_fraction, parse_rate};
use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum number of generators that share a load.
const MAX_GENERATORS: usize = 10_000;
/// Maximum of --clients.
const MAX_CLIENTS: usize = 100_000;
/// Maximum of --requests.
const MAX_REQUESTS: u64 = 1_000_000_000;

/// Beginning of bursts with parameters.
const BURSTS: &str = "bursts:";
/// Bursts without parameters.
const DEFAULT_BURSTS: Bursts = Bursts { factor: 5.0, share: 0.1, length: Duration::from_secs(1) };
/// Maximum rate of bursts, of that between them.
const MAX_BURST_FACTOR: f64 = 10_000.0;
/// Values of --profile-scale.
const SCALES: RangeInclusive<f64> = 0.000_001..=1_000_000.0;
/// Values of --speed.
const SPEEDS: RangeInclusive<f64> = 0.001..=1_000_000.0;

/// Options for the schedule.
#[derive(Debug, Args)]
pub struct ScheduleArgs {
    /// Total requests per second: open loop. Or `unlimited`: a closed loop with a client per connection,
    /// which measures throughput, not latency under load
    #[arg(long, value_name = "R", value_parser = parse_offered_rate, allow_negative_numbers = true, help_heading = "Load")]
    pub rate: Option<OfferedRate>,

    /// Clients that each send their next request after a response: closed loop. Their number may change evenly
    /// over the window, such as 1..200, or in stages, such as 1..200:1m,200:5m
    #[arg(long, value_name = "N[..N[:D,…]]", value_parser = parse_clients, help_heading = "Load")]
    pub clients: Option<Clients>,

    /// Open loop in stages, such as 500:30s,0:5s,500..2000:1m: a rate is held for its duration, two rates are
    /// a ramp from one to the other, 0 is a pause
    #[arg(long, value_name = "R[..R]:D,…", value_delimiter = ',', value_parser = parse_stage, conflicts_with = "duration",
          help_heading = "Load")]
    pub stages: Option<Vec<RateStage>>,

    /// Open loop at the rates of a file over time: a line of a time and a rate each, such as 08:30,500. Times are
    /// of a day, which begins again, or from the beginning (90m, or seconds); the rate changes evenly from one
    /// to the next. --duration compresses it: 24 hours into 10m
    #[arg(long, value_name = "FILE", help_heading = "Load")]
    pub profile: Option<PathBuf>,

    /// Each rate of the profile until the next one, instead of even changes
    #[arg(long, help_heading = "Load")]
    pub profile_steps: bool,

    /// Multiply the rates of the profile
    #[arg(long, value_name = "F", value_parser = parse_scale, help_heading = "Load")]
    pub profile_scale: Option<f64>,

    /// Open loop at the instants of a recording: an instant per line (seconds, or RFC 3339), an access log of
    /// Envoy (text or JSON), nginx or Apache, or a HAR. Logs and HARs give methods and paths as well, which
    /// follow the path of the URL; they have no bodies. --warmup is the recording's first part, and --duration
    /// ends it early
    #[arg(long, value_name = "FILE", conflicts_with_all = ["requests", "think_time"], help_heading = "Load")]
    pub replay: Option<PathBuf>,

    /// Replay N times as fast as recorded
    #[arg(long, value_name = "N", value_parser = parse_speed, help_heading = "Load")]
    pub speed: Option<f64>,

    /// Distribution of requests over time in an open loop
    #[arg(long, value_name = "A", default_value = "uniform", value_parser = ArrivalParser, help_heading = "Load")]
    pub arrival: Arrival,

    /// Closed loop: time from a response until the client's next request is due. Such as 10ms, or exp:10ms
    /// for exponentially distributed times with that mean
    #[arg(long, value_name = "[exp:]D", value_parser = parse_think_time, conflicts_with_all = ["rate", "stages", "profile"], help_heading = "Load")]
    pub think_time: Option<ThinkTime>,

    /// Requests to send in the measured window, which ends after them, or after --duration if that is given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_REQUESTS), help_heading = "Load")]
    pub requests: Option<u64>,

    /// Length of the measured window [default: 10s; with --requests until they are sent, at most 24h]
    #[arg(long, value_name = "D", value_parser = parse_run_duration, help_heading = "Load")]
    pub duration: Option<Duration>,

    /// Load before the measured window, not measured; stages begin after it, and it has the rate at which the
    /// first one starts
    #[arg(long, value_name = "D", default_value = "0s", value_parser = parse_run_duration_or_zero, help_heading = "Load")]
    pub warmup: Duration,

    /// Open the measured window at an instant, such as 2026-11-20T12:00:00Z, or after a time, such as +5s.
    /// Connections are opened and the warm-up runs before it. With - the instant is a line on standard input,
    /// expected once the connections are open, which --progress json reports as `ready`
    #[arg(long, value_name = "INSTANT|+D|-", value_parser = parse_start, allow_hyphen_values = true, help_heading = "Load")]
    pub start_at: Option<StartAt>,

    /// Offer share I of N of the load; other generators with the same options offer the other shares. Rates,
    /// clients, connections and --requests are totals of all N. Start them together with --start-at, and
    /// merge their results with `load merge`
    #[arg(long, value_name = "I/N", value_parser = parse_share, conflicts_with = "search", help_heading = "Load")]
    pub share: Option<GeneratorShare>,

    /// Seed of Poisson arrivals, think times and randomly drawn requests: the same seed gives the same
    /// schedule
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Load")]
    pub seed: u64,
}

/// Values of `--rate`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OfferedRate {
    /// Requests per second.
    PerSecond(f64),
    /// As many as the connections carry.
    Unlimited,
}

/// Values of `--clients`.
#[derive(Clone, Debug, PartialEq)]
pub enum Clients {
    /// As many all the time.
    Constant(usize),
    /// From one number to another over the window.
    Ramp(usize, usize),
    /// In stages.
    Stages(Vec<ClientStage>),
}

impl Clients {
    /// The highest number.
    pub fn most(&self) -> usize {
        match self {
            Self::Constant(clients) => *clients,
            Self::Ramp(from, to) => *from.max(to),
            Self::Stages(stages) => ClientStage::most(stages),
        }
    }
}

/// Opening time of the measured window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StartAt {
    /// Wall-clock time.
    Instant(Timestamp),
    /// Time after the start of the command.
    After(Duration),
    /// Wall-clock time, read from standard input once the connections are open.
    StandardInput,
}

/// Words of --arrival.
fn arrivals() -> [(PossibleValue, Arrival); 3] {
    let bursts = "At random, at a higher rate in bursts: bursts:factor=5,share=10%,length=1s are bursts of 5 times the rate between \
                  them, 10 % of the time, exponentially distributed with a mean of 1s; the mean rate stays";
    [
        (word("uniform", "At even intervals"), Arrival::Uniform),
        (word("poisson", "At random (Poisson process), like independent users"), Arrival::Poisson),
        (word("bursts", bursts), Arrival::Bursts(DEFAULT_BURSTS)),
    ]
}

/// Parses a word, or bursts with parameters.
#[derive(Clone)]
struct ArrivalParser;

impl TypedValueParser for ArrivalParser {
    type Value = Arrival;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, clap::Error> {
        if value.to_str().is_some_and(|text| text.starts_with(BURSTS)) {
            parse_bursts.parse_ref(command, argument, value)
        } else {
            one_of(arrivals()).parse_ref(command, argument, value)
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(arrivals().into_iter().map(|(word, _)| word)))
    }
}

fn parse_bursts(text: &str) -> Result<Arrival, String> {
    let mut bursts = DEFAULT_BURSTS;
    for parameter in text.strip_prefix(BURSTS).unwrap_or_default().split(',') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name.trim() {
            "factor" => {
                let factor = value.parse().ok().filter(|factor| *factor > 1.0 && *factor <= MAX_BURST_FACTOR);
                bursts.factor =
                    factor.ok_or_else(|| format!("expected a factor above 1, at most {MAX_BURST_FACTOR}"))?;
            }
            "share" => {
                bursts.share = parse_fraction(value).map_err(|error| error.to_string())?;
                if bursts.share == 0.0 || bursts.share == 1.0 {
                    return Err("expected a share between 0 and 1".to_owned());
                }
            }
            "length" => bursts.length = parse_run_duration(value)?,
            _ => return Err("expected such as bursts:factor=5,share=10%,length=1s".to_owned()),
        }
    }
    Ok(Arrival::Bursts(bursts))
}

fn parse_offered_rate(text: &str) -> Result<OfferedRate, String> {
    if text.trim() == "unlimited" {
        return Ok(OfferedRate::Unlimited);
    }
    parse_positive_rate(text).map(OfferedRate::PerSecond)
}

pub(in crate::cli) fn parse_positive_rate(text: &str) -> Result<f64, String> {
    let rate = parse_rate(text).map_err(|error| error.to_string())?;
    if rate > 0.0 && rate <= load::MAX_RATE {
        Ok(rate)
    } else {
        Err(format!("expected a rate above 0, at most {} requests/s", load::MAX_RATE))
    }
}

fn parse_stage(text: &str) -> Result<RateStage, String> {
    let (rates, duration) = text
        .split_once(':')
        .ok_or("a stage is a rate and a duration, such as 500:30s, or a ramp, such as 500..2000:1m")?;
    let (start_rate, end_rate) = match rates.split_once("..") {
        Some((start, end)) => (parse_stage_rate(start)?, parse_stage_rate(end)?),
        None => (parse_stage_rate(rates)?, parse_stage_rate(rates)?),
    };
    Ok(RateStage::ramp(start_rate, end_rate, parse_run_duration(duration)?))
}

fn parse_clients(text: &str) -> Result<Clients, String> {
    let clients = match text.contains(':') {
        true => Clients::Stages(text.split(',').map(parse_client_stage).collect::<Result<_, _>>()?),
        false => match parse_client_numbers(text)? {
            (from, to) if from == to => Clients::Constant(from),
            (from, to) => Clients::Ramp(from, to),
        },
    };
    if (1..=MAX_CLIENTS).contains(&clients.most()) {
        Ok(clients)
    } else {
        Err(format!("expected at least a client, and at most {MAX_CLIENTS}"))
    }
}

fn parse_client_stage(text: &str) -> Result<ClientStage, String> {
    let (numbers, duration) =
        text.split_once(':').ok_or("every stage has clients and a duration, such as 1..200:1m,200:5m")?;
    let (from, to) = parse_client_numbers(numbers)?;
    Ok(ClientStage { from, to, duration: parse_run_duration(duration)? })
}

fn parse_client_numbers(text: &str) -> Result<(usize, usize), String> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.trim().parse().map_err(|_| format!("`{text}` is not a number of clients"));
    Ok((number(from)?, number(to)?))
}

/// The rate 0 is only allowed as a pause between two stages, or as an end of a ramp.
pub fn parse_stage_rate(text: &str) -> Result<f64, String> {
    if text.trim() == "0" { Ok(0.0) } else { parse_positive_rate(text) }
}

fn parse_scale(text: &str) -> Result<f64, String> {
    parse_within(text, &SCALES)
}

fn parse_speed(text: &str) -> Result<f64, String> {
    parse_within(text, &SPEEDS)
}

fn parse_within(text: &str, range: &RangeInclusive<f64>) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        format!("expected a number from {} to {}, such as 2 or 0.5", range.start(), range.end())
    })
}

fn parse_think_time(text: &str) -> Result<ThinkTime, String> {
    match text.split_once(':') {
        Some(("exp", mean)) => parse_run_duration(mean).map(ThinkTime::Exponential),
        Some((kind, _)) => Err(format!("`{kind}` is not a kind of think time: expected 10ms or exp:10ms")),
        None => parse_run_duration_or_zero(text).map(ThinkTime::Constant),
    }
}

fn parse_start(text: &str) -> Result<StartAt, String> {
    if text == "-" {
        return Ok(StartAt::StandardInput);
    }
    if let Some(duration) = text.strip_prefix('+') {
        return parse_run_duration(duration).map(StartAt::After);
    }
    let instant = text.parse().map(StartAt::Instant);
    instant.map_err(|_| {
        "expected an instant such as 2026-11-20T12:00:00Z, a time from now such as +5s, or - for standard input"
            .to_owned()
    })
}

fn parse_share(text: &str) -> Result<GeneratorShare, String> {
    let numbers = text.split_once('/').and_then(|(index, of)| {
        let (index, of) = (index.parse::<usize>().ok()?, of.parse::<usize>().ok()?);
        GeneratorShare::new(index.checked_sub(1)?, of).filter(|share| share.of() <= MAX_GENERATORS)
    });
    numbers.ok_or_else(|| {
        format!("expected a share such as 3/18, the third of eighteen, of {MAX_GENERATORS} at most")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_a_number_a_ramp_or_stages() {
        let stage = |from, to, seconds| ClientStage { from, to, duration: Duration::from_secs(seconds) };
        for (text, expected) in [
            ("16", Clients::Constant(16)),
            ("1..200", Clients::Ramp(1, 200)),
            ("5..0", Clients::Ramp(5, 0)),
            ("1..200:1m,200:5s", Clients::Stages(vec![stage(1, 200, 60), stage(200, 200, 5)])),
        ] {
            assert_eq!(parse_clients(text), Ok(expected), "{text}");
        }
        for text in
            ["", "0", "0..0", "-1", "100001", "1..", "1..200:", "1..200:1m,200", "0:1s", "1.5", "1..2..3"]
        {
            assert!(parse_clients(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bursts_have_parameters_in_any_order() {
        let length = Duration::from_millis(250);
        let expected = Arrival::Bursts(Bursts { factor: 2.5, share: 0.25, length });
        assert_eq!(parse_bursts("bursts:length=250ms,share=25%,factor=2.5"), Ok(expected));
        assert_eq!(
            parse_bursts("bursts:share=0.25"),
            Ok(Arrival::Bursts(Bursts { share: 0.25, ..DEFAULT_BURSTS }))
        );
        for parameters in [
            "",
            "factor",
            "factor=1",
            "factor=inf",
            "factor=NaN",
            "share=0",
            "share=100%",
            "share=1",
            "length=0s",
            "length=2",
            "size=3",
            "factor=5;share=0.1",
        ] {
            assert!(parse_bursts(&format!("bursts:{parameters}")).is_err(), "{parameters}");
        }
    }

    #[test]
    fn shares_count_from_one() {
        assert_eq!(parse_share("3/18"), Ok(GeneratorShare::new(2, 18).unwrap()));
        assert_eq!(parse_share("1/1"), Ok(GeneratorShare::default()));
        for text in ["0/3", "4/3", "3", "/3", "1/", "-1/3", "1/1000000"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }
}
