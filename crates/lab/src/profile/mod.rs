//! Where CPU time goes: `perf` samples the stacks of every component's processes while a window is open.
//!
//! Samples are taken by time (99 per second of CPU, so that they do not keep step with timers) and only of threads that run.
//! Stacks are followed by frame pointers: programs without them, such as Envoy's releases, show the innermost frame alone, and
//! programs without symbols show their own name in brackets. `fold.rs` reads the samples.

mod fold;

pub use fold::check_perf_script;

use crate::Result;
use crate::observe::Watched;
use crate::sandbox::enter::is_inside;
use experiment::environment::{EnvironmentError, ErrorContext as _, error_chain};
use mesh::admin::Admin;
use mesh::names::file_name;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{BufReader, ErrorKind, Read as _};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Samples per second of CPU time.
const SAMPLES_PER_S: &str = "99";
/// Time for perf to write what it has, and for its processes to end.
const END_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Greatest `perf_event_paranoid` at which users may sample their own processes.
const MAX_PARANOID: i32 = 2;

/// Checks that stacks can be sampled here.
///
/// # Errors
/// Returns an error with a hint if perf is absent or forbidden.
pub fn check() -> Result<()> {
    let failed = |error: EnvironmentError| error.lasting();
    // The inner process of a lab runs the same command: what it is in has been checked, and has no `/proc` of its own yet.
    if is_inside() {
        return Ok(());
    }
    let mut command = record();
    let output = command.args(["-o", "-", "--", "true"]).stdout(Stdio::null()).output();
    let output = output.map_err(|error| match error.kind() {
        ErrorKind::NotFound => failed(EnvironmentError::new("profile", "perf is not installed"))
            .with_hint("install perf (Debian: linux-perf, Ubuntu: linux-tools-generic, Fedora: perf)"),
        _ => failed(EnvironmentError::new("start perf", error)),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let error =
        failed(EnvironmentError::new("profile", format!("perf failed: {}", last_line(&output.stderr))));
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let is_forbidden = paranoid.trim().parse::<i32>().is_ok_and(|paranoid| paranoid > MAX_PARANOID);
    Err(match is_forbidden {
        true => error.with_hint(format!("as root: `sysctl kernel.perf_event_paranoid={MAX_PARANOID}`")),
        false => error,
    })
}

/// `perf record` with its options. Nothing is kept in the user's cache of symbols, or fetched from servers.
fn record() -> Command {
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-F", SAMPLES_PER_S, "-g", "-B", "-N"]);
    command.env_remove("DEBUGINFOD_URLS").stdin(Stdio::null());
    command
}

/// What perf said last.
fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it gives no reason").to_owned()
}

/// Page of an istiod or a ztunnel with which it profiles itself, in the format of pprof.
#[derive(Debug)]
pub(crate) struct ProfilePage {
    pub component: String,
    pub admin: Admin,
    pub window: Duration,
}

impl ProfilePage {
    /// Reads it, which takes as long as the window. ztunnels choose the time themselves.
    fn read(&self) -> Result<Vec<u8>> {
        let path = format!("/debug/pprof/profile?seconds={}", self.window.as_secs().max(1));
        let admin = self.admin.within(self.window + END_TIMEOUT);
        admin.ask(&path).context(format!("profile {}", self.component))
    }
}

/// Samples that are being taken. Dropping it ends perf.
#[derive(Debug)]
pub(crate) struct Profiler {
    perf: Child,
    /// Profiles that components make of themselves.
    pages: Vec<(String, JoinHandle<Result<Vec<u8>>>)>,
    data: PathBuf,
    /// Components by process.
    components: HashMap<i32, String>,
}

impl Profiler {
    /// Samples all processes of these components, and requests these pages. `directory` is for perf's own file.
    pub(crate) fn start(watched: &[Watched], pages: Vec<ProfilePage>, directory: &Path) -> Result<Self> {
        let components = by_process(watched);
        let processes: Vec<String> = components.keys().map(i32::to_string).collect();
        let data = directory.join("perf.data");
        let mut command = record();
        command.arg("-p").arg(processes.join(",")).arg("-o").arg(&data);
        let perf = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().context("start perf")?;
        let read = |page: ProfilePage| (page.component.clone(), thread::spawn(move || page.read()));
        Ok(Self { perf, pages: pages.into_iter().map(read).collect(), data, components })
    }

    /// Ends the sampling; perf writes what it has.
    pub(crate) fn end(&mut self, watched: &[Watched]) {
        // One that has ended before has said why.
        let _ = kill_process(Pid::from_child(&self.perf), Signal::INT);
        // Processes that a component started within the window are its own as well.
        self.components.extend(by_process(watched));
    }

    /// Writes the stacks of each component to a file in `directory`. Must be called while the processes run: their programs are
    /// read for names. Returns what is to be said of the trial.
    pub(crate) fn finish(mut self, directory: &Path) -> String {
        let stored = self.wait().and_then(|()| self.folded()).and_then(|folded| store(&folded, directory));
        let stored = stored.and_then(|()| store_pages(std::mem::take(&mut self.pages), directory));
        match stored {
            Ok(()) => "perf sampled the stacks of the components: the figures carry its cost".to_owned(),
            Err(error) => format!("profiles are incomplete: {}", error_chain(&error)),
        }
    }

    fn wait(&mut self) -> Result<()> {
        let deadline = Instant::now() + END_TIMEOUT;
        while self.perf.try_wait().context("wait for perf")?.is_none() {
            if Instant::now() >= deadline {
                return Err(EnvironmentError::new("end perf", "it did not end in time"));
            }
            thread::sleep(POLL_INTERVAL);
        }
        if self.data.exists() {
            return Ok(());
        }
        let mut said = Vec::new();
        if let Some(mut errors) = self.perf.stderr.take() {
            let _ = errors.read_to_end(&mut said);
        }
        Err(EnvironmentError::new("sample stacks with perf", last_line(&said)))
    }

    /// Stacks with their number of samples by component.
    fn folded(&self) -> Result<BTreeMap<&str, BTreeMap<String, u64>>> {
        let operation = "read the samples of perf";
        let mut script = Command::new("perf")
            .args(["script", "--force", "--no-inline", "-F", "comm,pid,ip,sym,dso", "-i"])
            .arg(&self.data)
            .env_remove("DEBUGINFOD_URLS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context(operation)?;
        let output = script.stdout.take().expect("it is piped");
        let folded = fold::fold(BufReader::new(output)).context(operation);
        let status = script.wait().context(operation)?;
        let folded = folded?;
        if !status.success() {
            return Err(EnvironmentError::new(operation, format!("perf ended with {status}")));
        }
        let mut components: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
        for (process, stacks) in folded {
            let Some(component) = self.components.get(&process) else { continue };
            let own = components.entry(component).or_default();
            for (stack, samples) in stacks {
                *own.entry(stack).or_default() += samples;
            }
        }
        Ok(components)
    }
}

/// `COMPONENT.folded`: a line per stack, `thread;frame;frame 12`.
fn store(folded: &BTreeMap<&str, BTreeMap<String, u64>>, directory: &Path) -> Result<()> {
    for (component, stacks) in folded {
        let file = directory.join(format!("{}.folded", file_name(component)));
        let lines: String = stacks.iter().map(|(stack, samples)| format!("{stack} {samples}\n")).collect();
        fs::write(&file, lines).context(format!("write {}", file.display()))?;
    }
    Ok(())
}

/// `COMPONENT.pprof`, as the component wrote it.
fn store_pages(pages: Vec<(String, JoinHandle<Result<Vec<u8>>>)>, directory: &Path) -> Result<()> {
    for (component, page) in pages {
        let profile = page.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        let file = directory.join(format!("{}.pprof", file_name(&component)));
        fs::write(&file, profile).context(format!("write {}", file.display()))?;
    }
    Ok(())
}

impl Drop for Profiler {
    fn drop(&mut self) {
        let _ = self.perf.kill();
        let _ = self.perf.wait();
        let _ = fs::remove_file(&self.data);
    }
}

fn by_process(watched: &[Watched]) -> HashMap<i32, String> {
    let own = |watched: &Watched| {
        watched.pids().into_iter().map(|pid| (pid, watched.name.clone())).collect::<Vec<_>>()
    };
    watched.iter().flat_map(own).collect()
}
