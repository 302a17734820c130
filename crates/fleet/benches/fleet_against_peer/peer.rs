//! The Go client, built when the benchmark runs.

use crate::contest::Outcome;
use crate::contest::process::{Place, pinned, run_to_end};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Maximum duration of a run.
const TIMEOUT: Duration = Duration::from_secs(1200);

/// The Go client.
pub struct Peer(PathBuf);

/// Result of a run, as printed by the client.
#[derive(Debug, Deserialize)]
pub struct PeerResult {
    pub complete: u64,
    pub complete_s: f64,
    /// CPU time until all clients were complete.
    pub cpu_s: f64,
    pub memory_settled_bytes: u64,
    pub errors: Vec<String>,
}

impl Peer {
    /// Builds the client, which takes seconds if Go's cache has its dependencies.
    pub fn build() -> Outcome<Self> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../components/fleet-peer");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fleet-peer");
        let mut command = Command::new("go");
        command.args(["build", "-trimpath", "-buildvcs=false", "-o"]).arg(&program).arg(".");
        command.current_dir(sources).env("CGO_ENABLED", "0").env("GOWORK", "off");
        let status = command.status().map_err(|error| format!("start {command:?}: {error}"))?;
        if !status.success() {
            return Err(format!("{command:?}: {status}").into());
        }
        Ok(Self(program))
    }

    /// Connects this many clients on the generator's CPU.
    pub fn run(&self, address: &str, clients: usize, connect_rate: f64) -> Outcome<PeerResult> {
        let mut command = pinned(Place::Generator, &self.0)?;
        command.args(["-address", address, "-clients", &clients.to_string()]);
        command.args(["-connect-rate", &connect_rate.to_string()]);
        let ended = run_to_end(&mut command, TIMEOUT)?;
        if !ended.status.success() {
            return Err(format!("fleet-peer: {}: {}", ended.status, ended.stderr).into());
        }
        Ok(serde_json::from_str(&ended.stdout)?)
    }
}
