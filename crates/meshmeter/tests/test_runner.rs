//! `scripts/tests.py` with stub programs: what fails a run. Needs `python3`.

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Lists of `scripts/test-programs.toml` that name nothing.
const EMPTY_LISTS: &str = "longest-first = []\nin-a-row = []\nnot-in-quick = []\n";

/// Output of a program with one test that passes.
const PASSES: &str = "echo 'running 1 test'; echo 'test one ... ok'; echo; \
    echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s'";

/// Takes part of a second; only waiting in vain exceeds it.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A copy of the runner with test programs and a selection of its own.
struct Runner {
    folder: TempDir,
    programs: Vec<(String, PathBuf)>,
    /// Those that print no test result.
    benchmarks: &'static [&'static str],
}

/// How a run of the runner ended.
#[derive(Debug)]
struct Outcome {
    status: Option<i32>,
    /// Output and errors.
    text: String,
}

impl Runner {
    fn new() -> Self {
        let runner = Self { folder: tempfile::tempdir().unwrap(), programs: Vec::new(), benchmarks: &[] };
        let scripts = runner.folder.path().join("scripts");
        fs::create_dir(&scripts).unwrap();
        let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/tests.py");
        fs::copy(original, scripts.join("tests.py")).unwrap();
        runner.with_tables("")
    }

    /// Replaces the tables of the selection: `[measuring]` and `[cases-of-quick]`.
    fn with_tables(self, tables: &str) -> Self {
        let missing: String = ["measuring", "cases-of-quick"]
            .into_iter()
            .filter(|name| !tables.contains(&format!("[{name}]")))
            .map(|name| format!("[{name}]\n"))
            .collect();
        let table = format!("benchmarks = {:?}\n{EMPTY_LISTS}{missing}{tables}", self.benchmarks);
        fs::write(self.folder.path().join("scripts/test-programs.toml"), table).unwrap();
        self
    }

    fn with_benchmarks(self, benchmarks: &'static [&'static str]) -> Self {
        Self { benchmarks, ..self }.with_tables("")
    }

    /// Adds a test program that is a shell script.
    fn with(mut self, name: &str, script: &str) -> Self {
        let path = self.folder.path().join(name.replace('/', "-"));
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        self.programs.push((name.to_owned(), path));
        self
    }

    /// Adds a test program whose file is missing.
    fn with_missing(mut self, name: &str) -> Self {
        self.programs.push((name.to_owned(), self.folder.path().join("missing")));
        self
    }

    /// The command that runs the programs, as `make test` or `make test-all` does after the build.
    fn command(&self, arguments: &[&str]) -> Command {
        let target = self.folder.path().join("target");
        fs::create_dir_all(target.join("tests")).unwrap();
        let list: Vec<_> =
            self.programs.iter().map(|(name, path)| (name, self.folder.path(), path)).collect();
        fs::write(target.join("tests/programs.json"), serde_json::to_vec(&list).unwrap()).unwrap();
        let mut command = Command::new("python3");
        command.arg(self.folder.path().join("scripts/tests.py")).args(arguments).arg("--no-build");
        command.env("CARGO_TARGET_DIR", target);
        command
    }

    fn run(&self, what: &str) -> Outcome {
        self.run_with(what, [])
    }

    fn run_with<const N: usize>(&self, what: &str, variables: [(&str, &OsStr); N]) -> Outcome {
        let output = self.command(&[what]).envs(variables).output().expect("python3 is installed");
        Outcome::new(&output)
    }
}

impl Outcome {
    fn new(output: &Output) -> Self {
        let text = [&output.stdout[..], &output.stderr].concat();
        Self { status: output.status.code(), text: String::from_utf8_lossy(&text).into_owned() }
    }

    #[track_caller]
    fn assert_failed_with(&self, lines: &[&str]) {
        assert_eq!(self.status, Some(1), "{}", self.text);
        for line in lines {
            assert!(self.text.contains(line), "`{line}` is missing: {}", self.text);
        }
    }
}

/// A named pipe that programs have open for writing while they live.
struct Writers(fs::File);

impl Writers {
    /// The pipe is called `writers`.
    fn new(folder: &Path) -> Self {
        let path = folder.join("writers");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let non_blocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
        Self(fs::File::options().read(true).custom_flags(non_blocking).open(path).unwrap())
    }

    /// Killed processes close their files a moment after the signal.
    fn wait_until_gone(mut self) {
        wait_until("all writers are gone", || matches!(self.0.read(&mut [0]), Ok(0)));
    }
}

#[track_caller]
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out: {what}");
        thread::sleep(POLL_INTERVAL);
    }
}

/// Number of programs that the runner runs at once.
fn slots() -> usize {
    printed_by("import tests; print(tests.SLOTS)").trim().parse().unwrap()
}

