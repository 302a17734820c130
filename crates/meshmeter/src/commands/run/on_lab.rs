//! A run in its own lab on this machine. The only file of `run` that depends on the lab.

use super::run_environment::RunEnvironment;
use super::{allowed_cpus, calibrate, check_needs, pacing};
use crate::cli::OverrideArgs;
use crate::commands::other_labs;
use crate::failure::Failure;
use crate::noise_floor;
use experiment::Plan;
use experiment::environment::ProgressSink;
use experiment::environment::deploy::Environment;
use lab::environment::{LocalLab, Programs};
use lab::{Entered, Lab};
use report::folder::RunFolder;
use results::{Calibration, Floor, Pacing, Pauses, RunPacing};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Runs `session` in a lab of its own, in another process. Returns the exit code of the session.
pub(super) fn enter(
    title: &str,
    overrides: &OverrideArgs,
    session: impl FnOnce(&mut OnLab) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    enter_after(title, overrides, || Ok(()), |lab, ()| session(lab))
}

/// Like [`enter`]. That process first calls `on_machine` in the machine's network: threads started there stay
/// in that network.
pub(super) fn enter_after<T>(
    title: &str,
    overrides: &OverrideArgs,
    on_machine: impl FnOnce() -> Result<T, Failure>,
    session: impl FnOnce(&mut OnLab, T) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    other_labs::warn();
    let mut started = None;
    match lab::enter_after(title, || started = Some(on_machine()))? {
        Entered::Outside(status) => Ok(status),
        Entered::Inside(lab) => {
            let started = started.expect("the process inside calls it")?;
            let programs = Programs { meshmeter: "/proc/self/exe".into(), overrides: overrides.into() };
            components::check_options(&programs.overrides)?;
            let environment = LocalLab::new(lab.clone(), programs)?;
            session(&mut OnLab { lab, environment }, started)
        }
    }
}

/// Measures the machine's noise floor in about this time.
pub(super) fn measure_noise_floor(time: Duration) -> Result<Floor, Failure> {
    noise_floor::measure(time).map_err(|error| Failure::environment(&error))
}

/// Lab of a run, seen from inside.
pub(super) struct OnLab {
    lab: Lab,
    environment: LocalLab,
}

impl OnLab {
    /// A directory that is removed with the lab.
    pub(super) fn scratch(&self, name: &str) -> PathBuf {
        self.lab.private_dir().join(name)
    }
}

impl RunEnvironment for OnLab {
    fn environment(&mut self) -> &mut dyn Environment {
        &mut self.environment
    }

    fn stop_request(&self) -> Box<dyn Fn() -> bool> {
        let lab = self.lab.clone();
        Box::new(move || lab.stop_requested())
    }

    fn check_before(&self, plan: &Plan) -> Result<(), Failure> {
        check_needs(plan)
    }

    fn measure_noise_floor(&self, time: Duration) -> Result<Option<Floor>, Failure> {
        measure_noise_floor(time).map(Some)
    }

    fn calibration(&mut self, asked: bool, pacing: Pacing) -> Result<Option<Calibration>, Failure> {
        if asked {
            let extent = calibrate::Extent { pacing: Some(pacing), ..calibrate::Extent::default() };
            return calibrate::measure(self, &extent, None).map(Some);
        }
        Ok(calibrate::kept::read(&calibrate::machine(&self.environment.host()), pacing))
    }

    fn choose_pacing(&self, plan: &Plan, pauses: Option<&Pauses>) -> RunPacing {
        pacing::choose(plan, allowed_cpus(), pauses)
    }

    fn keep_logs_in(&mut self, folder: &RunFolder) {
        self.environment.control_plane_logs = folder.control_plane_logs();
        self.environment.logs = folder.logs();
    }

    fn report_progress_to(&mut self, progress: ProgressSink) {
        self.environment.progress = progress;
    }
}
