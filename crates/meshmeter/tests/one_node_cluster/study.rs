//! Runs of studies on a one-node cluster with little load, and their trials.

use crate::cluster::OneNodeCluster;
use results::{TrialOutcome, TrialRecord};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A study, with each mode once.
#[derive(Clone, Copy, Debug)]
pub struct Study<'a> {
    pub name: &'a str,
    pub namespace: &'a str,
    /// Comma-separated names.
    pub modes: &'a str,
    pub rate: u32,
    /// Number of generators, each with one connection.
    pub generators: u32,
    pub duration: &'a str,
    /// Additional arguments of the command.
    pub arguments: &'a [&'a str],
}

impl Study<'_> {
    /// Returns the directory of the run.
    pub fn run(&self, cluster: &OneNodeCluster) -> PathBuf {
        let Self { name, namespace, modes, rate, generators, duration, arguments } = self;
        // A study may run several times.
        let folder = cluster.folder().join(format!("{name}-{namespace}"));
        let settings = [
            format!("modes=[{modes}]"),
            format!("load.rate={rate}"),
            format!("load.generators={generators}"),
            format!("load.connections={generators}"),
        ];
        let mut command = Command::new(env!("CARGO_BIN_EXE_meshmeter"));
        command.args(["run", name, "--on", "cluster", "--image", "localhost/meshmeter:test"]);
        command.args(["--namespace-prefix", namespace, "--require-all-modes"]).args(*arguments);
        command.args(settings.iter().flat_map(|setting| ["--set", setting]));
        command.args(["--duration", duration, "--repeats", "1", "--retakes", "0"]);
        command.arg("--kubeconfig").arg(cluster.folder().join("kubeconfig")).arg("--out").arg(&folder);
        finish(&mut command);
        folder
    }
}

/// Runs a measurement until it ends. A busy machine may leave no trial valid; nothing else may go wrong.
pub fn finish(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

pub fn trials(folder: &Path) -> Vec<TrialRecord> {
    let text = std::fs::read_to_string(folder.join("trials.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The trial was measured and its path was proven. A busy machine may keep workers from responding for
/// seconds.
pub fn assert_proven(trial: &TrialRecord) {
    assert_eq!(trial.outcome, TrialOutcome::Finished, "{:?}", trial.verdict);
    let is_busy = |reason: &String| reason.ends_with("nobody watched the trial meanwhile");
    let path = &trial.path;
    assert!(path.proven || path.reasons.iter().all(is_busy), "{}: {:?}", trial.mode, path.reasons);
}
