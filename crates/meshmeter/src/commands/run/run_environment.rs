//! An environment with what a run needs of it beside trials. `on_lab.rs` and `on_cluster.rs` have one each.

use crate::failure::Failure;
use experiment::Plan;
use experiment::environment::ProgressSink;
use experiment::environment::deploy::Environment;
use experiment::schema::{Calibration, Floor, Pauses, RunPacing};
use report::folder::RunFolder;

/// Where a run takes place.
pub(super) trait RunEnvironment {
    fn environment(&mut self) -> &mut dyn Environment;

    /// Whether the user has stopped the run, now and later.
    fn stop_request(&self) -> Box<dyn Fn() -> bool>;

    /// Checks that there is what the plan's deployments take, before anything is written.
    fn check_before(&self, plan: &Plan) -> Result<(), Failure>;

    /// The noise floor of the machine that is measured on; absent where that is another.
    fn measure_noise_floor(&self) -> Result<Option<Floor>, Failure>;

    /// What that machine resolves: measured now if it is `asked` for, else as it was kept.
    fn calibration(&mut self, asked: bool, pauses: Option<&Pauses>) -> Result<Option<Calibration>, Failure>;

    /// How the generators of a plan wait.
    fn choose_pacing(&self, plan: &Plan, pauses: Option<&Pauses>) -> RunPacing;

    /// Keeps logs with the run. For before the first deployment.
    fn keep_logs_in(&mut self, folder: &RunFolder);

    /// Reports progress while a deployment comes up. For before the first one.
    fn report_progress_to(&mut self, progress: ProgressSink);
}
