//! A run on a Kubernetes cluster. The only file of `run` that depends on clusters.

use super::run_environment::RunEnvironment;
use super::unavailable::with;
use super::{detach, pacing};
use crate::cli::RunArgs;
use crate::commands::cluster::documents;
use crate::failure::{ENVIRONMENT_FAILED, Failure};
use crate::interrupt;
use crate::output::{self, tell};
use cluster::environment::Cluster;
use cluster::finding::{CheckOutcome, Finding};
use cluster::settings::{ClusterSettings, SURE_WINDOW};
use cluster::{in_pod, objects, plug};
use experiment::environment::deploy::Environment;
use experiment::environment::{EnvironmentError, ProgressSink, error_chain};
use experiment::{Experiment, Plan};
use report::folder::RunFolder;
use results::units::format_duration;
use results::{Calibration, Floor, Pacing, Pauses, RunPacing};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Placeholder image when objects are only printed.
const ANY_IMAGE: &str = "meshmeter";
/// A label value holds 63 characters, 15 of which are the time.
const MAX_LABELLED_NAME: usize = 40;

/// Cluster of a run.
pub(super) struct OnCluster {
    environment: Cluster,
    stop: Arc<AtomicBool>,
    reads_kubelets: bool,
}

/// Refuses options that only labs support.
pub(super) fn check(args: &RunArgs) -> Result<(), Failure> {
    if args.trials.calibrate {
        return Err(Failure::usage("--calibrate measures this machine, and trials run on others"));
    }
    if args.trials.noise_floor.is_some() {
        return Err(Failure::usage("--noise-floor is for this machine, and trials run on others"));
    }
    if args.trials.profile {
        return Err(Failure::usage("--profile samples processes of this machine, and trials run on others"));
    }
    if args.overrides.is_given() {
        let message = "a cluster runs the programs that are installed there, and none of this machine's";
        return Err(Failure::usage(message)
            .with_hint("leave out the options that name programs, such as --envoy, or run in the lab"));
    }
    Ok(())
}

/// Opens the cluster that the options name. Does not write anything yet.
pub(super) fn open(args: &RunArgs, name: &str) -> Result<OnCluster, Failure> {
    if args.cluster.image.is_none() && !in_pod::is_in_pod() {
        return Err(Failure::usage("a run on a cluster needs an image of Meshmeter")
            .with_hint("--image IMAGE, as the cluster's nodes pull it"));
    }
    let run = args.detached.run_identifier.clone().unwrap_or_else(|| run_identifier(name));
    let connected = args.cluster.connection.connection().open()?;
    let image = args.cluster.image.clone().map_or_else(|| in_pod::own_image(&connected), Ok)?;
    let settings = args.cluster.settings(&run, &image);
    tell!("run {run} on Kubernetes {} (context {})", connected.version, connected.context);
    let last_words =
        format!("what the run has written stays; remove it: meshmeter cluster clean --run {run}");
    let reads_kubelets = settings.reads_kubelets();
    let stop = interrupt::on_signals_with_message(move || Some(last_words.clone()))?;
    let is_stopped = Arc::clone(&stop);
    let environment = Cluster::new(connected, settings, Arc::new(move || is_stopped.load(Ordering::Relaxed)));
    Ok(OnCluster { environment, stop, reads_kubelets })
}

impl OnCluster {
    /// Kubelets sample at their own interval: a window without two samples has no usage of services and
    /// proxies.
    fn warn_of_short_windows(&self, plan: &Plan) {
        let shortest = plan.trials.iter().map(|trial| trial.duration).min();
        if let Some(shortest) = shortest.filter(|window| self.reads_kubelets && *window < SURE_WINDOW) {
            tell!(
                "warning: kubelets sample usage every 10 to 30 seconds: windows of {} may leave services and proxies without \
                 usage\n  hint: --duration 60s",
                format_duration(shortest)
            );
        }
    }

    /// Removes what the run has created; reports what could not be removed.
    pub(super) fn close(mut self) {
        if let Err(error) = self.environment.close() {
            Failure::from(error).report();
        }
    }
}

impl RunEnvironment for OnCluster {
    fn environment(&mut self) -> &mut dyn Environment {
        &mut self.environment
    }

