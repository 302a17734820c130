//! Load generators in turn against one nginx, round after round. Their tasks are in `parts.rs`.
//!
//! nginx is saturated before the faster generators are, so at full speed CPU per request is the figure that
//! counts; how busy nginx was is shown beside it. fortio has only one request at a time per HTTP/2
//! connection: there it gets as many connections as the others have streams.

use crate::contest::server::Server;
use crate::contest::{Outcome, median, nginx, turns};
use crate::generators::{Generator, Load, Reading};
use crate::peers::Found;
use std::fmt;

/// One table of contenders.
pub struct Part {
    pub title: &'static str,
    /// The others are compared with the first one.
    pub contenders: Vec<Contender>,
    /// Missing peers, with the reason.
    pub not_run: Vec<String>,
}

/// A generator with its task.
#[derive(Clone)]
pub struct Contender {
    pub label: &'static str,
    pub generator: Generator,
    pub load: Load,
    /// Factor on the duration of a run.
    pub lasting: u32,
}

/// Number and duration of runs.
#[derive(Clone, Copy)]
pub struct Effort {
    pub rounds: usize,
    /// Duration per contender and round.
    pub seconds: u32,
}

/// Result of a part.
pub struct PartResult {
    pub title: &'static str,
    pub not_run: Vec<String>,
    pub contenders: Vec<ContenderResult>,
}

/// Rounds of one contender.
pub struct ContenderResult {
    pub label: &'static str,
    pub rounds: Vec<Round>,
}

/// One run of a generator.
pub struct Round {
    pub reading: Reading,
    /// CPU time of the generator per request, microseconds.
    pub cpu_us_per_request: f64,
    /// Fraction of the time for which nginx used its CPU, 0 to 1.
    pub server_busy_fraction: f64,
    /// TLS handshakes per second, if the generator counts them.
    pub handshakes_per_second: Option<f64>,
    /// Maximum deviation of a connection's requests from the average, as a fraction of it, if the server
    /// logged the connections.
    pub imbalance: Option<f64>,
}

impl Part {
    pub fn new(title: &'static str, contenders: Vec<Contender>) -> Self {
        Self { title, contenders, not_run: Vec::new() }
    }

    /// Adds a peer that may be missing.
    pub fn against(mut self, peer: &Found, load: Load) -> Self {
        match peer {
            Ok(generator) => self.contenders.push(Contender::new(generator.clone(), load)),
            Err(reason) => self.not_run.push(reason.clone()),
        }
        self
    }

    /// Runs the part against its own nginx.
    ///
    /// # Errors
    /// Returns an error that names the program that is missing or whose output is unusable.
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
    pub fn new(generator: Generator, load: Load) -> Self {
        Self { label: generator.name(), generator, load, lasting: 1 }
    }

    fn run(&self, server: &Server, seconds: u32) -> Outcome<Round> {
        let seconds = seconds * self.lasting;
        let before_s = server.cpu_s()?;
        let (reading, cpu_s) = self.generator.run(self.load, seconds, url(self.load, server))?;
        Ok(Round {
            cpu_us_per_request: cpu_s * 1e6 / reading.requests,
            server_busy_fraction: (server.cpu_s()? - before_s) / f64::from(seconds),
            handshakes_per_second: reading.handshakes.map(|handshakes| handshakes / f64::from(seconds)),
            imbalance: match self.load {
                Load::Noted { connections, .. } => Some(imbalance(server, &reading, connections)?),
                _ => None,
            },
            reading,
        })
    }
}

/// The server's URL for a task.
fn url(load: Load, server: &Server) -> &str {
    match load {
        Load::Closed { .. } | Load::Open { .. } => &server.url,
        Load::Http2 { .. } => &server.http2_url,
        Load::Tls { .. } | Load::TlsChurn { .. } => &server.tls_url,
        Load::Noted { .. } => &server.noted_url,
    }
}

/// Maximum deviation of a connection's requests from the average, as a fraction of it. Connections without
/// requests count too.
fn imbalance(server: &Server, reading: &Reading, connections: u32) -> Outcome<f64> {
    let mut counts = server.requests_by_connection(reading.requests as usize)?;
    counts.resize(counts.len().max(connections as usize), 0);
    let mean = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
    let furthest = counts.iter().map(|count| (*count as f64 - mean).abs()).fold(0.0, f64::max);
    Ok(furthest / mean)
}

/// A figure of a round; `None` if the generator does not report it.
pub type Figure = fn(&Round) -> Option<f64>;

pub const RATE: Figure = |round| Some(round.reading.requests_per_second);
pub const CPU_US: Figure = |round| Some(round.cpu_us_per_request);
pub const P50_US: Figure = |round| round.reading.latency_us.map(|latency| latency.p50);
pub const P99_US: Figure = |round| round.reading.latency_us.map(|latency| latency.p99);
pub const LAG_P99_US: Figure = |round| round.reading.schedule_lag_us_p99;
pub const MEMORY_MB: Figure = |round| round.reading.memory_peak_bytes.map(|bytes| bytes / 1e6);
pub const HANDSHAKES: Figure = |round| round.handshakes_per_second;
pub const IMBALANCE_PERCENT: Figure = |round| round.imbalance.map(|imbalance| imbalance * 100.0);
const SERVER_BUSY: Figure = |round| Some(round.server_busy_fraction * 100.0);

/// Columns: heading, figure, decimals.
const COLUMNS: [(&str, Figure, usize); 9] = [
    ("answers/s", RATE, 0),
    ("CPU us/request", CPU_US, 2),
    ("p50 us", P50_US, 1),
    ("p99 us", P99_US, 1),
    ("lag p99 us", LAG_P99_US, 1),
    ("nginx busy %", SERVER_BUSY, 0),
    ("memory MB", MEMORY_MB, 1),
    ("handshakes/s", HANDSHAKES, 0),
    ("imbalance %", IMBALANCE_PERCENT, 1),
];

impl ContenderResult {
    /// Median over the rounds; NaN if the generator does not report the figure.
    pub fn median(&self, figure: Figure) -> f64 {
        median(self.rounds.iter().filter_map(figure))
    }

    /// Reasons of its own verdict against the rounds.
    pub fn invalid(&self) -> Vec<&str> {
        self.rounds.iter().flat_map(|round| &round.reading.invalid).map(String::as_str).collect()
    }
}

impl PartResult {
    /// Rounds of a contender, if it ran.
    pub fn contender(&self, label: &str) -> Option<&ContenderResult> {
        self.contenders.iter().find(|contender| contender.label == label)
    }
}

impl fmt::Display for PartResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        write!(f, "{:<32}", "generator")?;
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
    write!(f, "{label:<32}")?;
    for (_, figure, decimals) in COLUMNS {
        match value(figure).filter(|value| value.is_finite()) {
            Some(value) => write!(f, " {value:>14.decimals$}")?,
            None => write!(f, " {:>14}", "-")?,
        }
    }
    writeln!(f, "  {remark}")
}
