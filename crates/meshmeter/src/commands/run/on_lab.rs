//! A run in a lab of its own on this machine: the only file of a run that knows the lab.

use crate::cli::OverrideArgs;
use crate::failure::Failure;
use experiment::environment::ProgressSink;
use experiment::environment::deploy::Environment;
use experiment::schema::Floor;
use lab::environment::{LocalLab, Programs};
use lab::observe::noise_floor;
use lab::{Entered, Lab};
use report::folder::RunFolder;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs `session` in a lab of its own, in another process; the exit code is that of the session.
pub(super) fn enter(
    title: &str,
    overrides: &OverrideArgs,
    session: impl FnOnce(&mut OnLab) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    match lab::enter(title)? {
        Entered::Outside(status) => Ok(status),
        Entered::Inside(lab) => {
            let programs = Programs { meshmeter: "/proc/self/exe".into(), overrides: overrides.into() };
            lab::components::check_options(&programs.overrides)?;
            let environment = LocalLab::new(lab.clone(), programs)?;
            session(&mut OnLab { lab, environment })
        }
    }
}

/// Measures the machine's noise floor.
pub(super) fn measure_noise_floor() -> Result<Floor, Failure> {
    noise_floor::measure(noise_floor::USUAL_TIME).map_err(|error| Failure::environment(&error))
}

/// The lab of a run, from inside.
pub(super) struct OnLab {
    lab: Lab,
    environment: LocalLab,
}

impl OnLab {
    pub(super) fn environment(&mut self) -> &mut dyn Environment {
        &mut self.environment
    }

    /// Whether the user has stopped the run, now and later.
    pub(super) fn stop_request(&self) -> impl Fn() -> bool + use<> {
        let lab = self.lab.clone();
        move || lab.stop_requested()
    }

    /// A directory that goes with the lab.
    pub(super) fn scratch(&self, name: &str) -> PathBuf {
        self.lab.private_dir().join(name)
    }

    /// Keeps logs with the run. For before the first deployment.
    pub(super) fn keep_logs_in(&mut self, folder: &RunFolder) {
        self.environment.keep_control_plane_logs_in(folder.control_plane_logs());
        self.environment.keep_logs_in(folder.logs());
    }

    /// Reports progress while a deployment comes up. For before the first one.
    pub(super) fn report_progress_to(&mut self, progress: ProgressSink) {
        self.environment.report_progress_to(progress);
    }
}