#[test]
fn benchmark_has_no_test_result() {
    let runner = Runner::new().with_benchmarks(&["crate/bench"]).with("crate/bench", "echo 12 ns");
    let outcome = runner.run("quick");
    assert_eq!(outcome.status, Some(0), "{}", outcome.text);
    let runner = Runner::new().with_benchmarks(&["crate/bench"]).with("crate/bench", "echo 12 ns; exit 3");
    runner.run("quick").assert_failed_with(&["crate/bench (exit status 3)"]);
}

#[test]
fn passing_programs_pass() {
    let outcome = Runner::new().with("a/one", PASSES).with("a/two", PASSES).run("quick");
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
    assert!(outcome.text.contains("2 passed, 0 failed, 0 skipped"), "{outcome:?}");
}

#[test]
fn program_that_cannot_be_started_fails_and_others_run() {
    let runner = Runner::new().with_missing("a/gone").with_missing("b/gone").with_missing("c/gone");
    let outcome = runner.with("d/one", PASSES).run("quick");
    outcome.assert_failed_with(&["failed (behaviour): a/gone (it cannot be started", "1 passed, 3 failed"]);
}

/// Threads die since they cannot print the output of their programs.
#[test]
fn programs_of_threads_that_died_fail() {
    let of_threads = (0..slots()).map(|thread| format!("a/{thread}"));
    let runner = of_threads.fold(Runner::new(), |runner, name| runner.with(&name, "echo 'ü'"));
    let runner = runner.with("b/one", PASSES);
    let outcome = runner.run_with("quick", [("PYTHONIOENCODING", OsStr::new("ascii"))]);
    outcome.assert_failed_with(&["failed (behaviour): b/one (it did not run)"]);
}

#[test]
fn program_that_ends_early_with_success_fails() {
    let early = "echo 'running 3 tests'; echo 'test one ... ok'";
    let fewer = PASSES.replace("running 1 test", "running 3 tests");
    let runner = Runner::new().with("a/early", early).with("b/silent", "exit 0").with("c/fewer", &fewer);
    runner.run("quick").assert_failed_with(&[
        "failed (behaviour): a/early (it printed no test result)",
        "failed (behaviour): b/silent (it printed no test result)",
        "failed (behaviour): c/fewer (3 tests announced, 1 counted in its test result, outcomes of 1)",
    ]);
}

/// The format of programs without a harness: libtest-mimic pads names, and our own cases are not announced.
#[test]
fn programs_without_harness_pass() {
    let padded = PASSES.replace("test one ... ok", "test one    ... ok");
    let unannounced =
        PASSES.replace("echo 'running 1 test'; ", "").replace("one ... ok", "one ... ok (0.1 s)");
    let outcome = Runner::new().with("a/padded", &padded).with("b/cases", &unannounced).run("quick");
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
    assert!(outcome.text.contains("2 passed, 0 failed, 0 skipped"), "{outcome:?}");
}

#[test]
fn named_case_that_is_skipped_fails() {
    let skipped =
        PASSES.replace("one ... ok", "one ... not run: no Istio here").replace("1 passed", "0 passed");
    let skipped = skipped.replace("0 ignored", "1 ignored");
    let ignored = skipped.replace("not run: no Istio here", "ignored");
    let tables = "[cases-of-quick]\n\"a/cases\" = [\"one\"]\n\"b/libtest\" = [\"one\"]\n";
    let runner = Runner::new().with_tables(tables).with("a/cases", &skipped).with("b/libtest", &ignored);
    runner.run("quick").assert_failed_with(&[
        "failed (behaviour): a/cases one (named in test-programs.toml, and did not run)",
        "failed (behaviour): b/libtest one (named in test-programs.toml, and did not run)",
    ]);
}

/// With one test at a time, libtest prints a name, runs the test and prints the outcome.
#[test]
fn outcome_is_recognised_beside_output_of_processes() {
    let between = PASSES.replace("test one ... ok", "test one ... listening\\nok: a port\\nready ok");
    let same_line = PASSES.replace("test one ... ok", "test one ... listeningok");
    let before = PASSES.replace("test one", "listeningtest one");
    let tables = "[measuring]\n\"a/between\" = [\"one\"]\n\"b/same\" = [\"one\"]\n\"c/before\" = [\"one\"]\n";
    let runner = Runner::new().with_tables(tables).with("a/between", &between);
    let outcome = runner.with("b/same", &same_line).with("c/before", &before).run("all");
    // Each runs twice: with and without its measuring test.
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
    assert!(outcome.text.contains("6 passed, 0 failed, 0 skipped"), "{outcome:?}");
}

#[test]
fn failure_is_named_beside_output_of_processes() {
    let script =
        "printf 'running 1 test\\ntest one ... looks ok\\nFAILED\\n\\nfailures:\\n    it is ok\\n'; exit 101";
    let outcome = Runner::new().with("a/one", script).run("quick");
    outcome.assert_failed_with(&["failed (behaviour): a/one one\n", "0 passed, 1 failed"]);
}

