//! Services of one topology as processes, with load on a callee and on its caller in turn, round after round.

use crate::bare;
use crate::contest::process::{EXIT_TIMEOUT, resident_bytes, run_to_end};
use crate::contest::{Outcome, median};
use std::fmt;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The pair to which the promise applies.
pub const PROMISED: &str = "http/1.1";

/// Name, protocol between the services, and script of the callee.
const PAIRS: [(&str, &str, &str); 5] = [
    (PROMISED, "http/1.1", ""),
    ("http/2", "http/2", ""),
    ("grpc", "grpc", ""),
    ("http/1.1, callee sleeps 1 ms", "http/1.1", "- sleep: 1ms"),
    ("http/1.1, callee computes 200 us", "http/1.1", "- cpu: 200us"),
];

const ECHO_PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../service/proto/meshmeter/v1/echo.proto");

/// Settings of the benchmark.
pub struct Contest {
    /// The command under test.
    pub meshmeter: PathBuf,
    /// Number of times that each service is loaded.
    pub rounds: usize,
    /// Duration of each load, seconds.
    pub seconds: u32,
    /// Requests per second.
    pub rate: u32,
}

/// Result of the benchmark.
pub struct ContestResult {
    pub pairs: Vec<PairResult>,
    /// Resident memory of a service with four callees before any load, bytes.
    pub idle_memory_bytes: u64,
}

/// A callee, and a caller that calls two of them at once.
pub struct PairResult {
    pub name: &'static str,
    /// Median over the rounds of the p50 of the response time, microseconds.
    pub callee_p50_us: f64,
    pub caller_p50_us: f64,
    /// p50 with bare sockets in place of the caller, for [`PROMISED`].
    pub bare_p50_us: Option<f64>,
    /// Resident memory of the caller after the loads, bytes.
    pub caller_memory_bytes: u64,
}

impl ContestResult {
    /// p50 that the fan-out of a pair adds, microseconds.
    pub fn added_p50_us(&self, name: &str) -> Option<f64> {
        let pair = self.pairs.iter().find(|pair| pair.name == name)?;
        Some(pair.caller_p50_us - pair.callee_p50_us)
    }
}

impl fmt::Display for ContestResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = self.idle_memory_bytes as f64 / 1e6;
        writeln!(f, "idle service with four callees: {mb:.1} MB resident")?;
        writeln!(
            f,
            "{:<36}{:>12}{:>12}{:>12}{:>12}",
            "p50 in us", "callee", "fan-out", "added", "caller, MB"
        )?;
        for pair in &self.pairs {
            let (callee, caller) = (pair.callee_p50_us, pair.caller_p50_us);
            let (added, mb) = (caller - callee, pair.caller_memory_bytes as f64 / 1e6);
            writeln!(f, "{:<36}{callee:>12.1}{caller:>12.1}{added:>12.1}{mb:>12.1}", pair.name)?;
            if let Some(bare) = pair.bare_p50_us {
                let added = bare - callee;
                writeln!(
                    f,
                    "{:<36}{callee:>12.1}{bare:>12.1}{added:>12.1}",
                    "  the same calls, bare sockets"
                )?;
            }
        }
        Ok(())
    }
}

impl Contest {
    /// Runs the benchmark.
    ///
    /// # Errors
    /// Returns an error that says why a service did not start, or the load was not valid.
    pub fn run(&self) -> Outcome<ContestResult> {
        let folder = tempfile::tempdir()?;
        let pairs: Outcome<Vec<PairResult>> =
            PAIRS.iter().map(|pair| self.pair(folder.path(), *pair)).collect();
        let file = write_topology(folder.path(), "http/1.1", "")?;
        let idle = Service::start(&self.meshmeter, &file, "wide", &[])?;
        Ok(ContestResult { pairs: pairs?, idle_memory_bytes: idle.resident_bytes()? })
    }

