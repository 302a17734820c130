//! Two servers with the same load in turn, round after round: throughput, CPU and memory of each.
//!
//! wrk may be saturated before the faster server is, so requests per second of server CPU time is the figure
//! that counts; throughput is shown beside it.

use crate::contest::process::{EXIT_TIMEOUT, Place, pinned, run_to_end};
use crate::contest::server::Server;
use crate::contest::{BODY_BYTES, Outcome, median, nginx, turns, wrk};
use std::fmt;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// Settings of the benchmark.
pub struct Contest {
    /// The command under test.
    pub meshmeter: PathBuf,
    /// Number of times that each server is loaded.
    pub rounds: usize,
    /// Duration of each load, seconds.
    pub seconds: u32,
    /// Connections of wrk.
    pub connections: u32,
}

/// Result of the benchmark.
pub struct ContestResult {
    /// `meshmeter serve`, then nginx.
    pub servers: [ServerResult; 2],
}

/// Rounds of one server.
pub struct ServerResult {
    /// Name of the server.
    pub name: &'static str,
    /// Resident memory of all its processes before any load, bytes.
    pub idle_memory_bytes: u64,
    /// One per round.
    pub rounds: Vec<Round>,
}

/// One load of a server.
#[derive(Clone, Copy)]
pub struct Round {
    /// Requests per second, as counted by wrk.
    pub requests_per_second: f64,
    /// CPU time of the server per request, microseconds.
    pub cpu_us_per_request: f64,
}

impl Contest {
    /// Runs the benchmark.
    ///
    /// # Errors
    /// Returns an error that names the program that is missing or the response that is wrong.
    pub fn run(&self) -> Outcome<ContestResult> {
        let folder = tempfile::tempdir()?;
        let running = [self.start_meshmeter()?, nginx::start(folder.path())?];
        let mut servers =
            [("meshmeter serve", &running[0]), ("nginx return 200", &running[1])].map(|(name, server)| {
                ServerResult {
                    name,
                    idle_memory_bytes: server.memory_bytes().unwrap_or(0),
                    rounds: Vec::new(),
                }
            });
        for round in 0..self.rounds {
            for index in turns(round, running.len()) {
                servers[index].rounds.push(self.load(&running[index])?);
            }
        }
        Ok(ContestResult { servers })
    }

    fn start_meshmeter(&self) -> Outcome<Server> {
        let size = BODY_BYTES.to_string();
        let mut command = pinned(Place::Server, &self.meshmeter)?;
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--size", &size])
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut server = Server::start(&mut command)?;
        let stdout = server.child.stdout.take().ok_or("standard output was piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let url = line
            .trim()
            .strip_prefix("listening on ")
            .ok_or_else(|| format!("meshmeter serve said {line:?}"))?;
        server.url = format!("{url}/");
        Ok(server)
    }

    fn load(&self, server: &Server) -> Outcome<Round> {
        let before_s = server.cpu_s()?;
        let mut command = pinned(Place::Generator, Path::new("wrk"))?;
        command.args(wrk::arguments(self.connections, self.seconds)).arg(&server.url);
        let ended = run_to_end(&mut command, Duration::from_secs(self.seconds.into()) + EXIT_TIMEOUT)?;
        let cpu_s = server.cpu_s()? - before_s;
        let reading = wrk::read(&ended)?;
        Ok(Round {
            requests_per_second: reading.requests_per_second,
            cpu_us_per_request: cpu_s * 1e6 / reading.requests,
        })
    }
}

impl ServerResult {
    /// Median over the rounds.
    pub fn median(&self, figure: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(figure))
    }
}

impl ContestResult {
    /// Requests per second of CPU time, `meshmeter serve` relative to nginx: above 1, it is cheaper.
    pub fn requests_per_core_ratio(&self) -> f64 {
        let [meshmeter, nginx] =
            self.servers.each_ref().map(|server| server.median(|round| round.cpu_us_per_request));
        nginx / meshmeter
    }

    /// Throughput, `meshmeter serve` relative to nginx.
    pub fn throughput_ratio(&self) -> f64 {
        let [meshmeter, nginx] =
            self.servers.each_ref().map(|server| server.median(|round| round.requests_per_second));
        meshmeter / nginx
    }
}

impl fmt::Display for ContestResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<18} {:>12} {:>16} {:>14}", "server", "requests/s", "CPU us/request", "idle MB")?;
        for server in &self.servers {
            for round in &server.rounds {
                writeln!(
                    f,
                    "{:<18} {:>12.0} {:>16.2}",
                    server.name, round.requests_per_second, round.cpu_us_per_request
                )?;
            }
            let (rate, cpu_us) = (
                server.median(|round| round.requests_per_second),
                server.median(|round| round.cpu_us_per_request),
            );
            let memory_mb = server.idle_memory_bytes as f64 / 1e6;
            writeln!(f, "{:<18} {rate:>12.0} {cpu_us:>16.2} {memory_mb:>14.2}  median", server.name)?;
        }
        writeln!(f, "throughput, meshmeter serve over nginx: {:.2}", self.throughput_ratio())?;
        write!(
            f,
            "requests for each CPU second, meshmeter serve over nginx: {:.2}",
            self.requests_per_core_ratio()
        )
    }
}
