//! Two servers, the same load in turn, round after round: throughput, CPU and memory of each.
//!
//! wrk may be full before the faster server is, so requests for each second of the server's CPU are the figure that counts;
//! the throughput is beside it.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Size of the body, bytes.
const BODY_BYTES: usize = 1024;
/// How long a server may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(10);

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What to run.
pub struct Contest {
    /// The command under test.
    pub meshmeter: PathBuf,
    /// How often each server is loaded.
    pub rounds: usize,
    /// For how long each time, seconds.
    pub seconds: u32,
    /// Connections of wrk.
    pub connections: u32,
}

/// What it showed.
pub struct ContestResult {
    /// `meshmeter serve`, then nginx.
    pub servers: [ServerResult; 2],
}

/// One server's rounds.
pub struct ServerResult {
    /// What it is.
    pub name: &'static str,
    /// Resident memory of all its processes before any load, bytes.
    pub idle_memory_bytes: u64,
    /// One for each round.
    pub rounds: Vec<Round>,
}

/// One server under load.
#[derive(Clone, Copy)]
pub struct Round {
    /// As wrk counts, a second.
    pub requests_per_second: f64,
    /// CPU of the server for each request, microseconds.
    pub cpu_us_per_request: f64,
}

impl Contest {
    /// Runs it.
    ///
    /// # Errors
    /// Where a program is missing or an answer is no good: the text says which.
    pub fn run(&self) -> Outcome<ContestResult> {
        let folder = tempfile::tempdir()?;
        let running = [self.start_meshmeter()?, start_nginx(folder.path())?];
        let mut servers =
            [("meshmeter serve", &running[0]), ("nginx return 200", &running[1])].map(|(name, server)| {
                ServerResult {
                    name,
                    idle_memory_bytes: server.memory_bytes().unwrap_or(0),
                    rounds: Vec::new(),
                }
            });
        for round in 0..self.rounds {
            // Who comes first takes turns too.
            for index in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
                servers[index].rounds.push(self.load(&running[index])?);
            }
        }
        Ok(ContestResult { servers })
    }

    fn start_meshmeter(&self) -> Outcome<Running> {
        let size = BODY_BYTES.to_string();
        let mut command = pinned(0, &self.meshmeter);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--size", &size])
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut server = Running::start(&mut command)?;
        let stdout = server.child.stdout.take().ok_or("standard output was piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let url = line
            .trim()
            .strip_prefix("listening on ")
            .ok_or_else(|| format!("meshmeter serve said {line:?}"))?;
        server.url = format!("{url}/");
        server.worker = server.child.id();
        Ok(server)
    }

    fn load(&self, server: &Running) -> Outcome<Round> {
        let before_s = server.cpu_s()?;
        let output = pinned(1, Path::new("wrk"))
            .args(["-t1", &format!("-c{}", self.connections), &format!("-d{}s", self.seconds), &server.url])
            .output()?;
        let cpu_s = server.cpu_s()? - before_s;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() || text.contains("Socket errors") || text.contains("Non-2xx") {
            return Err(
                format!("wrk on {}: {text}{}", server.url, String::from_utf8_lossy(&output.stderr)).into()
            );
        }
        let requests = number_before(&text, " requests in ")?;
        let rate = text.split("Requests/sec:").nth(1).and_then(|rest| rest.split_whitespace().next());
        let requests_per_second = rate.ok_or("wrk printed no rate")?.parse()?;
        Ok(Round { requests_per_second, cpu_us_per_request: cpu_s * 1e6 / requests })
    }
}

fn number_before(text: &str, words: &str) -> Outcome<f64> {
    let before = text.split(words).next().and_then(|before| before.split_whitespace().last());
    Ok(before.ok_or("wrk printed no count")?.parse()?)
}

/// A program on one CPU; where there is only one, they share it.
fn pinned(cpu: usize, program: &Path) -> Command {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let mut command = Command::new("taskset");
    command.stdin(Stdio::null());
    command.args(["-c", &cpu.min(cpus - 1).to_string()]).arg(program);
    command
}

/// A server, ended when dropped.
struct Running {
    child: Child,
    /// The process that answers.
    worker: u32,
    url: String,
}

impl Running {
    fn start(command: &mut Command) -> Outcome<Self> {
        let child = command.spawn().map_err(|error| format!("start {command:?}: {error}"))?;
        Ok(Self { child, worker: 0, url: String::new() })
    }

    fn cpu_s(&self) -> Outcome<f64> {
        let path = format!("/proc/{}/schedstat", self.worker);
        let text = fs::read_to_string(&path).map_err(|error| format!("read {path}: {error}"))?;
        let on_cpu_ns: f64 = text.split_whitespace().next().ok_or("schedstat is empty")?.parse()?;
        Ok(on_cpu_ns / 1e9)
    }

    fn memory_bytes(&self) -> Outcome<u64> {
        let mut processes = vec![self.child.id(), self.worker];
        processes.dedup();
        let mut sum_kib = 0;
        for process in processes {
            let status = fs::read_to_string(format!("/proc/{process}/status"))?;
            let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            sum_kib += resident
                .and_then(|text| text.trim().strip_suffix(" kB"))
                .ok_or("no VmRSS")?
                .parse::<u64>()?;
        }
        Ok(sum_kib * 1024)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // nginx ends its worker on SIGTERM and leaves it behind on SIGKILL.
        if let Some(process) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        }
        if until(|| self.child.try_wait().ok().flatten()).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn start_nginx(folder: &Path) -> Outcome<Running> {
    // nginx cannot choose a port itself.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let configuration = folder.join("nginx.conf");
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {}/{kind};\n", folder.display()))
        .concat();
    let text = format!(
        "worker_processes 1;\ndaemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n{temporary}access_log off;\nkeepalive_requests 1000000000;\n\
         server {{ listen 127.0.0.1:{port}; location / {{ return 200 \"{body}\"; }} }}\n}}\n",
        folder = folder.display(),
        body = "x".repeat(BODY_BYTES),
    );
    fs::write(&configuration, text)?;
    let mut command = pinned(0, Path::new("nginx"));
    command.arg("-e").arg(folder.join("error.log")).arg("-c").arg(&configuration);
    let mut server = Running::start(&mut command)?;
    server.url = format!("http://127.0.0.1:{port}/");
    let master = server.child.id();
    let worker = until(|| {
        TcpStream::connect(("127.0.0.1", port)).ok()?;
        let children = fs::read_to_string(format!("/proc/{master}/task/{master}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    });
    server.worker = worker.ok_or_else(|| {
        let log = fs::read_to_string(folder.join("error.log")).unwrap_or_default();
        format!("nginx did not start: is it installed? {log}")
    })?;
    Ok(server)
}

/// Asks until there is an answer or patience ends.
fn until<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = ask();
        if answer.is_some() || Instant::now() >= deadline {
            return answer;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

impl ServerResult {
    /// The median over the rounds.
    pub fn median(&self, figure: impl Fn(&Round) -> f64) -> f64 {
        let mut figures: Vec<f64> = self.rounds.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

impl ContestResult {
    /// Requests for each second of CPU, `meshmeter serve` over nginx: above 1, it is the cheaper.
    pub fn requests_per_core_ratio(&self) -> f64 {
        let [meshmeter, nginx] =
            self.servers.each_ref().map(|server| server.median(|round| round.cpu_us_per_request));
        nginx / meshmeter
    }

    /// Throughput, `meshmeter serve` over nginx.
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
