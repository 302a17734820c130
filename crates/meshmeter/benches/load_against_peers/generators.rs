//! Load generators: their arguments and their results. One thread each.
//!
//! Latency is what each tool reports. In an open loop `meshmeter load` and wrk2 measure from when a request
//! was due, fortio and oha from when it was sent, so the figures of the latter two are lower if requests
//! wait. The output of peers is parsed in `peers.rs`.

use crate::contest::process::{EXIT_TIMEOUT, Ended, Place, pinned, run_to_end};
use crate::contest::{Outcome, h2load, wrk};
use crate::peers::{Peer, fortio, oha, wrk2};
use jiff::Timestamp;
use results::{Figure, LoadResult, SpoiledFigures, Verdict};
use std::iter;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Task of a generator.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// Each connection sends its next request after a response.
    Closed { connections: u32 },
    /// A closed loop over TLS.
    Tls { connections: u32 },
    /// A closed loop over TLS, with a new connection per request.
    TlsChurn { connections: u32 },
    /// A closed loop on each stream of HTTP/2 connections.
    Http2 { connections: u32, streams: u32 },
    /// An open loop with `rate` requests per second.
    Open { rate: u32, connections: u32 },
    /// An open loop against a server that logs the connection of each request.
    Noted { rate: u32, connections: u32 },
}

/// A generator, with its path if needed.
#[derive(Clone, Debug)]
pub enum Generator {
    /// With these additional options.
    Meshmeter(PathBuf, &'static [&'static str]),
    /// Closed loops of HTTP/1.1 only.
    Wrk,
    /// HTTP/2 only.
    H2load,
    Peer(Peer, PathBuf),
}

/// Result of a generator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    pub requests: f64,
    pub requests_per_second: f64,
    pub latency_us: Option<Latency>,
    pub schedule_lag_us_p99: Option<f64>,
    /// TLS handshakes, if it counts them.
    pub handshakes: Option<f64>,
    pub memory_peak_bytes: Option<f64>,
    /// Start of its schedule, since the epoch, if it says so.
    pub started_at: Option<Duration>,
    /// Reasons of its own verdict against a figure that is compared.
    pub invalid: Vec<String>,
}

/// Latency, microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    pub p50: f64,
    pub p99: f64,
}

impl Generator {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Meshmeter(..) => "meshmeter load",
            Self::Wrk => "wrk",
            Self::H2load => "h2load",
            Self::Peer(peer, _) => peer.name(),
        }
    }

    /// Runs the generator for `seconds`. Returns its result, and the CPU time that it used, seconds.
    ///
    /// # Errors
    /// Returns an error if it is missing, hangs, fails, or had responses other than 200.
    pub fn run(&self, load: Load, seconds: u32, url: &str) -> Outcome<(Reading, f64)> {
        let (program, arguments) = match self {
            Self::Meshmeter(program, options) => {
                (program.as_path(), meshmeter_arguments(load, options, seconds))
            }
            Self::Wrk => (Path::new("wrk"), wrk_arguments(load, seconds)?),
            Self::H2load => {
                let Load::Http2 { connections, streams } = load else {
                    return Err("h2load is for HTTP/2 here".into());
                };
                (Path::new("h2load"), h2load::arguments(connections, streams, seconds))
            }
            Self::Peer(peer, program) => (program.as_path(), peer.arguments(load, seconds)?),
        };
        let mut command = pinned(Place::Generator, program)?;
        command.args(arguments).arg(url);
        let ended = run_to_end(&mut command, Duration::from_secs(seconds.into()) + EXIT_TIMEOUT)?;
        Ok((self.read(&ended)?, ended.cpu_s))
    }

    fn read(&self, ended: &Ended) -> Outcome<Reading> {
        let reading = match self {
            Self::Meshmeter(..) => read_meshmeter(&ended.stdout),
            Self::Wrk => {
                let reading = wrk::read(ended)?;
                Ok(Reading {
                    requests: reading.requests,
                    requests_per_second: reading.requests_per_second,
                    ..Reading::default()
                })
            }
            Self::H2load => {
                let reading = h2load::read(ended)?;
                Ok(Reading {
                    requests: reading.requests,
                    requests_per_second: reading.requests_per_second,
                    ..Reading::default()
                })
            }
            Self::Peer(Peer::Fortio, _) => fortio::read(&ended.stdout),
            Self::Peer(Peer::Oha, _) => oha::read(&ended.stdout),
            Self::Peer(Peer::Wrk2, _) => wrk2::read(ended),
        };
        match reading {
            Ok(reading) if reading.requests > 0.0 => Ok(reading),
            Ok(_) => Err(format!("{} had no answer: {}", self.name(), ended.stderr).into()),
            Err(error) => {
                Err(format!("{} ended with {}: {error}: {}", self.name(), ended.status, ended.stderr).into())
            }
        }
    }
}

