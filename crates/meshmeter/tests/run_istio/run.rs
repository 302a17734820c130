//! A run of the command while it is under way, and what it has left behind afterwards.

use crate::cases::last_lines;
use crate::process::{Place, Process, Processes};
use results::{TrialOutcome, TrialRecord};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Timeout for anything awaited from a run, even on a busy machine.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(300);

/// Short compared with the steps of a run, long compared with reading its processes.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Modes whose proxies are run by agents.
const HAVE_AGENTS: [&str; 3] = ["sidecar", "ingress", "waypoint"];

/// Directories for an experiment, its runs, and everything else that a run writes.
pub struct Scene {
    folder: TempDir,
}

impl Scene {
    /// With this experiment, which uses `mesh: istio` unless it says otherwise.
    pub fn new(experiment: &str) -> Self {
        let has_agents = HAVE_AGENTS.iter().any(|mode| experiment.contains(mode));
        let mesh = if experiment.contains("mesh: ") {
            ""
        } else if experiment.contains("istio:") || !has_agents {
            "mesh: istio\n"
        } else {
            // Making RSA keys would take a sixth of a second of CPU per pod.
            "mesh: istio\nistio: {workload-keys: ecdsa}\n"
        };
        let folder = tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir()
            .expect("a temporary folder");
        let scene = Self { folder };
        fs::write(scene.path("experiment.yaml"), format!("name: run-istio\n{mesh}{experiment}"))
            .expect("it is writable");
        fs::create_dir(scene.path("tmp")).expect("it is writable");
        scene
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A program made of this script.
    pub fn program(&self, name: &str, script: &str) -> PathBuf {
        test_support::program(self.folder.path(), name, script).into()
    }

    /// The command, with the directories of this scene.
    pub fn meshmeter(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_meshmeter"));
        command
            .stdin(Stdio::null())
            .current_dir(self.folder.path())
            .env("MESHMETER_RUNTIME_DIR", self.path("m"))
            .env("TMPDIR", self.path("tmp"));
        command
    }

    /// Starts a run of the experiment with this directory name.
    pub fn start(&self, name: &str) -> Run {
        self.start_with(name, self.meshmeter().arg("run"))
    }

    /// Like [`Self::start`], with a given command line, which already contains `run`.
    pub fn start_with(&self, name: &str, command: &mut Command) -> Run {
        let mut child = command
            .args(["experiment.yaml", "--seed", "1", "--noise-floor", "100ms", "--out", name])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let stderr = child.stderr.take().expect("piped");
        let (sender, said) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Run { child, said, heard: Vec::new(), folder: self.path(name) }
    }
}

impl Drop for Scene {
    /// For a failed case, prints the last output of the components of its runs. Nothing of the runs may be
    /// left.
    fn drop(&mut self) {
        if thread::panicking() {
            last_lines::tell(self.folder.path());
            // Their processes have ended with the runs themselves.
            let down = self.meshmeter().args(["lab", "down"]).output();
            down.iter().for_each(|down| print!("{}", String::from_utf8_lossy(&down.stderr)));
        }
    }
}

/// A run under way. It is killed when dropped, and everything in its lab with it.
pub struct Run {
    child: Child,
    said: Receiver<String>,
    heard: Vec<String>,
    folder: PathBuf,
}

/// A run that has ended.
pub struct Ended {
    pub status: Option<i32>,
    /// Lines of its standard error.
    pub said: Vec<String>,
    pub folder: PathBuf,
}

impl Run {
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn processes(&self) -> Processes {
        Processes::for_root(self.pid().as_raw_nonzero().get())
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it was not waited for yet");
    }

    /// Waits for a process of the run other than `than`.
    pub fn await_other(&mut self, place: Place, than: Option<&Process>) -> Process {
        let give_up_at = Instant::now() + COMMAND_TIMEOUT;
        loop {
            if let Some(process) = self.processes().find(place).filter(|process| Some(*process) != than) {
                return process.clone();
            }
            let ended = self.child.try_wait().expect("it is our child");
            self.heard.extend(self.said.try_iter());
            assert!(ended.is_none(), "the run ended without {place:?}: {ended:?}\n{}", self.heard.join("\n"));
            assert!(Instant::now() < give_up_at, "no {place:?}\n{}", self.heard.join("\n"));
            thread::sleep(POLL_INTERVAL);
        }
    }

    pub fn await_process(&mut self, place: Place) -> Process {
        self.await_other(place, None)
    }

    /// Waits for a line on standard error that contains `part`.
    pub fn await_line(&mut self, part: &str) {
        let give_up_at = Instant::now() + COMMAND_TIMEOUT;
        while !self.heard.last().is_some_and(|line| line.contains(part)) {
            let left = give_up_at.saturating_duration_since(Instant::now());
            let line = self.said.recv_timeout(left);
            self.heard.push(line.unwrap_or_else(|_| panic!("no {part:?}\n{}", self.heard.join("\n"))));
        }
    }

    /// Waits for its end, up to `limit`.
    pub fn end_within(mut self, limit: Duration) -> Ended {
        let give_up_at = Instant::now() + limit;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                break status.code();
            }
            self.heard.extend(self.said.try_iter());
            assert!(
                Instant::now() < give_up_at,
                "not ended within {} s\n{}",
                limit.as_secs(),
                self.heard.join("\n")
            );
            thread::sleep(Duration::from_millis(5));
        };
        self.heard.extend(self.said.iter());
        Ended { status, said: std::mem::take(&mut self.heard), folder: self.folder.clone() }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // It has ended already if everything succeeded.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    pub fn trials(&self) -> Vec<TrialRecord> {
        trials(&self.folder)
    }

    pub fn report(&self) -> String {
        fs::read_to_string(self.folder.join("report.html")).expect("a report")
    }

    pub fn text(&self) -> String {
        self.said.join("\n")
    }

    /// Checks that the exit status matches the validity of the trials.
    pub fn check_status(&self) {
        let is_any_valid = self.trials().iter().any(|trial| trial.verdict.valid);
        assert_eq!(self.status, Some(i32::from(!is_any_valid)), "{}", self.text());
    }
}

fn trials(folder: &Path) -> Vec<TrialRecord> {
    let text = fs::read_to_string(folder.join("trials.jsonl")).expect("trials are recorded");
    text.lines().map(|line| serde_json::from_str(line).expect("a trial a line")).collect()
}

/// Checks that a trial is as good as the machine allows: other processes may use the CPU while tests run.
pub fn check_good(trial: &TrialRecord) {
    assert_eq!(trial.outcome, TrialOutcome::Finished, "{:?}", trial.verdict);
    assert!(trial.path.proven, "{:?}", trial.path.reasons);
    assert!(trial.log_tails.is_empty(), "{:?}", trial.log_tails);
    let of_machine = ["other-processes", "steal", "schedule-lag", "generator", "saturated", "throughput"];
    for reason in &trial.verdict.reasons {
        assert!(of_machine.iter().any(|kind| reason.starts_with(kind)), "{reason}");
    }
}
