//! Calibration answers "How small a difference can I measure on this machine?" from a mode measured against
//! itself and from known effects.
//!
//! A calibration is a run with its own plan ([`Plan::calibration`]), in modes of static Envoy. `kept.rs`
//! keeps the newest one per machine; runs copy it to `host.json`.

pub(super) mod kept;

use super::clock::SystemClock;
use super::context::RunContext;
use super::coordinator::Coordinator;
use super::on_lab::{self, OnLab};
use super::pacing;
use super::progress::RunProgress;
use super::run_environment::RunEnvironment as _;
use super::{allowed_cpus, draw_seed};
use crate::cli::DoctorArgs;
use crate::commands::report::folder_failure;
use crate::failure::{Failure, MEASUREMENT_FAILED};
use crate::noise_floor;
use crate::output::{self, tell};
use experiment::environment::{ComponentsSettings, error_chain};
use experiment::{Experiment, MeshKind, Plan};
use lab::observe::host::{Sources, describe};
use report::folder::{Existing, RunFolder};
use results::units::format_duration;
use results::{CALIBRATION_SCHEMA, CalibratedMachine, Calibration, Host, Mode, Pacing, Pauses};
use statistics::calibration::of_modes;
use std::process::ExitCode;
use std::time::Duration;

/// Requests/s and connections of every trial. On two CPUs, requests through two sidecars must not queue
/// behind each other: queueing adds more latency than the server does.
const RATE: f64 = 500.0;
const CONNECTIONS: usize = 4;
const WARMUP: Duration = Duration::from_millis(300);
/// Modes that need no control plane.
const MODES: [Mode; 3] = [Mode::None, Mode::Gateway, Mode::Sidecar];
/// With fewer repeats the spread is too unreliable to keep for later runs.
const MIN_KEPT_REPEATS: usize = 3;

/// Scope of a calibration.
pub(super) struct Extent {
    /// If empty, every mode that can run here.
    pub modes: Vec<Mode>,
    pub repeats: usize,
    pub window: Duration,
    /// Pacing of the run that is calibrated for; `None`: chosen as for a run.
    pub pacing: Option<Pacing>,
}

impl Default for Extent {
    fn default() -> Self {
        Self { modes: Vec::new(), repeats: 5, window: Duration::from_secs(2), pacing: None }
    }
}

/// `meshmeter doctor --calibrate`.
pub(crate) fn doctor(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let defaults = Extent::default();
    let extent = Extent {
        modes: args.modes.clone(),
        repeats: args.repeats.map_or(defaults.repeats, usize::from),
        window: args.duration.unwrap_or(defaults.window),
        pacing: None,
    };
    on_lab::enter("calibrate", &args.overrides, |lab| {
        let floor = on_lab::measure_noise_floor(noise_floor::USUAL_TIME)?;
        let calibration = measure(lab, &extent, floor.pauses.as_ref())?;
        print(&calibration, args.json)?;
        let measured = calibration.modes.iter().any(|mode| mode.repeats > 0);
        Ok(if measured { ExitCode::SUCCESS } else { ExitCode::from(MEASUREMENT_FAILED) })
    })
}

fn print(calibration: &Calibration, as_json: bool) -> Result<(), Failure> {
    output::print(&if as_json {
        output::json(calibration)
    } else {
        let sentences = report::calibration::sentences(calibration);
        format!("What this machine resolves\n  {}\n", sentences.join("\n  "))
    })
}