fn wrk_arguments(load: Load, seconds: u32) -> Outcome<Vec<String>> {
    match load {
        Load::Closed { connections } | Load::Tls { connections } => Ok(wrk::arguments(connections, seconds)),
        Load::TlsChurn { connections } => {
            let mut arguments = wrk::arguments(connections, seconds);
            arguments.extend(["-H", "Connection: close"].map(str::to_owned));
            Ok(arguments)
        }
        _ => Err("wrk knows closed loops of HTTP/1.1 alone".into()),
    }
}

fn meshmeter_arguments(load: Load, options: &[&str], seconds: u32) -> Vec<String> {
    let (option, number, connections) = match load {
        Load::Closed { connections } | Load::Tls { connections } | Load::TlsChurn { connections } => {
            ("--clients", connections, connections)
        }
        Load::Http2 { connections, streams } => ("--clients", connections * streams, connections),
        Load::Open { rate, connections } | Load::Noted { rate, connections } => ("--rate", rate, connections),
    };
    let mut arguments = words("load --threads 1 --progress off --json -");
    arguments.extend([option.to_owned(), number.to_string()]);
    arguments.extend(["--connections".to_owned(), connections.to_string()]);
    arguments.extend(["--duration".to_owned(), format!("{seconds}s")]);
    if let Load::Http2 { streams, .. } = load {
        arguments.extend(["--http", "2", "--streams"].map(str::to_owned));
        arguments.push(streams.to_string());
    }
    if let Load::Tls { .. } | Load::TlsChurn { .. } = load {
        // The certificate is self-signed; wrk does not check it either.
        arguments.push("--insecure".to_owned());
    }
    if let Load::TlsChurn { .. } = load {
        arguments.push("--requests-per-connection=1".to_owned());
    }
    arguments.extend(options.iter().map(|option| (*option).to_owned()));
    arguments
}

/// An invalid verdict exits with status 1, but still has a result.
fn read_meshmeter(json: &str) -> Outcome<Reading> {
    let result: LoadResult = serde_json::from_str(json)?;
    let response_time = &result.response_time_us;
    let started_at: Timestamp = result.started_at.parse()?;
    Ok(Reading {
        requests: result.requests.completed as f64,
        requests_per_second: result.rate.completed,
        latency_us: response_time.p50.zip(response_time.p99).map(|(p50, p99)| Latency { p50, p99 }),
        schedule_lag_us_p99: result.schedule_lag_us.p99,
        handshakes: Some(result.handshake_time_us.count as f64),
        memory_peak_bytes: Some(result.generator.memory_peak_bytes as f64),
        started_at: Some(started_at.duration_since(Timestamp::UNIX_EPOCH).try_into()?),
        invalid: against_compared(result.verdict),
    })
}

/// Reasons against a figure in the tables: a stall of the machine that moves the maximum alone is in none of them.
fn against_compared(verdict: Verdict) -> Vec<String> {
    let compared = [Figure::P50, Figure::P99, Figure::Throughput, Figure::Cpu];
    let figures = verdict.spoiled.into_iter().map(Some).chain(iter::repeat(None));
    let reasons = verdict.reasons.into_iter().zip(figures);
    let is_against = |spoiled: &Option<SpoiledFigures>| {
        spoiled.as_ref().is_none_or(|spoiled| compared.iter().any(|figure| spoiled.figures.contains(*figure)))
    };
    reasons.filter(|(_, spoiled)| is_against(spoiled)).map(|(reason, _)| reason).collect()
}

pub fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}
