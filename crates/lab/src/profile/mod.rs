//! Where CPU time goes: `perf` samples the stacks of every component's processes while a window is open.
//!
//! Samples are taken by time (99 per second of CPU, so that they do not keep step with timers) and only of threads that run. They
//! see less than the CPU counters of cgroups: they miss short bursts, and what runs outside the window.
//! Stacks are followed by frame pointers: programs without them, such as Envoy's releases, show the innermost frame alone, and
//! programs without symbols show their own name in brackets. `fold.rs` reads the samples.

mod fold;

pub use fold::check_perf_script;

use crate::Result;
use crate::observe::Watched;
use crate::sandbox::enter::is_inside;
use components::output_within;
use experiment::environment::{EnvironmentError, ErrorContext as _, error_chain};
use fold::{Folded, fold};
use mesh::admin::Admin;
use mesh::names::file_name;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, BufReader, ErrorKind, Read as _};
use std::os::unix::process::CommandExt as _;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Samples per second of CPU time.
const SAMPLES_PER_S: &str = "99";
/// Time for perf to try itself out on a command that does nothing.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for perf to write what it has, to print it, and for its processes to end.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a trial's samples as text, and of perf's last words.
const MAX_SCRIPT_BYTES: u64 = 256 << 20;
const MAX_ERROR_BYTES: u64 = 64 << 10;
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Greatest `perf_event_paranoid` at which users may sample their own processes.
const MAX_PARANOID: i32 = 2;

