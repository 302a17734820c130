//! Generators in turn against one nginx, round after round, in four parts: full speed, 1000 a second, 20 000 a second, full
//! speed over HTTP/2.
//!
//! nginx is full before the faster generators are, so CPU for each request is the figure that counts at full speed; how busy
//! nginx was stands beside it. fortio has no more than one request at a time on a connection of HTTP/2 either: there it gets as
//! many connections as the others have streams.

use crate::contest::server::Server;
use crate::contest::{Outcome, median, nginx, turns};
use crate::generators::{Generator, Load, Reading};
use crate::peers::{Found, Peers};
use std::fmt;
use std::path::Path;

/// The title of the part at full speed.
pub const FULL: &str = "closed loop, 64 connections";
/// The title of the part at 1000 requests a second.
pub const CALM: &str = "open loop, 1000/s on 4 connections";
/// The title of the part over HTTP/2.
pub const HTTP2: &str = "closed loop, HTTP/2 without TLS, 8 connections of 32 streams";
/// The label of `meshmeter load` in a closed loop over one connection.
pub const ALONE: &str = "same, closed, 1 connection";

/// The title of the part at 20 000 requests a second; its first contender paces economically.
pub const BRISK: &str = "open loop, 20 000/s on 64 connections, economical pacing";
/// The labels of `meshmeter load` with a pacing other than the part's first contender has.
pub const ECONOMICAL: &str = "same, economical pacing";
pub const PRECISE: &str = "same, precise pacing";
pub const AUTO: &str = "same, auto pacing";

/// One table: contenders against each other.
pub struct Part {
    pub title: &'static str,
    /// The first is what the others are compared with.
    pub contenders: Vec<Contender>,
    /// Who should be there and is not, and why.
    pub not_run: Vec<String>,
}

/// A generator with its task.
pub struct Contender {
    pub label: &'static str,
    pub generator: Generator,
    pub load: Load,
}

/// How long to run.
#[derive(Clone, Copy)]
pub struct Effort {
    pub rounds: usize,
    /// Of each contender in each round.
    pub seconds: u32,
}

/// What a part showed.
pub struct PartResult {
    pub title: &'static str,
    pub not_run: Vec<String>,
    pub contenders: Vec<ContenderResult>,
}

/// One contender's rounds.
pub struct ContenderResult {
    pub label: &'static str,
    pub rounds: Vec<Round>,
}

/// One run of a generator.
pub struct Round {
    pub reading: Reading,
    /// CPU of the generator for each request, microseconds.
    pub cpu_us_per_request: f64,
    /// The share of the time that nginx was on its CPU, 0 to 1.
    pub server_busy_fraction: f64,
}

/// The four parts, with the peers that are found.
pub fn parts(meshmeter: &Path, peers: &Peers) -> [Part; 4] {
    let paced = |pacing, load| Contender::new(Generator::Meshmeter(meshmeter.to_owned(), pacing), load);
    let ours = |load| paced(None, load);
    let thrifty = |label, load| Contender { label, ..paced(Some("economical"), load) };
    let on_epoll = |load| Contender::new(Generator::MeshmeterOnEpoll(meshmeter.to_owned()), load);
    let full = Load::Closed { connections: 64 };
    let calm = Load::Open { rate: 1000, connections: 4 };
    let brisk = Load::Open { rate: 20_000, connections: 64 };
    let streams = Load::Http2 { connections: 8, streams: 32 };
    // What the median of an open loop should be near: nobody waits for anybody.
    let alone = Contender { label: ALONE, ..ours(Load::Closed { connections: 1 }) };
    [
        Part::new(FULL, vec![ours(full), on_epoll(full), Contender::new(Generator::Wrk, full)])
            .against(&peers.fortio, full),
        Part::new(CALM, vec![ours(calm), alone, thrifty(ECONOMICAL, calm)]).against(&peers.fortio, calm),
        Part::new(
            BRISK,
            vec![
                thrifty("meshmeter load", brisk),
                Contender { label: PRECISE, ..paced(Some("precise"), brisk) },
                Contender { label: AUTO, ..ours(brisk) },
            ],
        )
        .against(&peers.fortio, brisk)
        .against(&peers.oha, brisk)
        .against(&peers.wrk2, brisk),
        Part::new(HTTP2, vec![ours(streams), Contender::new(Generator::H2load, streams)])
            .against(&peers.fortio, streams),
    ]
}

impl Part {
    fn new(title: &'static str, contenders: Vec<Contender>) -> Self {
        Self { title, contenders, not_run: Vec::new() }
    }

    /// With a peer that may be missing.
    fn against(mut self, peer: &Found, load: Load) -> Self {
        match peer {
            Ok(generator) => self.contenders.push(Contender::new(generator.clone(), load)),
            Err(reason) => self.not_run.push(reason.clone()),
        }
        self
    }

