//! The stub in a separate process: both ends of its standard input and output.
//!
//! Each line in is answered by a line of JSON out. The process ends when its input does.

use crate::contest::Outcome;
use crate::contest::process::{Place, pinned};
use crate::fleet_process::monotonic_ns;
use crate::setup::SERVER_NAME;
use fleet_stub::{Authority, Configuration, Stub, StubSpec, Validity};
use serde::{Deserialize, Serialize};
use std::env;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// First argument of a stub process; the second is [`StubOrder`] as JSON.
pub const STUB: &str = "stub";

/// The service whose endpoints churn, and the one whose endpoints carry the marks.
const CHURNING_SERVICE: usize = 1;
const MARKED_SERVICE: usize = 2;
/// First number of the churn's marks.
const CHURN_MARKS: u32 = 1_000_000;

/// Settings of a stub process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StubOrder {
    /// Bytes sent to each client.
    pub bytes: usize,
    /// Changes per second of endpoints that all clients hold; none if 0. If there are any, writes are logged.
    pub churn_per_s: f64,
    /// True for TLS.
    pub tls: bool,
}

/// Address and authorities of a running stub.
#[derive(Debug, Serialize, Deserialize)]
pub struct Listening {
    /// `host:port`.
    pub address: String,
    /// Authorities for its certificate, PEM; absent in plaintext.
    pub roots: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Order {
    Totals,
    Mark(u32),
    Writes(u32),
}

/// Counters of a stub.
#[derive(Debug, Serialize, Deserialize)]
pub struct StubTotals {
    /// Size of the bodies of its responses.
    pub body_bytes: u64,
    /// Complaints about its clients.
    pub complaints: Vec<String>,
}

/// A write of a mark; times are nanoseconds of the monotonic clock.
#[derive(Debug, Serialize, Deserialize)]
pub struct Write {
    /// Node id of the client.
    pub node: String,
    pub before_ns: u64,
    pub after_ns: u64,
}

/// A stub in another process, which ends when this is dropped.
pub struct StubProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub listening: Listening,
}

impl StubProcess {
    /// Starts this program as a stub, on the server's CPU.
    pub fn start(order: &StubOrder) -> Outcome<Self> {
        let mut command = pinned(Place::Server, &env::current_exe()?)?;
        command.args([STUB, &serde_json::to_string(order)?]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("start {command:?}: {error}"))?;
        let input = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().ok_or("standard output was piped")?);
        let listening = read(&mut output)?;
        Ok(Self { child, input, output, listening })
    }

    /// Current counters.
    pub fn totals(&mut self) -> Outcome<StubTotals> {
        self.ask(&Order::Totals)
    }

    /// Sends endpoints with a mark to every client.
    pub fn mark(&mut self, number: u32) -> Outcome<()> {
        self.ask(&Order::Mark(number))
    }

    /// Writes of a mark so far.
    pub fn writes(&mut self, number: u32) -> Outcome<Vec<Write>> {
        self.ask(&Order::Writes(number))
    }

    fn ask<T: for<'a> Deserialize<'a>>(&mut self, order: &Order) -> Outcome<T> {
        let input = self.input.as_mut().ok_or("the stub's input is closed")?;
        writeln!(input, "{}", serde_json::to_string(order)?)?;
        read(&mut self.output)
    }
}

impl Drop for StubProcess {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

fn read<T: for<'a> Deserialize<'a>>(output: &mut BufReader<ChildStdout>) -> Outcome<T> {
    let mut line = String::new();
    output.read_line(&mut line)?;
    Ok(serde_json::from_str(&line).map_err(|error| format!("the stub said {line:?}: {error}"))?)
}

/// Runs a stub until standard input ends.
pub fn run(order: &str) -> Outcome<()> {
    let order: StubOrder = serde_json::from_str(order)?;
    let mut spec = StubSpec::new(Configuration::for_sidecars_of_bytes(order.bytes));
    spec.log_writes = order.churn_per_s > 0.0;
    let authority =
        if order.tls { Some(Authority::new("authority").map_err(|error| error.to_string())?) } else { None };
    let tls = authority.as_ref().map(|authority| authority.server(SERVER_NAME, Validity::Valid));
    spec.tls = tls.transpose().map_err(|error| error.to_string())?;
    let stub = Arc::new(Stub::start(spec)?);
    let roots = authority.map(|authority| authority.certificate_pem());
    answer(&Listening { address: stub.address().to_string(), roots })?;
    let churn = Churn::start(&stub, order.churn_per_s);
    for line in io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            Order::Totals => {
                let totals = stub.totals();
                answer(&StubTotals { body_bytes: totals.body_bytes, complaints: totals.complaints })?;
            }
            Order::Mark(number) => answer(&stub.mark_endpoints(MARKED_SERVICE, number)?)?,
            Order::Writes(number) => answer(&writes(&stub, number))?,
        }
    }
    churn.stop();
    Ok(())
}

/// Writes of one mark since the last call.
fn writes(stub: &Stub, number: u32) -> Vec<Write> {
    let writes = stub.take_writes().into_iter().filter(|write| write.mark == number);
    let write = writes.map(|write| Write {
        before_ns: monotonic_ns(write.before),
        after_ns: monotonic_ns(write.after),
        node: write.node,
    });
    write.collect()
}

/// Endpoints that keep changing.
struct Churn {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Churn {
    fn start(stub: &Arc<Stub>, per_s: f64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stub, stopped) = (Arc::clone(stub), Arc::clone(&stop));
        let thread = (per_s > 0.0).then(|| thread::spawn(move || churn(&stub, per_s, &stopped)));
        Self { stop, thread }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
    }
}

fn churn(stub: &Stub, per_s: f64, stop: &AtomicBool) {
    let begun = Instant::now();
    for number in 0.. {
        let due = begun + Duration::from_secs_f64(f64::from(number) / per_s);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if stop.load(Ordering::Relaxed)
            || stub.mark_endpoints(CHURNING_SERVICE, CHURN_MARKS + number).is_err()
        {
            return;
        }
    }
}

#[allow(clippy::print_stdout, reason = "the other side reads it")]
fn answer(value: &impl Serialize) -> Outcome<()> {
    println!("{}", serde_json::to_string(value)?);
    Ok(io::stdout().flush()?)
}
