//! Runs on a cluster as users start them: the command, its directory, and when its load runs.

use crate::cluster::OneNodeCluster;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(super) const IMAGE: &str = "localhost/meshmeter:test";
/// Timeout of every wait.
pub(super) const TIMEOUT: Duration = Duration::from_secs(300);
/// Each poll starts processes, which take CPU time from what is waited for.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A run with its own experiment and directory.
pub(super) struct Run<'a> {
    cluster: &'a OneNodeCluster,
    pub name: &'static str,
    directory: PathBuf,
    pub arguments: Vec<String>,
}

impl<'a> Run<'a> {
    /// A run of the pair, unless another topology is given, in the namespace `name`. `load`: keys of `load`.
    pub fn new(cluster: &'a OneNodeCluster, name: &'static str, topology: &str, load: &str) -> Self {
        let directory = cluster.folder().join(name);
        fs::create_dir_all(&directory).unwrap();
        let experiment = format!(
            "name: {name}\nquestion: What fails?\ntopology: {topology}\nmesh: istio\nmodes: [none]\nload: {{{load}}}\nrepeats: 3\n"
        );
        fs::write(directory.join("experiment.yaml"), experiment).unwrap();
        let place = ["--on=cluster", "--without-nodes", "--namespace-prefix", name];
        Self { cluster, name, directory, arguments: place.map(str::to_owned).to_vec() }
    }

    pub fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    pub fn folder(&self) -> PathBuf {
        self.directory.join("run")
    }

    /// The command, with the image of the tests unless the arguments name one.
    pub fn command(&self) -> Command {
        let mut command = meshmeter(self.cluster);
        command.arg("run").arg(self.directory.join("experiment.yaml")).args(&self.arguments);
        if !self.arguments.iter().any(|argument| argument == "--image") {
            command.args(["--image", IMAGE]);
        }
        if !self.arguments.iter().any(|argument| argument == "--detach") {
            command.arg("--out").arg(self.folder());
        }
        command
    }

    /// The command that continues it, without an image yet.
    pub fn resumption(&self) -> Command {
        let mut command = meshmeter(self.cluster);
        command.arg("run").arg("--resume").arg(self.folder()).args(&self.arguments);
        command
    }

    pub fn output(&self) -> Output {
        self.command().output().unwrap()
    }

    /// Asserts that the run fails with this line, followed by a hint.
    pub fn assert_refused(&self, status: i32, says: &str) {
        let output = self.output();
        let errors = text(&output.stderr);
        let lines: Vec<&str> = errors.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!((output.status.code(), lines.len()), (Some(status), 1), "{}: {errors}", self.name);
        assert!(lines[0].contains(says), "{}: {errors}", self.name);
    }

    /// Runs, and calls `break_it` once load runs. Returns the reasons of the first trial, which is not valid.
    pub fn broken(&self, break_it: impl FnOnce()) -> Vec<String> {
        let mut command = self.command();
        let run = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        self.wait_until_loaded();
        break_it();
        let output = run.wait_with_output().unwrap();
        self.reasons(&output)
    }

    /// Reasons against the first trial of a run that has ended.
    pub fn reasons(&self, output: &Output) -> Vec<String> {
        let trials = self.trials();
        assert!(!trials.is_empty(), "{}: {}", self.name, text(&output.stderr));
        assert_eq!(trials[0]["verdict"]["valid"], false, "{}: {}", self.name, trials[0]["verdict"]);
        let reasons = trials[0]["verdict"]["reasons"].as_array().unwrap();
        reasons.iter().map(|reason| reason.as_str().unwrap().to_owned()).collect()
    }

    /// Waits until a generator has run for a second, other than the one that checks whether the target
    /// serves.
    pub fn wait_until_loaded(&self) {
        let generator = format!("load http://[a-z]+[.]?{}.*--rate", self.name);
        self.wait_for("load", || {
            let look = ["pgrep", "--older", "1", "--full", &generator];
            self.cluster.try_run("enter", look).status.success()
        });
    }

    pub fn wait_for(&self, what: &str, is_there: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_there() {
            assert!(began.elapsed() < TIMEOUT, "{}: no {what}", self.name);
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    pub fn trials(&self) -> Vec<Value> {
        trials(&self.folder())
    }

    pub fn kubectl(&self, arguments: &[&str]) -> String {
        self.cluster.kubectl(&[&["--namespace", self.name], arguments].concat())
    }
}

pub(super) fn trials(folder: &Path) -> Vec<Value> {
    let lines = fs::read_to_string(folder.join("trials.jsonl")).unwrap_or_default();
    // The last line may still be incomplete.
    lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The command, on this cluster.
pub(super) fn meshmeter(cluster: &OneNodeCluster) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meshmeter"));
    command.env("KUBECONFIG", cluster.folder().join("kubeconfig"));
    command
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The cluster's kubeconfig with another user.
pub(super) fn kubeconfig_of(cluster: &OneNodeCluster, user: &str) -> String {
    let own = fs::read_to_string(cluster.folder().join("kubeconfig")).unwrap();
    let lines = own.lines().map(|line| if line.starts_with("  user:") { user } else { line });
    lines.collect::<Vec<_>>().join("\n")
}