    fn stop_request(&self) -> Box<dyn Fn() -> bool> {
        let stop = Arc::clone(&self.stop);
        Box::new(move || stop.load(Ordering::Relaxed))
    }

    /// Checks rights, namespaces and quotas. The scheduler reports what does not fit on nodes.
    fn check_before(&self, plan: &Plan) -> Result<(), Failure> {
        self.warn_of_short_windows(plan);
        let findings = self.environment.check_before(&super::specs(plan))?;
        let missing = findings.into_iter().filter(|finding| finding.standing == CheckOutcome::Missing);
        Failure::all(
            missing
                .map(|Finding { text, hint, .. }| match hint {
                    Some(hint) => Failure::broken(text).with_hint(hint),
                    None => Failure::broken(text),
                })
                .collect(),
        )
    }

    fn measure_noise_floor(&self, _time: Duration) -> Result<Option<Floor>, Failure> {
        Ok(None)
    }

    fn calibration(&mut self, _asked: bool, _pacing: Pacing) -> Result<Option<Calibration>, Failure> {
        Ok(None)
    }

    fn choose_pacing(&self, plan: &Plan, _pauses: Option<&Pauses>) -> RunPacing {
        let chosen = pacing::choose(plan, 0, None);
        if chosen.fixed {
            return chosen;
        }
        let reason = "generators share their nodes with other pods".to_owned();
        RunPacing { pacing: Pacing::Economical, fixed: false, reason }
    }

    fn keep_logs_in(&mut self, folder: &RunFolder) {
        self.environment.keep_logs_in(&folder.logs());
    }

    fn report_progress_to(&mut self, progress: ProgressSink) {
        self.environment.report_progress_to(progress);
    }
}

/// Prints every object of each deployment, once per distinct set of objects. Modes that clusters do not support are named.
pub(super) fn print_objects(
    args: &RunArgs,
    experiment: &Experiment,
    plan: &Plan,
) -> Result<ExitCode, Failure> {
    let settings = args.cluster.settings(&run_identifier(&plan.name), ANY_IMAGE);
    let (mut text, refused) = written(plan, &settings);
    let is_any_refused = !refused.is_empty();
    for error in refused.into_values() {
        Failure::from(error).report();
    }
    if args.detached.detach {
        let written = detach::objects(args, experiment)?;
        let _ = writeln!(text, "# The detached run: {} objects", written.len());
        text.push_str(&documents(&written));
    }
    output::print(&text)?;
    let is_refused = text.is_empty() || (args.require_all_modes && is_any_refused);
    Ok(if is_refused { ExitCode::from(ENVIRONMENT_FAILED) } else { ExitCode::SUCCESS })
}

/// Distinct deployments of a plan as text, and errors of unsupported ones by message.
fn written(plan: &Plan, settings: &ClusterSettings) -> (String, BTreeMap<String, EnvironmentError>) {
    let mut text = String::new();
    let mut printed: Vec<Vec<Value>> = Vec::new();
    let mut refused = BTreeMap::new();
    for spec in super::specs(plan) {
        let trial = plan.trials.iter().find(|trial| trial.spec == *spec);
        let written = plug::for_mode(spec.mesh, spec.mode, settings)
            .and_then(|plug| objects::objects(spec, settings, &*plug));
        match written {
            Ok(written) if printed.contains(&written) => {}
            Ok(written) => {
                let factors = trial.map(|trial| with(&trial.factors)).unwrap_or_default();
                let _ = writeln!(text, "# Mode {}{factors}: {} objects", spec.mode, written.len());
                text.push_str(&documents(&written));
                printed.push(written);
            }
            Err(error) => drop(refused.entry(error_chain(&error)).or_insert(error)),
        }
    }
    (text, refused)
}

/// Value of the run's label: the experiment's name, truncated to fit a label, and the time in UTC to the
/// second.
pub(super) fn run_identifier(name: &str) -> String {
    let name = name.to_lowercase().replace(|other: char| !other.is_ascii_alphanumeric(), "-");
    let name: String = name.trim_matches('-').chars().take(MAX_LABELLED_NAME).collect();
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    format!("{}-{time}", if name.is_empty() { "run" } else { &name })
}
