//! State shared by the clones of an [`InMemory`](super::InMemory).

use super::script::ScriptedTrial;
use experiment::environment::deploy::{DriverLoad, DriverStart};
use results::{FleetAsk, Mode};
use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

/// Request received by the environment.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Deploy this mode under this label.
    Deploy(Mode, String),
    /// Begin the trial with this label.
    BeginTrial(String),
    /// Start these generators.
    Start(Vec<DriverStart>),
    /// Open this generator's window at this time.
    Release(String, SystemTime),
    /// Perform what this fleet requested.
    Act(String, FleetAsk),
    /// Interrupt this generator.
    Interrupt(String),
    /// Kill this generator.
    Kill(String),
    /// Take a snapshot.
    Snapshot,
    /// Begin to sample stacks.
    BeginProfile,
    /// End it.
    EndProfile,
    /// End the trial with these loads.
    EndTrial(Vec<DriverLoad>),
    /// Finish the deployment.
    Finish,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) script: VecDeque<ScriptedTrial>,
    /// Trial to repeat after the script.
    pub(super) afterwards: ScriptedTrial,
    pub(super) now: Duration,
    pub(super) stop_requested: bool,
    pub(super) requests: Vec<Request>,
    /// Number of deployments that are up.
    pub(super) deployments: usize,
}

impl World {
    pub(super) fn next_trial(&mut self) -> ScriptedTrial {
        self.script.pop_front().unwrap_or_else(|| self.afterwards.clone())
    }
}
