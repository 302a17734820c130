//! Checks of this machine, with remedies.
//!
//! Read [`examine`]: it tries everything that a run needs, rather than looking for signs of it, and takes
//! everything down again. Parts that need a lab are tried by a child process ([`examine_lab`]), since a
//! process that failed to enter a lab cannot be used for anything else. [`Diagnosis::modes`] is the lab's own
//! check of each mode, so the doctor never promises more than a run can do. Not included: the network beyond
//! this machine, and how fast things are above the noise floor.

use super::check::{Check, State};
use super::{isolation, limits, machine, programs};
use crate::noise_floor;
use components::output_within;
use experiment::MeshKind;
use experiment::environment::deploy::Environment as _;
use experiment::environment::{ComponentsSettings, EnvironmentError, ErrorContext as _, error_chain};
use lab::Lab;
use lab::environment::{LocalLab, Programs};
use lab::observe::host;
use results::{Floor, Mode};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::process::Command;
use std::time::Duration;

pub const DOCTOR_SCHEMA: &str = "meshmeter.doctor/1";

/// Modes of the preset `sidecar-cost`, the main use case, which has `mesh: envoy`.
const MAIN_JOB: [Mode; 3] = [Mode::None, Mode::Gateway, Mode::Sidecar];

/// Trying every part of a lab takes half a second, longer from a cold disk.
const LAB_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    pub schema: String,
    pub checks: Vec<Check>,
    pub modes: Vec<ModeCheck>,
    /// True if `meshmeter run sidecar-cost` can run here.
    pub main_job_runs: bool,
    /// Absent if it could not be measured.
    pub floor: Option<Floor>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeCheck {
    pub mode: Mode,
    /// True if it can run with one of its meshes.
    pub runs: bool,
    /// Absent if the mode can run; otherwise what its first mesh lacks.
    pub lacks: Option<String>,
    pub remedy: Option<String>,
    /// Meshes that have this mode.
    pub meshes: Vec<MeshCheck>,
}

/// A mode with one of its meshes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshCheck {
    pub mesh: MeshKind,
    pub runs: bool,
    /// Absent if the mode can run.
    pub lacks: Option<String>,
    pub remedy: Option<String>,
}

impl ModeCheck {
    /// The check of a mode that one mesh at least has.
    pub(super) fn new(mode: Mode, meshes: Vec<MeshCheck>) -> Self {
        let runs = meshes.iter().any(|check| check.runs);
        let first = meshes.first().filter(|_| !runs);
        Self {
            mode,
            runs,
            lacks: first.and_then(|check| check.lacks.clone()),
            remedy: first.and_then(|check| check.remedy.clone()),
            meshes,
        }
    }

    fn runs_with(&self, mesh: MeshKind) -> bool {
        self.meshes.iter().any(|check| check.mesh == mesh && check.runs)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabDiagnosis {
    pub checks: Vec<Check>,
    pub modes: Vec<ModeCheck>,
}

type Result<T, E = EnvironmentError> = std::result::Result<T, E>;

/// Checks this machine. `programs` are the programs that a run would start; measuring the noise floor takes
/// `floor_time`.
pub fn examine(programs: &Programs, floor_time: Duration) -> Diagnosis {
    let mut checks = machine::checks(&host::describe(&host::Sources::read()));
    checks.extend(limits::checks());
    let lab = examine_lab_in_child(programs).unwrap_or_else(|error| without_lab(&error));
    checks.extend(lab.checks);
    checks.extend(programs::checks(&programs.overrides));
    let floor = noise_floor::measure(floor_time);
    if let Err(error) = &floor {
        let remedy = "reports of this machine lack its floor until this works";
        checks.push(Check::warn("floor", error_chain(error), remedy));
    }
    let modes_run = lab
        .modes
        .iter()
        .filter(|check| MAIN_JOB.contains(&check.mode))
        .all(|check| check.runs_with(MeshKind::Envoy));
    let main_job_runs = modes_run && checks.iter().all(|check| check.state != State::Missing);
    Diagnosis { schema: DOCTOR_SCHEMA.to_owned(), checks, modes: lab.modes, main_job_runs, floor: floor.ok() }
}

/// Checks a lab from the inside. `lab` is the result of entering it.
pub fn examine_lab(lab: Result<Lab>, programs: Programs) -> LabDiagnosis {
    match lab {
        Ok(lab) => LabDiagnosis {
            checks: isolation::checks(&lab, &programs.overrides),
            modes: mode_checks(&LocalLab::new(lab, programs)),
        },
        Err(error) => without_lab(&error),
    }
}

fn without_lab(error: &EnvironmentError) -> LabDiagnosis {
    let check = isolation::failure("namespaces", error, "a lab needs namespaces: see the reason");
    let no_lab = EnvironmentError::new("make a lab", "see namespaces");
    LabDiagnosis { checks: vec![check], modes: mode_checks(&Err(no_lab)) }
}

/// Runs `meshmeter doctor --within-lab`, which prints a [`LabDiagnosis`] as JSON.
fn examine_lab_in_child(programs: &Programs) -> Result<LabDiagnosis> {
    let operation = "look at a lab from within";
    let mut command = Command::new(&programs.meshmeter);
    command.args(["doctor", "--within-lab"]).args(programs.overrides.arguments());
    let output = output_within(&mut command, LAB_TIMEOUT).context(operation)?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let words = String::from_utf8_lossy(&output.stderr);
        EnvironmentError::new(operation, format!("it ended with {}: {}", output.status, words.trim()))
    })
}

