//! A fleet in a separate process, so that its memory, CPU and halts are its own: both ends of its standard
//! input and output.
//!
//! Each line in is answered by a line of JSON out. The process ends when its input does, and prints the
//! fleet's result as its last line.

use crate::setup::{endpoints_change, fleet_of, show_token};
use fleet::xds::ProxyKind;
use fleet::{ChangeId, Fleet};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// First argument of a fleet process; the second is [`FleetOrder`] as JSON.
pub const FLEET: &str = "fleet";

/// Timeout of the fleet's completion, and of a change's arrival.
const TIMEOUT: Duration = Duration::from_secs(600);

pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// Settings of a fleet process: sidecars on one thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FleetOrder {
    pub address: String,
    /// Authorities for the stub's certificate, PEM; absent: plaintext.
    pub roots: Option<String>,
    pub proxies: usize,
    /// Connections per second.
    pub connect_rate: f64,
}

/// State of a fleet once all its proxies are complete, or the wait has timed out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Completion {
    pub complete: u64,
    pub complete_s: f64,
}

#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// Expects a mark at each of the first `proxies` proxies.
    Expect { mark: u32, proxies: usize },
    /// Waits for the marks expected last. The response has nanoseconds of the monotonic clock, in the order
    /// of the proxies.
    Arrivals { commanded_ns: u64 },
}

/// A fleet in another process, killed when dropped.
pub struct FleetProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl FleetProcess {
    /// Starts a program that calls [`run`] as a fleet.
    pub fn start(mut command: Command, order: &FleetOrder) -> Outcome<Self> {
        let order = serde_json::to_string(order)?;
        command.args([FLEET, &order]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("start {command:?}: {error}"))?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or("standard output was piped")?);
        Ok(Self { child, input, output })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until all proxies are complete.
    pub fn completion(&mut self) -> Outcome<Completion> {
        self.read()
    }

    /// Expects a mark at each of the first `proxies` proxies.
    pub fn expect(&mut self, mark: u32, proxies: usize) -> Outcome<()> {
        self.write(&Order::Expect { mark, proxies })?;
        self.read()
    }

    /// Requests the arrivals of the mark expected last, in nanoseconds of the monotonic clock;
    /// [`Self::arrivals`] reads them.
    pub fn ask_for_arrivals(&mut self, commanded: Instant) -> Outcome<()> {
        self.write(&Order::Arrivals { commanded_ns: monotonic_ns(commanded) })
    }

    /// Arrivals in the order of the proxies.
    pub fn arrivals(&mut self) -> Outcome<Vec<u64>> {
        self.read()
    }

    /// Ends the fleet and returns its result, as JSON.
    pub fn finish(mut self) -> Outcome<serde_json::Value> {
        self.input = None;
        self.read()
    }

    fn write(&mut self, order: &Order) -> Outcome<()> {
        let input = self.input.as_mut().ok_or("the fleet's input is closed")?;
        Ok(writeln!(input, "{}", serde_json::to_string(order)?)?)
    }

    fn read<T: for<'a> Deserialize<'a>>(&mut self) -> Outcome<T> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(serde_json::from_str(&line).map_err(|error| format!("the fleet said {line:?}: {error}"))?)
    }
}

impl Drop for FleetProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a fleet until standard input ends.
pub fn run(order: &str) -> Outcome<()> {
    let order: FleetOrder = serde_json::from_str(order)?;
    let mut spec = fleet_of(ProxyKind::Sidecar, order.proxies, &order.address);
    spec.connect_rate = Some(order.connect_rate);
    if let Some(roots) = &order.roots {
        show_token(&mut spec, "token", roots);
    }
    let fleet = Fleet::start(spec)?;
    let waited = fleet.wait_complete(Instant::now() + TIMEOUT);
    answer(&Completion { complete: waited.reached, complete_s: fleet.started().elapsed().as_secs_f64() })?;
    let mut expected = Vec::new();
    for line in io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            Order::Expect { mark, proxies } => {
                expected = (0..proxies).map(|proxy| fleet.expect(endpoints_change(mark, proxy))).collect();
                answer(&())?;
            }
            Order::Arrivals { commanded_ns } => answer(&arrivals(&fleet, &expected, commanded_ns)?)?,
        }
    }
    answer(&fleet.finish())
}

/// Waits for changes that are expected of one proxy each.
fn arrivals(fleet: &Fleet, changes: &[ChangeId], commanded_ns: u64) -> Outcome<Vec<u64>> {
    let now = Instant::now();
    let age = Duration::from_nanos(monotonic_ns(now) - commanded_ns);
    let commanded = now.checked_sub(age).ok_or("the moment lies before the machine's start")?;
    let arrivals = changes.iter().map(|change| {
        fleet.written(*change, commanded, commanded);
        fleet.wait(*change, Instant::now() + TIMEOUT);
        let arrival_us = fleet.change(*change)[0].convergence_us.max.ok_or("a mark has not arrived")?;
        Ok(commanded_ns + (arrival_us * 1000.0) as u64)
    });
    arrivals.collect()
}

/// A moment on the monotonic clock, which all processes of a machine share.
pub fn monotonic_ns(moment: Instant) -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    now_ns - moment.elapsed().as_nanos() as u64
}

#[allow(clippy::print_stdout, reason = "the other side reads it")]
fn answer(value: &impl Serialize) -> Outcome<()> {
    println!("{}", serde_json::to_string(value)?);
    Ok(io::stdout().flush()?)
}