/// Calibrates, and keeps the result for later runs. Trials that completed before the user stopped it count.
pub(super) fn measure(
    lab: &mut OnLab,
    extent: &Extent,
    pauses: Option<&Pauses>,
) -> Result<Calibration, Failure> {
    let modes = runnable(lab, &extent.modes)?;
    let experiment = experiment(&modes, extent)?;
    let mut plan = Plan::calibration(&experiment, draw_seed());
    let pacing = extent.pacing.unwrap_or_else(|| pacing::choose(&plan, allowed_cpus(), pauses).pacing);
    plan.set_pacing(pacing);
    let host = lab.environment().host();
    let mut folder =
        RunFolder::create(&lab.scratch("calibration"), Existing::Replace).map_err(folder_failure)?;
    folder.write_experiment(&experiment.to_yaml()).map_err(folder_failure)?;
    folder.write_host(&host).map_err(folder_failure)?;
    lab.keep_logs_in(&folder);
    let mut progress = RunProgress::without_folder(&plan);
    lab.report_progress_to(progress.sink());
    let stop = lab.stop_request();
    let context = RunContext { stop: &stop, clock: &SystemClock::new(), live: None, profile: false };
    let ended = Coordinator::new(&plan, lab.environment(), &mut folder, &mut progress, context).run();
    progress.finish();
    ended?;
    let trials = report::folder::read(folder.path()).map_err(folder_failure)?.trials;
    let window_s = extent.window.as_secs_f64();
    let calibration = Calibration {
        schema: CALIBRATION_SCHEMA.to_owned(),
        made_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        machine: machine(&host),
        rate: RATE,
        connections: CONNECTIONS,
        window_s,
        pacing,
        repeats_planned: extent.repeats,
        modes: of_modes(&trials, &modes, RATE, window_s),
    };
    if let Err(reason) = keep(&calibration) {
        progress.note(&format!("the calibration is not kept for later runs: {reason}"));
    }
    Ok(calibration)
}

/// Keeps a calibration for later runs, unless it says less than the one that is kept.
fn keep(calibration: &Calibration) -> Result<(), String> {
    if let Some(mode) = calibration.modes.iter().find(|mode| mode.repeats < MIN_KEPT_REPEATS) {
        return Err(format!("{} has {} repeats of {MIN_KEPT_REPEATS}", mode.mode, mode.repeats));
    }
    let has = |mode: Mode| calibration.modes.iter().any(|own| own.mode == mode);
    match kept::read(&calibration.machine, calibration.pacing) {
        Some(kept) if kept.modes.iter().any(|mode| !has(mode.mode)) => {
            Err(format!("that of {} has more modes", kept.made_at))
        }
        _ => kept::write(calibration).map_err(|error| error.to_string()),
    }
}

/// The stored calibration of this machine that a plan will probably use: its pacing is chosen again when it is measured.
pub(super) fn expected(plan: &Plan) -> Option<Calibration> {
    let pacing = pacing::choose(plan, allowed_cpus(), None).pacing;
    kept::read(&machine(&describe(&Sources::read())), pacing)
}

/// Identity of this machine in calibrations.
pub(super) fn machine(host: &Host) -> CalibratedMachine {
    CalibratedMachine { cpu_model: host.cpu_model.clone(), cpus: allowed_cpus(), kernel: host.kernel.clone() }
}

/// The requested modes, or all that can run here. A requested mode that cannot run is an error.
fn runnable(lab: &mut OnLab, asked: &[Mode]) -> Result<Vec<Mode>, Failure> {
    if let Some(mode) = asked.iter().find(|mode| !MODES.contains(mode)) {
        let failure = Failure::usage(format!("mode {mode} is not calibrated"));
        return Err(failure.with_hint("the modes are none, gateway and sidecar, with static Envoy"));
    }
    let mut modes = Vec::new();
    for mode in MODES.into_iter().filter(|mode| asked.is_empty() || asked.contains(mode)) {
        match lab.environment().check_mode(MeshKind::Envoy, mode, &ComponentsSettings::default()) {
            Ok(()) => modes.push(mode),
            Err(error) if asked.is_empty() && mode != Mode::None => {
                tell!("mode {mode} is unavailable here: {}", error_chain(&error));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(modes)
}

fn experiment(modes: &[Mode], extent: &Extent) -> Result<Experiment, Failure> {
    let names: Vec<&str> = modes.iter().map(|mode| mode.name()).collect();
    let text = format!(
        "{{name: calibration, modes: [{}], repeats: {}, load: {{rate: {RATE}, connections: {CONNECTIONS}, warmup: {}, duration: {}}}}}",
        names.join(", "),
        extent.repeats,
        format_duration(WARMUP),
        format_duration(extent.window),
    );
    Experiment::parse(&text, "calibration").map_err(|error| Failure::usage(error.render(false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibration_has_its_own_experiment() {
        let extent = Extent { repeats: 2, window: Duration::from_millis(250), ..Extent::default() };
        let experiment = experiment(&MODES, &extent).unwrap();
        let plan = Plan::calibration(&experiment, 1);
        assert_eq!(plan.trials.len(), 2 * (4 + 5 + 5));
        assert!(plan.trials.iter().all(|trial| trial.load.rate == Some(RATE)));
    }
}