/// Checks each mode with each mesh that has it: a run names one of them.
fn mode_checks(lab: &Result<LocalLab>) -> Vec<ModeCheck> {
    let meshes = |mode| {
        let having = MeshKind::IN_LAB.into_iter().filter(move |mesh| mesh.makes(mode));
        having.map(|mesh| mesh_check(lab, mesh, mode)).collect()
    };
    Mode::ALL.into_iter().map(|mode| ModeCheck::new(mode, meshes(mode))).collect()
}

fn mesh_check(lab: &Result<LocalLab>, mesh: MeshKind, mode: Mode) -> MeshCheck {
    let can_run = match lab {
        Ok(lab) => lab.check_mode(mesh, mode, &ComponentsSettings::default()),
        Err(error) => Err(EnvironmentError::new("run", error_chain(error))),
    };
    match can_run {
        Ok(()) => MeshCheck { mesh, runs: true, lacks: None, remedy: None },
        Err(error) => {
            // The operation is clear from the context: running this mode.
            let lacks = error.source().map_or_else(|| error.to_string(), error_chain);
            MeshCheck { mesh, runs: false, lacks: Some(lacks), remedy: error.hint }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use components::Overrides;

    #[test]
    fn lab_failure_is_reported_with_hint_and_no_mode_runs() {
        let refused = EnvironmentError::new("make namespaces for a lab", "Operation not permitted")
            .with_hint("run as root");
        let programs = Programs { meshmeter: "/nowhere".into(), overrides: Overrides::default() };
        let LabDiagnosis { checks, modes } = examine_lab(Err(refused), programs);
        assert_eq!(checks.len(), 1, "nothing is said of what could not be tried: {checks:?}");
        assert_eq!(checks[0].state, State::Missing);
        assert_eq!(checks[0].fact, "make namespaces for a lab: Operation not permitted");
        assert_eq!(checks[0].remedy.as_deref(), Some("run as root"));
        assert_eq!(modes.len(), Mode::ALL.len());
        assert!(modes.iter().all(|check| !check.runs && check.lacks.is_some()), "{modes:?}");
        assert!(modes.iter().all(|check| !check.meshes.is_empty()), "a run names one of them: {modes:?}");
    }

    #[test]
    fn child_with_unusable_output_fails_lab_check() {
        let programs = Programs { meshmeter: "true".into(), overrides: Overrides::default() };
        let error = examine_lab_in_child(&programs).unwrap_err();
        assert!(
            error_chain(&error).starts_with("look at a lab from within: it ended with"),
            "{}",
            error_chain(&error)
        );
        let diagnosis = examine(&programs, Duration::from_millis(20));
        assert!(!diagnosis.main_job_runs);
        assert!(diagnosis.floor.is_some(), "the floor needs no lab");
    }
}
