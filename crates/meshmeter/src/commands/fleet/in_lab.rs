//! A fleet against the control plane of a lab that is created for it. The lab runs this command again in the
//! fleet's pod, and performs the actions that only a lab can.

use super::live::LiveFleet;
use super::progress::FleetReporter;
use super::{show, write_json};
use crate::cli::{FleetArgs, ProgressStyle};
use crate::commands::run::{drivers, progress};
use crate::commands::{other_labs, releases};
use crate::failure::{ENVIRONMENT_FAILED, Failure};
use crate::memory;
use crate::other_programs;
use crate::output::tell;
use components::{Component, IstioVersion, Overrides, find};
use experiment::environment::deploy::{
    Argument, ComponentFailure, Deployment, DriverEnd, DriverEvent, DriverEventKind, DriverResult,
    DriverStart, Environment as _, HealthProbe,
};
use experiment::environment::{DeploymentSpec, EnvironmentError, Snapshot};
use experiment::settings::fleet::FleetSettings;
use experiment::{Experiment, Plan, PlannedTrial, topology};
use lab::environment::{LocalLab, Programs};
use lab::{Entered, Lab};
use results::{FleetProgress, FleetResult};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LABEL: &str = "fleet";
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const HEALTH_INTERVAL: Duration = Duration::from_secs(1);
/// An interrupted fleet removes its mesh within this time, or is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(180);

pub fn run(args: &FleetArgs, settings: &FleetSettings, istiods: &[PathBuf]) -> Result<ExitCode, Failure> {
    if let Some(status) = releases::provide(args.control_plane.istio.clone(), &args.releases)? {
        return Ok(status);
    }
    let trial = planned(settings);
    if matches!(args.progress, ProgressStyle::Auto | ProgressStyle::Plain) {
        other_labs::warn();
    }
    let mut live = None;
    // A lab has no route to its user's network.
    match lab::enter_after(LABEL, || live = Some(LiveFleet::start(&args.export)))? {
        Entered::Outside(status) => Ok(status),
        Entered::Inside(lab) => match hold(args, &trial, istiods, &lab, live.transpose()?.flatten()) {
            Err(_) if lab.stop_requested() => {
                Err(Failure::broken("interrupted before the fleet had a result"))
            }
            // Logs are removed with the lab, so no hint points to them.
            Err(failure) => Err(failure.without_hint_of(&lab.private_dir().to_string_lossy())),
            result => result,
        },
    }
}

/// The trial that a run of mode `control-plane` with these settings would have.
fn planned(settings: &FleetSettings) -> PlannedTrial {
    let text = "{name: fleet, mesh: istio, modes: [control-plane], fleet: {proxies: 1}}";
    let experiment = Experiment::parse(text, LABEL).expect("the experiment is constant");
    let trial = Plan::new(&experiment, 0).trials.into_iter().next().expect("it has a trial");
    let spec = DeploymentSpec { topology: Arc::new(topology::fleet(settings.witnesses)), ..trial.spec };
    PlannedTrial { fleet: Some(Arc::new(settings.clone())), spec, ..trial }
}

fn hold(
    args: &FleetArgs,
    trial: &PlannedTrial,
    istiods: &[PathBuf],
    lab: &Lab,
    live: Option<LiveFleet>,
) -> Result<ExitCode, Failure> {
    let settings = trial.fleet.as_deref().expect("the trial is a fleet's");
    if let Some(available) = memory::available_bytes()
        && let Some(warning) = memory::check_fleet(settings, istiods.len().max(1), available)?
    {
        tell!("warning: {warning}");
    }
    let mut place = place(istiods, args.control_plane.istio.clone(), lab)?;
    place.progress = progress::in_lines();
    let mut deployment = place.deploy(&trial.spec, LABEL)?;
    deployment.begin_trial(LABEL)?;
    let starts: Vec<DriverStart> =
        drivers::starts(trial).into_iter().map(|start| with_run_id(start, args)).collect();
    deployment.start(&starts)?;
    let reporter = FleetReporter::new(args.progress, live);
    let mut window = Window::default();
    let end = follow(deployment.as_mut(), lab, &reporter, &mut window);
    let measured = end.as_ref().ok().and_then(|end| end.result.as_ref().ok()?.fleet());
    let exports = reporter.finish(measured);
    let evidence = deployment.end_trial(&[]);
    let end = end?;
    let finished = deployment.finish();
    let DriverEnd { exit_code, result, last_lines } = end;
    let result = match result {
        Ok(DriverResult::Fleet(mut result)) => {
            result.verdict.notes.extend(window.note());
            FleetResult { exports, ..*result }
        }
        Ok(DriverResult::Load(_)) => return Err(Failure::broken("the fleet's result is that of a load")),
        Err(reason) => return Err(without_result(&reason, &last_lines, evidence.hints)),
    };
    write_json(args, &result)?;
    let status = show(args, &result)?;
    finished?;
    Ok(if exit_code == Some(i32::from(ENVIRONMENT_FAILED)) {
        ExitCode::from(ENVIRONMENT_FAILED)
    } else {
        status
    })
}

