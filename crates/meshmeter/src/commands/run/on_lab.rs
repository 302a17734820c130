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
    enter_after(title, overrides, || Ok(()), |lab, ()| session(lab))
}

/// The same. That process calls `on_machine` first, in the machine's network: threads that are started there stay in it.
pub(super) fn enter_after<T>(
    title: &str,
    overrides: &OverrideArgs,
    on_machine: impl FnOnce() -> Result<T, Failure>,
    session: impl FnOnce(&mut OnLab, T) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    let mut started = None;
    match lab::enter_after(title, || started = Some(on_machine()))? {
        Entered::Outside(status) => Ok(status),
        Entered::Inside(lab) => {
            let started = started.expect("the process inside calls it")?;
            let programs = Programs { meshmeter: "/proc/self/exe".into(), overrides: overrides.into() };
            lab::components::check_options(&programs.overrides)?;
            let environment = LocalLab::new(lab.clone(), programs)?;
            session(&mut OnLab { lab, environment }, started)
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