    /// Runs it, against an nginx of its own.
    ///
    /// # Errors
    /// Where a program is missing or what it says is no good: the text says which.
    pub fn run(self, effort: Effort) -> Outcome<PartResult> {
        let folder = tempfile::tempdir()?;
        let server = nginx::start(folder.path())?;
        let mut results: Vec<ContenderResult> = self
            .contenders
            .iter()
            .map(|contender| ContenderResult { label: contender.label, rounds: Vec::new() })
            .collect();
        for round in 0..effort.rounds {
            for index in turns(round, self.contenders.len()) {
                results[index].rounds.push(self.contenders[index].run(&server, effort.seconds)?);
            }
        }
        Ok(PartResult { title: self.title, not_run: self.not_run, contenders: results })
    }
}

impl Contender {
    fn new(generator: Generator, load: Load) -> Self {
        Self { label: generator.name(), generator, load }
    }

    fn run(&self, server: &Server, seconds: u32) -> Outcome<Round> {
        let before_s = server.cpu_s()?;
        let (reading, cpu_s) = self.generator.run(self.load, seconds, server)?;
        Ok(Round {
            cpu_us_per_request: cpu_s * 1e6 / reading.requests,
            server_busy_fraction: (server.cpu_s()? - before_s) / f64::from(seconds),
            reading,
        })
    }
}

/// A figure of a round, where the generator states it.
pub type Figure = fn(&Round) -> Option<f64>;

pub const RATE: Figure = |round| Some(round.reading.requests_per_second);
pub const CPU_US: Figure = |round| Some(round.cpu_us_per_request);
pub const P50_US: Figure = |round| round.reading.latency_us.map(|latency| latency.p50);
pub const P99_US: Figure = |round| round.reading.latency_us.map(|latency| latency.p99);
pub const LAG_P99_US: Figure = |round| round.reading.schedule_lag_us_p99;
const SERVER_BUSY: Figure = |round| Some(round.server_busy_fraction * 100.0);

/// The columns: heading, figure, decimals.
const COLUMNS: [(&str, Figure, usize); 6] = [
    ("answers/s", RATE, 0),
    ("CPU us/request", CPU_US, 2),
    ("p50 us", P50_US, 1),
    ("p99 us", P99_US, 1),
    ("lag p99 us", LAG_P99_US, 1),
    ("nginx busy %", SERVER_BUSY, 0),
];

impl ContenderResult {
    /// The median over the rounds; not a number where the generator does not state it.
    pub fn median(&self, figure: Figure) -> f64 {
        median(self.rounds.iter().filter_map(figure))
    }

    /// What its own verdict had against the rounds.
    pub fn invalid(&self) -> Vec<&str> {
        self.rounds.iter().flat_map(|round| &round.reading.invalid).map(String::as_str).collect()
    }
}

impl PartResult {
    /// The rounds of a contender, if it ran.
    pub fn contender(&self, label: &str) -> Option<&ContenderResult> {
        self.contenders.iter().find(|contender| contender.label == label)
    }
}

impl fmt::Display for PartResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        write!(f, "{:<26}", "generator")?;
        for (heading, ..) in COLUMNS {
            write!(f, " {heading:>14}")?;
        }
        writeln!(f)?;
        for contender in &self.contenders {
            for round in &contender.rounds {
                row(f, contender.label, |figure| figure(round), &round.reading.invalid.join(", "))?;
            }
            row(f, contender.label, |figure| Some(contender.median(figure)), "median")?;
        }
        for reason in &self.not_run {
            writeln!(f, "not run: {reason}")?;
        }
        self.write_ratios(f)
    }
}

impl PartResult {
    fn write_ratios(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, others)) = self.contenders.split_first() else { return Ok(()) };
        for other in others {
            write!(f, "{} over {}:", first.label, other.label)?;
            for (heading, figure, _) in &COLUMNS[..4] {
                let (ours, theirs) = (first.median(*figure), other.median(*figure));
                if ours.is_finite() && theirs.is_finite() {
                    write!(f, "  {heading} x {:.2}", ours / theirs)?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn row(
    f: &mut fmt::Formatter<'_>,
    label: &str,
    value: impl Fn(Figure) -> Option<f64>,
    remark: &str,
) -> fmt::Result {
    write!(f, "{label:<26}")?;
    for (_, figure, decimals) in COLUMNS {
        match value(figure).filter(|value| value.is_finite()) {
            Some(value) => write!(f, " {value:>14.decimals$}")?,
            None => write!(f, " {:>14}", "-")?,
        }
    }
    writeln!(f, "  {remark}")
}
