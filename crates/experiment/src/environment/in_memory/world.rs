//! State that the clones of an [`InMemory`](super::InMemory) share.

use super::script::{ScriptedError, ScriptedTrial};
use crate::environment::deploy::{DriverLoad, DriverStart};
use crate::mode::Mode;
use crate::schema::fleet_progress::FleetAsk;
use crate::settings::components::ComponentsSettings;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime};

/// A request to the environment.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// A deployment of this mode under this label.
    Deploy(Mode, String),
    /// The beginning of the trial of this label.
    BeginTrial(String),
    /// The start of these generators.
    Start(Vec<DriverStart>),
    /// The opening of this generator's window at this instant.
    Release(String, SystemTime),
    /// What this fleet asked for.
    Act(String, FleetAsk),
    /// The early end of this generator.
    Interrupt(String),
    /// Its forced end.
    Kill(String),
    /// A snapshot.
    Snapshot,
    /// The end of a trial with these loads.
    EndTrial(Vec<DriverLoad>),
    /// The end of a deployment.
    Finish,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) script: VecDeque<ScriptedTrial>,
    /// Follows the script, again and again.
    pub(super) afterwards: ScriptedTrial,
    pub(super) unavailable: BTreeMap<Mode, ScriptedError>,
    pub(super) unavailable_components: Vec<(ComponentsSettings, ScriptedError)>,
    pub(super) now: Duration,
    pub(super) stop_requested: bool,
    pub(super) requests: Vec<Request>,
    /// Deployments that are up.
    pub(super) deployments: usize,
}

impl World {
    pub(super) fn next_trial(&mut self) -> ScriptedTrial {
        self.script.pop_front().unwrap_or_else(|| self.afterwards.clone())
    }
}