/// Checks that stacks can be sampled here.
///
/// # Errors
/// Returns an error with a hint if perf is absent or forbidden, and one if it does not end within 10 s.
pub fn check() -> Result<()> {
    let failed = |error: EnvironmentError| error.lasting();
    // The inner process of a lab runs the same command: what it is in has been checked, and has no `/proc` of its own yet.
    if is_inside() {
        return Ok(());
    }
    let output = output_within(record().args(["-o", "-", "--", "true"]), CHECK_TIMEOUT);
    let output = output.map_err(|error| match error.kind() {
        ErrorKind::NotFound => failed(EnvironmentError::new("profile", "perf is not installed"))
            .with_hint("install perf (Debian: linux-perf, Ubuntu: linux-tools-generic, Fedora: perf)"),
        _ => failed(EnvironmentError::new("run perf", error)),
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

/// A perf in a process group of its own. Dropping it kills the group.
#[derive(Debug)]
struct Perf(Child);

impl Perf {
    fn start(command: &mut Command) -> Result<Self> {
        command.process_group(0).spawn().map(Self).context("start perf")
    }

    /// Waits until it has ended; an error after `timeout`.
    fn ends_within(&mut self, timeout: Duration) -> io::Result<ExitStatus> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                return Err(late(timeout));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// What it wrote to standard error last. A process that it left behind may hold the pipe: only what is in it is read.
    fn last_line(&mut self) -> String {
        let mut said = Vec::new();
        if let Some(errors) = self.0.stderr.take()
            && fcntl_setfl(&errors, OFlags::NONBLOCK).is_ok()
        {
            let _ = errors.take(MAX_ERROR_BYTES).read_to_end(&mut said);
        }
        last_line(&said)
    }

    fn kill(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

impl Drop for Perf {
    fn drop(&mut self) {
        self.kill();
    }
}

fn late(timeout: Duration) -> io::Error {
    io::Error::new(ErrorKind::TimedOut, format!("it had not ended after {} s", timeout.as_secs()))
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
    perf: Perf,
    /// Profiles that components make of themselves.
    pages: Vec<(String, JoinHandle<Result<Vec<u8>>>)>,
    data: PathBuf,
    /// Components by process.
    components: HashMap<i32, String>,
}

impl Profiler {
    /// Samples all processes of these components, and requests these pages. `directory` is for perf's own file.
    pub(crate) fn start(watched: &[Watched], pages: Vec<ProfilePage>, directory: &Path) -> Result<Self> {
        remove_earlier(directory)?;
        let components = by_process(watched);
        let processes: Vec<String> = components.keys().map(i32::to_string).collect();
        let data = directory.join("perf.data");
        let mut command = record();
        command.arg("-p").arg(processes.join(",")).arg("-o").arg(&data);
        let perf = Perf::start(command.stdout(Stdio::null()).stderr(Stdio::piped()))?;
        let read = |page: ProfilePage| (page.component.clone(), thread::spawn(move || page.read()));
        Ok(Self { perf, pages: pages.into_iter().map(read).collect(), data, components })
    }

    /// Ends the sampling; perf writes what it has.
    pub(crate) fn end(&mut self, watched: &[Watched]) {
        // One that has ended before has said why.
        let _ = kill_process(Pid::from_child(&self.perf.0), Signal::INT);
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
        self.perf.ends_within(END_TIMEOUT).context("end perf")?;
        if self.data.exists() {
            return Ok(());
        }
        Err(EnvironmentError::new("sample stacks with perf", self.perf.last_line()))
    }

    /// Stacks with their number of samples by component.
    fn folded(&self) -> Result<BTreeMap<&str, BTreeMap<String, u64>>> {
        let mut command = Command::new("perf");
        command.args(["script", "--force", "--no-inline", "-F", "comm,pid,ip,sym,dso", "-i"]).arg(&self.data);
        command.env_remove("DEBUGINFOD_URLS");
        by_component(script(&mut command, END_TIMEOUT)?, &self.components)
    }
}

/// Runs a `perf script` and folds what it prints.
fn script(command: &mut Command, timeout: Duration) -> Result<Folded> {
    let operation = "read the samples of perf";
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut script = Perf::start(command)?;
    let output = script.0.stdout.take().expect("it is piped");
    let (sender, receiver) = mpsc::channel();
    // A thread, because reads have no timeout.
    thread::spawn(move || {
        // After the timeout there is no receiver any more.
        let _ = sender.send(fold(BufReader::new(output), MAX_SCRIPT_BYTES));
    });
    let folded = receiver.recv_timeout(timeout).unwrap_or_else(|_| Err(late(timeout))).context(operation)?;
    let status = script.ends_within(timeout).context(operation)?;
    if !status.success() {
        return Err(EnvironmentError::new(operation, format!("perf ended with {status}")));
    }
    Ok(folded)
}

/// Stacks of these components with their number of samples; an error if they have none.
fn by_component(
    folded: Folded,
    processes: &HashMap<i32, String>,
) -> Result<BTreeMap<&str, BTreeMap<String, u64>>> {
    let mut components: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
    for (process, stacks) in folded {
        let Some(component) = processes.get(&process) else { continue };
        let own = components.entry(component).or_default();
        for (stack, samples) in stacks {
            *own.entry(stack).or_default() += samples;
        }
    }
    if components.is_empty() {
        return Err(EnvironmentError::new("sample stacks with perf", "it has no samples of the components"));
    }
    Ok(components)
}

/// Removes files of an earlier take of the trial, which was killed: perf would keep its data beside the new, and a component
/// without new samples would have the old ones.
fn remove_earlier(directory: &Path) -> Result<()> {
    let operation = || format!("remove earlier profiles in {}", directory.display());
    for entry in fs::read_dir(directory).context(operation())? {
        let file = entry.context(operation())?.path();
        let is_data = file.ends_with("perf.data") || file.ends_with("perf.data.old");
        let is_profile =
            file.extension().is_some_and(|extension| extension == "folded" || extension == "pprof");
        if is_data || is_profile {
            fs::remove_file(&file).context(operation())?;
        }
    }
    Ok(())
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
        self.perf.kill();
        let _ = fs::remove_file(&self.data);
    }
}

fn by_process(watched: &[Watched]) -> HashMap<i32, String> {
    let own = |watched: &Watched| {
        watched.pids().into_iter().map(|pid| (pid, watched.name.clone())).collect::<Vec<_>>()
    };
    watched.iter().flat_map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    /// Runs a shell script as `perf script`.
    fn printed(text: &str, timeout: Duration) -> Result<Folded> {
        script(Command::new("sh").args(["-c", text]), timeout)
    }

    fn error<T: Debug>(result: Result<T>) -> String {
        error_chain(&result.unwrap_err())
    }

    #[test]
    fn output_without_samples_of_components_is_an_error() {
        let processes = HashMap::from([(12, "server-proxy".to_owned())]);
        let stacks = |text: &str| by_component(printed(text, END_TIMEOUT).unwrap(), &processes);
        let of_another = "printf 'wrk 13\\n\\t7f main (envoy)\\n\\n'";
        for text in ["true", "echo garbage; echo; echo more garbage", of_another] {
            let error = error(stacks(text));
            assert!(error.contains("no samples"), "{text}: {error}");
        }
        let one = stacks("printf 'wrk 12\\n\\t7f main (envoy)\\n\\n'").unwrap();
        assert_eq!(one["server-proxy"]["wrk;main"], 1);
    }

    #[test]
    fn perf_that_fails_or_never_ends_is_an_error() {
        assert!(error(printed("exit 3", END_TIMEOUT)).contains("exit status: 3"));
        for text in ["sleep 600; true", "exec >&-; sleep 600"] {
            let error = error(printed(text, Duration::from_millis(50)));
            assert!(error.contains("had not ended"), "{text}: {error}");
        }
    }

    #[test]
    fn files_of_an_earlier_take_are_removed_and_logs_stay() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["perf.data", "perf.data.old", "server.folded", "istiod.pprof", "server.log"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        remove_earlier(directory.path()).unwrap();
        let left: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["server.log"]);
    }
}
