//! The load generators: how each is told what to do, and what it says afterwards. One thread each.
//!
//! Latency is as each tool states it. In an open loop `meshmeter load` and wrk2 count from when a request was due, fortio and oha
//! from when it was sent, so these two's figures are lower where requests wait. What peers print is read in `peers.rs`.

use crate::contest::process::{Ended, PATIENCE, Place, pinned, run_to_end};
use crate::contest::server::Server;
use crate::contest::{Outcome, h2load, wrk};
use crate::peers::{Peer, fortio, oha, wrk2};
use experiment::schema::LoadResult;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a generator is asked to do.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// Each connection sends again when it is answered.
    Closed { connections: u32 },
    /// The same for each stream of connections of HTTP/2.
    Http2 { connections: u32, streams: u32 },
    /// So many requests a second.
    Open { rate: u32, connections: u32 },
}

/// The label of `meshmeter load` on epoll.
pub const ON_EPOLL: &str = "meshmeter load on epoll";

/// A generator, and where it is.
#[derive(Clone, Debug)]
pub enum Generator {
    /// With a `--pacing`, or its default.
    Meshmeter(PathBuf, Option<&'static str>),
    /// On epoll, as in most containers.
    MeshmeterOnEpoll(PathBuf),
    /// Closed loops only.
    Wrk,
    /// HTTP/2 only.
    H2load,
    Peer(Peer, PathBuf),
}

/// What a generator says that it did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    pub requests: f64,
    pub requests_per_second: f64,
    pub latency_us: Option<Latency>,
    pub schedule_lag_us_p99: Option<f64>,
    /// Why its own verdict says that these figures may not be used.
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
            Self::MeshmeterOnEpoll(_) => ON_EPOLL,
            Self::Wrk => "wrk",
            Self::H2load => "h2load",
            Self::Peer(peer, _) => peer.name(),
        }
    }

    /// Runs it for so long; gives what it says, and the CPU that it used, seconds.
    ///
    /// # Errors
    /// Where it is missing, hangs, fails or had answers other than 200.
    pub fn run(&self, load: Load, seconds: u32, server: &Server) -> Outcome<(Reading, f64)> {
        let (program, arguments) = match self {
            Self::Meshmeter(program, pacing) => {
                (program.as_path(), meshmeter_arguments(load, *pacing, seconds))
            }
            Self::MeshmeterOnEpoll(program) => {
                let mut arguments = meshmeter_arguments(load, None, seconds);
                arguments.extend(["--network", "epoll"].map(str::to_owned));
                (program.as_path(), arguments)
            }
            Self::Wrk => {
                let Load::Closed { connections } = load else {
                    return Err("wrk knows closed loops of HTTP/1.1 alone".into());
                };
                (Path::new("wrk"), wrk::arguments(connections, seconds))
            }
            Self::H2load => {
                let Load::Http2 { connections, streams } = load else {
                    return Err("h2load is for HTTP/2 here".into());
                };
                (Path::new("h2load"), h2load::arguments(connections, streams, seconds))
            }
            Self::Peer(peer, program) => (program.as_path(), peer.arguments(load, seconds)?),
        };
        let mut command = pinned(Place::Generator, program)?;
        let url = if let Load::Http2 { .. } = load { &server.http2_url } else { &server.url };
        command.args(arguments).arg(url);
        let ended = run_to_end(&mut command, Duration::from_secs(seconds.into()) + PATIENCE)?;
        Ok((self.read(&ended)?, ended.cpu_s))
    }

    fn read(&self, ended: &Ended) -> Outcome<Reading> {
        let reading = match self {
            Self::Meshmeter(..) | Self::MeshmeterOnEpoll(_) => read_meshmeter(&ended.stdout),
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

fn meshmeter_arguments(load: Load, pacing: Option<&str>, seconds: u32) -> Vec<String> {
    let (option, number, connections) = match load {
        Load::Closed { connections } => ("--clients", connections, connections),
        Load::Http2 { connections, streams } => ("--clients", connections * streams, connections),
        Load::Open { rate, connections } => ("--rate", rate, connections),
    };
    let mut arguments = words("load --threads 1 --progress off --json -");
    arguments.extend([option.to_owned(), number.to_string()]);
    arguments.extend(["--connections".to_owned(), connections.to_string()]);
    arguments.extend(["--duration".to_owned(), format!("{seconds}s")]);
    if let Load::Http2 { streams, .. } = load {
        arguments.extend(["--http", "2", "--streams"].map(str::to_owned));
        arguments.push(streams.to_string());
    }
    arguments.extend(pacing.map(|pacing| format!("--pacing={pacing}")));
    arguments
}

/// An invalid verdict ends with status 1 and is a result all the same.
fn read_meshmeter(json: &str) -> Outcome<Reading> {
    let result: LoadResult = serde_json::from_str(json)?;
    let response_time = &result.response_time_us;
    Ok(Reading {
        requests: result.requests.completed as f64,
        requests_per_second: result.rate.completed,
        latency_us: Some(Latency { p50: response_time.p50, p99: response_time.p99 }),
        schedule_lag_us_p99: Some(result.schedule_lag_us.p99),
        invalid: result.verdict.reasons,
    })
}

pub fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}