/// A program whose child outlives it.
#[test]
fn hung_program_fails_and_its_processes_end() {
    let runner = Runner::new();
    let writers = Writers::new(runner.folder.path());
    let runner = runner.with("a/hangs", "sleep 1000 >writers & wait");
    let output = runner.command(&["quick", "--timeout", "1"]).output().unwrap();
    Outcome::new(&output).assert_failed_with(&["failed (behaviour): a/hangs (killed: it hung)"]);
    writers.wait_until_gone();
}

/// A program that notices that it did not run for half a second.
#[test]
fn stalls_stop_programs_and_let_them_go_on() {
    let watch = "import time\nlast = time.monotonic()\nwhile (now := time.monotonic()) - last < 0.5:\n    last = now\n    \
                 time.sleep(0.01)";
    let runner = Runner::new().with("a/stalls", &format!("python3 -c '{watch}'; {PASSES}"));
    let output = runner.command(&["quick", "--stall", "1"]).output().unwrap();
    let outcome = Outcome::new(&output);
    assert_eq!(outcome.status, Some(0), "{}", outcome.text);
}

/// A shell ignores SIGINT for what runs in its background, and `nohup` SIGHUP. Tests send both.
#[test]
fn programs_do_not_ignore_signals_that_the_runner_was_started_without() {
    let ignores_none =
        "ignored=0x$(sed -n 's/^SigIgn:[[:space:]]*//p' /proc/$$/status); [ $((ignored & 3)) = 0 ]";
    let runner = Runner::new().with("a/ignores-none", &format!("{ignores_none} && {{ {PASSES}; }}"));
    let command = runner.command(&["quick"]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' HUP INT; exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let outcome = Outcome::new(&shell.output().unwrap());
    assert_eq!(outcome.status, Some(0), "{}", outcome.text);
}

/// Interrupts the runner as its second thread has been started, and prints whether it stopped its programs.
const INTERRUPTED_START: &str = "
import signal, threading, tests

class Runner:
    is_stopped = False
    def run(self, program): return None
    def stop(self, threads): self.is_stopped = True

start, started = threading.Thread.start, []
def interrupted_start(thread):
    start(thread)
    started.append(thread)
    if len(started) == 2:
        signal.raise_signal(signal.SIGINT)
threading.Thread.start = interrupted_start

runner = Runner()
tests.heed_signals()
try:
    tests.run_side_by_side(runner, [[1], [2], [3]], 3, print)
except KeyboardInterrupt:
    print('stopped:', runner.is_stopped)
";

/// Output of a program that has the runner as its module. SIGINT is ignored at its start, as in the background of a shell.
#[track_caller]
fn printed_by(python: &str) -> String {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts");
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' INT; exec python3 -B -c \"$1\"", "sh", python]).env("PYTHONPATH", scripts);
    let output = shell.output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn interruption_while_programs_are_being_started_stops_them() {
    assert_eq!(printed_by(INTERRUPTED_START), "stopped: True\n");
}

/// Interrupts the runner by a signal that another thread than the waiting one gets, as if it had come just before the wait. Prints
/// whether the programs still ran when they were stopped: they end by themselves after a time that only waiting in vain takes.
const UNNOTICED_SIGNAL: &str = "
import pathlib, os, signal, threading, time, tests

class Runner:
    def __init__(self):
        self.stopped = threading.Event()
        self.still_run = True
    def run(self, program):
        if program == 3:
            interrupt()
        self.still_run = self.stopped.wait(60) and self.still_run
    def stop(self, threads):
        print('still run:', self.still_run)
        self.stopped.set()

def interrupt():
    waits = lambda: pathlib.Path(f'/proc/self/task/{os.getpid()}/stat').read_text().rsplit(') ', 1)[1][0] == 'S'
    for _ in range(20):
        while not waits():
            pass
        time.sleep(0.01)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

tests.heed_signals()
try:
    tests.run_side_by_side(Runner(), [[1], [2], [3]], 3, print)
except KeyboardInterrupt:
    print('interrupted')
";

#[test]
fn interruption_just_before_the_wait_for_programs_is_noticed() {
    assert_eq!(printed_by(UNNOTICED_SIGNAL), "still run: True\ninterrupted\n");
}

#[test]
fn interruption_ends_programs_and_starts_no_more() {
    let mut runner = Runner::new();
    let writers = Writers::new(runner.folder.path());
    let slots = slots();
    for number in 0..slots + 3 {
        runner = runner.with(&format!("a/{number}"), "echo started >>started; exec sleep 1000 >writers");
    }
    let started = runner.folder.path().join("started");
    let count = || fs::read_to_string(&started).unwrap_or_default().lines().count();
    let mut child = runner.command(&["quick"]).stdout(Stdio::null()).spawn().unwrap();
    wait_until("as many programs run as do at once", || count() == slots);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    wait_until("the runner ends", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(count(), slots, "more programs were started");
    writers.wait_until_gone();
}