    fn pair(&self, folder: &Path, (name, protocol, step): (&'static str, &str, &str)) -> Outcome<PairResult> {
        let file = write_topology(folder, protocol, step)?;
        let one = Service::start(&self.meshmeter, &file, "one", &[])?;
        let two = Service::start(&self.meshmeter, &file, "two", &[])?;
        let connect = [format!("one={}", one.authority), format!("two={}", two.authority)];
        let web = Service::start(&self.meshmeter, &file, "web", &connect)?;
        let is_promised = name == PROMISED;
        let bare = is_promised.then(|| bare::start([&one.authority, &two.authority])).transpose()?;
        let (mut callee, mut caller, mut with_bare) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            callee.push(self.load(folder, protocol, &one.authority)?);
            caller.push(self.load(folder, "http/1.1", &web.authority)?);
            if let Some(authority) = &bare {
                with_bare.push(self.load(folder, "http/1.1", authority)?);
            }
        }
        Ok(PairResult {
            name,
            callee_p50_us: median(callee.into_iter()),
            caller_p50_us: median(caller.into_iter()),
            bare_p50_us: is_promised.then(|| median(with_bare.into_iter())),
            caller_memory_bytes: web.resident_bytes()?,
        })
    }

    /// p50 of the response time under load, microseconds.
    fn load(&self, folder: &Path, protocol: &str, authority: &str) -> Outcome<f64> {
        let (scheme, path) =
            if protocol == "grpc" { ("grpc", "meshmeter.v1.Echo/Unary") } else { ("http", "") };
        let json = folder.join("load.json");
        // Removes the result of an earlier load: a load that fails writes none.
        let _ = fs::remove_file(&json);
        let mut command = Command::new(&self.meshmeter);
        command.args(["load", "--connections=4", "--threads=1", "--warmup=500ms"]);
        command.arg(format!("--rate={}", self.rate)).arg(format!("--duration={}s", self.seconds));
        if protocol == "http/2" {
            command.args(["--http", "2"]);
        }
        if protocol == "grpc" {
            // Services of a topology have no reflection.
            command.arg("--proto").arg(ECHO_PROTO);
        }
        command.arg("--json").arg(&json).arg(format!("{scheme}://{authority}/{path}"));
        let ended = run_to_end(&mut command, EXIT_TIMEOUT + Duration::from_secs(self.seconds.into()))?;
        let result: serde_json::Value = serde_json::from_str(
            &fs::read_to_string(&json).map_err(|error| format!("{error}: {}", ended.stderr))?,
        )?;
        if result["requests"]["failed"] != 0 || result["requests"]["completed"] == 0 {
            return Err(format!("{protocol}: requests failed: {}", result["requests"]).into());
        }
        result["response_time_us"]["p50"].as_f64().ok_or_else(|| "there is no p50".into())
    }
}

fn write_topology(folder: &Path, protocol: &str, step: &str) -> Outcome<PathBuf> {
    let callee = |name: &str| {
        let script = if step.is_empty() { String::new() } else { format!("\n    script:\n      {step}") };
        format!("  - name: {name}\n    protocol: {protocol}\n    response: 1KiB{script}\n")
    };
    let fan_out = |name: &str, callees: &str| {
        format!("  - name: {name}\n    response: 1KiB\n    script:\n      - parallel: [{callees}]\n")
    };
    let text = [
        "name: fan-out\nservices:\n".to_owned(),
        fan_out("web", "{call: one}, {call: two}"),
        fan_out("wide", "{call: one}, {call: two}, {call: three}, {call: four}"),
        ["one", "two", "three", "four"].map(callee).concat(),
        "drivers:\n  - {name: generator, in: client, target: web}\n".to_owned(),
    ];
    let file = folder.join("fan-out.yaml");
    fs::write(&file, text.concat())?;
    Ok(file)
}

/// One service as a process; killed when dropped.
struct Service {
    child: Child,
    /// Host and port.
    authority: String,
}

impl Service {
    fn start(meshmeter: &Path, topology: &Path, name: &str, connect: &[String]) -> Outcome<Self> {
        let mut command = Command::new(meshmeter);
        command.args(["serve", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--service", name]);
        command.arg("--topology").arg(topology);
        command.args(connect.iter().map(|place| format!("--connect={place}")));
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut service = Self { child, authority: String::new() };
        let mut line = String::new();
        BufReader::new(service.child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let authority = line.trim_end().strip_prefix("listening on http://");
        service.authority = authority.ok_or_else(|| format!("{name} does not listen: {line}"))?.to_owned();
        Ok(service)
    }

    fn resident_bytes(&self) -> Outcome<u64> {
        // It responds, so it has finished starting.
        std::net::TcpStream::connect(&self.authority)?;
        resident_bytes(self.child.id())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