fn place(istiods: &[PathBuf], istio: Option<IstioVersion>, lab: &Lab) -> Result<LocalLab, EnvironmentError> {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let mut istiods = istiods.iter().map(absolute);
    let overrides: Overrides = istiods.next().map(|path| (Component::Istiod, path)).into_iter().collect();
    let overrides = istio.into_iter().fold(overrides, Overrides::with_istio);
    let mut place = LocalLab::new(
        lab.clone(),
        Programs { meshmeter: Path::new("/proc/self/exe").to_owned(), overrides },
    )?;
    let beside =
        istiods.map(|path| find(Component::Istiod, &Overrides::from_iter([(Component::Istiod, path)])));
    place.istiods_beside = beside.collect::<Result<_, _>>()?;
    Ok(place)
}

fn with_run_id(start: DriverStart, args: &FleetArgs) -> DriverStart {
    let run_id = args.mesh.run_id.iter().map(|run_id| Argument::Text(format!("--run-id={run_id}")));
    DriverStart { arguments: start.arguments.iter().cloned().chain(run_id).collect(), ..start }
}

/// The lab at both ends of the fleet's window, as far as it could be read.
#[derive(Default)]
struct Window {
    open: Option<Snapshot>,
    close: Option<Snapshot>,
}

impl Window {
    fn observe(&mut self, deployment: &mut dyn Deployment, event: &FleetProgress) {
        match event {
            FleetProgress::WindowOpened => self.open = deployment.snapshot().ok(),
            FleetProgress::WindowClosed => self.close = deployment.snapshot().ok(),
            _ => {}
        }
    }

    fn note(&self) -> Option<String> {
        other_programs::note_in_lab(self.open.as_ref()?, self.close.as_ref()?)
    }
}

/// Follows the fleet until it ends. An interrupted fleet keeps its results.
fn follow(
    deployment: &mut dyn Deployment,
    lab: &Lab,
    reporter: &FleetReporter,
    window: &mut Window,
) -> Result<DriverEnd, Failure> {
    let mut stopped_at: Option<Instant> = None;
    let mut looked_at = Instant::now();
    loop {
        if lab.stop_requested() && stopped_at.is_none() {
            stopped_at = Some(Instant::now());
            deployment.interrupt(LABEL);
        }
        if stopped_at.is_some_and(|at| at.elapsed() >= EXIT_TIMEOUT) {
            deployment.kill(LABEL);
        }
        if let Some(DriverEvent { generator, kind }) = deployment.next_event(POLL_INTERVAL) {
            match kind {
                DriverEventKind::Fleet(FleetProgress::Ask(ask)) => {
                    reporter.report(&FleetProgress::Ask(ask.clone()));
                    deployment.act(&generator, &ask);
                }
                DriverEventKind::Fleet(event) => {
                    window.observe(deployment, &event);
                    reporter.report(&event);
                }
                DriverEventKind::Ended(end) => return Ok(*end),
                DriverEventKind::Message(_) | DriverEventKind::Load(_) => {}
            }
        }
        if looked_at.elapsed() >= HEALTH_INTERVAL {
            looked_at = Instant::now();
            if let Some(ComponentFailure { component, how }) = deployment.health(HealthProbe::Polled)
                && stopped_at.is_none()
            {
                return Err(Failure::broken(format!("keep {component} up: it {how}")));
            }
        }
    }
}

/// Turns the failure that the fleet reported into one of this command.
fn without_result(reason: &str, last_lines: &[String], hints: Vec<String>) -> Failure {
    let said = |prefix: &str| last_lines.iter().rev().find_map(|line| line.strip_prefix(prefix));
    let failure = Failure::broken(said("error: ").unwrap_or(reason));
    failure.with_some_hint(said("hint: ").map(ToOwned::to_owned).or_else(|| hints.into_iter().next()))
}
