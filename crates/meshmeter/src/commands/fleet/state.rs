//! State of a run, for all of its steps.

use super::asks::EnvironmentLink;
use super::control_plane::Api;
use super::progress::{FleetReporter, Seconds};
use crate::cli::FleetArgs;
use experiment::settings::fleet::FleetSettings;
use fleet::{Fleet, Target};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Poll interval for the fleet's status.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// State of a run, shared by all steps.
pub(super) struct FleetRunner<'a> {
    pub args: &'a FleetArgs,
    pub settings: &'a FleetSettings,
    pub api: Api,
    pub targets: Vec<Target>,
    pub link: EnvironmentLink,
    pub reporter: FleetReporter,
    pub seconds: Mutex<Seconds>,
    pub stop: Arc<AtomicBool>,
    /// True once objects of the run may exist in the API.
    pub is_written: Arc<AtomicBool>,
}

impl FleetRunner<'_> {
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Reports the seconds that have passed.
    pub fn tick(&self, fleet: &Fleet) {
        self.seconds.lock().unwrap_or_else(PoisonError::into_inner).report(fleet.status(), &self.reporter);
    }
}
