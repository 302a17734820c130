//! What works on this machine, what does not, and what to do about it.
//!
//! Read [`examine`]: it tries each thing that the lab needs rather than looking for signs of it, and takes everything
//! down again. [`Diagnosis::modes`] is what the lab itself says of each mode, so that the doctor never promises more than
//! a run keeps.
//!
//! Leaves out: the network beyond this machine, and how fast things are beyond the floor.

mod isolation;
mod limits;
mod machine;

use crate::arrangement::{LocalLab, Programs};
use crate::components::{self, Envoy};
use crate::floor::{self, FloorError};
use crate::{Lab, host};
use experiment::Mode;
use experiment::environment::{Environment as _, EnvironmentError};
use experiment::schema::Floor;
use serde::Serialize;
use std::error::Error;
use std::time::Duration;

/// The value of [`Diagnosis::schema`].
pub const DOCTOR_SCHEMA: &str = "meshmeter.doctor/1";

/// The modes of the preset `sidecar-cost`: the main job.
const MAIN_JOB: [Mode; 3] = [Mode::None, Mode::Gateway, Mode::Sidecar];

/// Everything that was found out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Always [`DOCTOR_SCHEMA`].
    pub schema: &'static str,
    /// Each thing looked at, in the order in which to read them.
    pub checks: Vec<Check>,
    /// Every mode, and whether it can run here.
    pub modes: Vec<ModeCheck>,
    /// Whether `meshmeter run sidecar-cost` can run here.
    pub main_job_runs: bool,
    /// What this machine shows when there is nothing to measure; absent where it could not be measured.
    pub floor: Option<Floor>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at, such as `cgroups`.
    pub name: &'static str,
    /// How it stands.
    pub state: State,
    /// What was found.
    pub fact: String,
    /// What to do about it; absent where nothing needs to be done.
    pub remedy: Option<String>,
}

/// How a thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Ok,
    /// Measurements are possible, with less certainty or fewer features.
    Warn,
    /// Something that a run needs does not work.
    Missing,
}

/// Whether a mode can run here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModeCheck {
    /// The mode.
    pub mode: Mode,
    /// It can run.
    pub runs: bool,
    /// What it lacks; absent where it can run.
    pub lacks: Option<String>,
    /// How to get it, where that is known.
    pub remedy: Option<String>,
}

impl Check {
    fn ok(name: &'static str, fact: impl Into<String>) -> Self {
        Self { name, state: State::Ok, fact: fact.into(), remedy: None }
    }

    fn warn(name: &'static str, fact: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, state: State::Warn, fact: fact.into(), remedy: Some(remedy.into()) }
    }

    fn missing(name: &'static str, fact: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, state: State::Missing, fact: fact.into(), remedy: Some(remedy.into()) }
    }
}

/// What was looked at before the lab was entered: a lab has limits of its own.
#[must_use]
pub fn limits() -> Vec<Check> {
    limits::checks()
}

/// Looks at everything else, in a lab made for that; the floor takes about `floor_time` of it. `lab` is what entering
/// gave, `limits` is what [`limits()`] found before, `programs` what a run would start.
#[must_use]
pub fn examine(
    lab: Result<Lab, EnvironmentError>,
    limits: Vec<Check>,
    programs: Programs,
    floor_time: Duration,
) -> Diagnosis {
    let mut checks = machine::checks(&host::describe(&host::Sources::read()));
    checks.extend(limits);
    let envoy = components::find_envoy(programs.envoy.as_deref());
    checks.extend(isolation::checks(&lab, envoy.as_ref().ok().map(|envoy| envoy.path.as_path())));
    checks.push(envoy_check(&envoy));
    let floor = floor::measure(floor_time);
    if let Err(error) = &floor {
        checks.push(floor_failure(error));
    }
    let modes = mode_checks(lab.and_then(|lab| LocalLab::new(lab, programs)));
    let modes_run = modes.iter().all(|check| check.runs || !MAIN_JOB.contains(&check.mode));
    let main_job_runs = modes_run && checks.iter().all(|check| check.state != State::Missing);
    Diagnosis { schema: DOCTOR_SCHEMA, checks, modes, main_job_runs, floor: floor.ok() }
}

/// Every mode, as the lab itself says.
fn mode_checks(lab: Result<LocalLab, EnvironmentError>) -> Vec<ModeCheck> {
    let check = |mode| match lab.as_ref().map(|lab| lab.can_run(mode)) {
        Ok(Ok(())) => ModeCheck { mode, runs: true, lacks: None, remedy: None },
        Ok(Err(error)) => ModeCheck { mode, runs: false, lacks: Some(chain(&error)), remedy: error.hint },
        Err(_) => {
            ModeCheck { mode, runs: false, lacks: Some("there is no lab to run it in".into()), remedy: None }
        }
    };
    Mode::ALL.into_iter().map(check).collect()
}

/// Envoy, by running it.
fn envoy_check(envoy: &Result<Envoy, EnvironmentError>) -> Check {
    match envoy {
        Ok(envoy) => Check::ok("envoy", format!("{} at {}", envoy.version, envoy.path.display())),
        Err(error) => {
            let remedy =
                error.hint.clone().unwrap_or_else(|| "`meshmeter lab install` fetches it".to_owned());
            Check::missing("envoy", chain(error), remedy)
        }
    }
}

fn floor_failure(error: &FloorError) -> Check {
    Check::warn("floor", chain(error), "reports of this machine lack its floor until this works")
}

/// An error and its causes on one line.
fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |error| (*error).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
