//! An environment, with what a run needs of it in addition to trials. Implemented in `on_lab.rs` and
//! `on_cluster.rs`.

use crate::failure::Failure;
use experiment::Plan;
use experiment::environment::ProgressSink;
use experiment::environment::deploy::Environment;
use report::folder::RunFolder;
use results::{Calibration, Floor, Pacing, Pauses, RunPacing};
use std::time::Duration;

/// Environment of a run.
pub(super) trait RunEnvironment {
    fn environment(&mut self) -> &mut dyn Environment;

    /// Returns a function that returns true once the user has stopped the run.
    fn stop_request(&self) -> Box<dyn Fn() -> bool>;

    /// Checks that the plan's deployments have what they need, before anything is written.
    fn check_before(&self, plan: &Plan) -> Result<(), Failure>;

    /// Noise floor of the machine under test, measured in about this time; `None` if that is another machine.
    fn measure_noise_floor(&self, time: Duration) -> Result<Option<Floor>, Failure>;

    /// Resolution of that machine: measured now if `asked`, otherwise as stored.
    fn calibration(&mut self, asked: bool, pacing: Pacing) -> Result<Option<Calibration>, Failure>;

    /// Chooses how the generators of a plan wait.
    fn choose_pacing(&self, plan: &Plan, pauses: Option<&Pauses>) -> RunPacing;

    /// Stores logs with the run. Called before the first deployment.
    fn keep_logs_in(&mut self, folder: &RunFolder);

    /// Reports progress while a deployment comes up. Called before the first deployment.
    fn report_progress_to(&mut self, progress: ProgressSink);
}
