//! A run on a Kubernetes cluster. The only file of `run` that depends on clusters.

use super::run_environment::RunEnvironment;
use super::{detach, pacing};
use crate::cli::RunArgs;
use crate::commands::cluster::documents;
use crate::failure::{ENVIRONMENT_FAILED, Failure};
use crate::interrupt;
use cluster::check::{Finding, Standing};
use cluster::environment::Cluster;
use cluster::{in_pod, objects, plug};
use experiment::environment::ProgressSink;
use experiment::environment::deploy::Environment;
use experiment::schema::{Calibration, Floor, Pacing, Pauses, RunPacing};
use experiment::units::format_duration;
use experiment::{Experiment, Mode, Plan};
use report::folder::RunFolder;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Placeholder image when objects are only printed.
const ANY_IMAGE: &str = "meshmeter";
/// A label value holds 63 characters, 15 of which are the time.
const MAX_LABELLED_NAME: usize = 40;
/// Time for two kubelet samples, with some margin.
const TWO_SAMPLES: Duration = Duration::from_secs(25);

/// Cluster of a run.
pub(super) struct OnCluster {
    environment: Cluster,
    stop: Arc<AtomicBool>,
    reads_kubelets: bool,
}

/// Opens the cluster that the options name. Does not write anything yet.
pub(super) fn open(args: &RunArgs, name: &str) -> Result<OnCluster, Failure> {
    if args.cluster.image.is_none() && !in_pod::is_in_pod() {
        return Err(Failure::wrong_use("a run on a cluster needs an image of Meshmeter")
            .with_hint("--image IMAGE, as the cluster's nodes pull it"));
    }
    if args.calibrate {
        return Err(Failure::wrong_use("--calibrate measures this machine, and trials run on others"));
    }
    let run = args.detached.run_identifier.clone().unwrap_or_else(|| run_identifier(name));
    let connected = args.cluster.connection.connection().open()?;
    let image = args.cluster.image.clone().map_or_else(|| in_pod::own_image(&connected), Ok)?;
    let settings = args.cluster.settings(&run, &image);
    anstream::eprintln!("run {run} on Kubernetes {} (context {})", connected.version, connected.context);
    let last_words =
        format!("what the run has written stays; remove it: meshmeter cluster clean --run {run}");
    let reads_kubelets = settings.reads_kubelets();
    let stop = interrupt::on_signals_with_last_words(move || Some(last_words.clone()))?;
    let is_stopped = Arc::clone(&stop);
    let environment = Cluster::new(connected, settings, Arc::new(move || is_stopped.load(Ordering::Relaxed)));
    Ok(OnCluster { environment, stop, reads_kubelets })
}

impl OnCluster {
    /// Kubelets sample at their own interval: a window without two samples has no usage of services and
    /// proxies.
    fn warn_of_short_windows(&self, plan: &Plan) {
        let shortest = plan.trials.iter().map(|trial| trial.duration).min();
        if let Some(shortest) = shortest.filter(|window| self.reads_kubelets && *window < TWO_SAMPLES) {
            anstream::eprintln!(
                "warning: kubelets sample usage about every ten seconds: windows of {} may leave services and proxies without \
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
        let missing = findings.into_iter().filter(|finding| finding.standing == Standing::Missing);
        Failure::all(
            missing
                .map(|Finding { text, hint, .. }| match hint {
                    Some(hint) => Failure::broken(text).with_hint(hint),
                    None => Failure::broken(text),
                })
                .collect(),
        )
    }

    fn measure_noise_floor(&self) -> Result<Option<Floor>, Failure> {
        Ok(None)
    }

    fn calibration(
        &mut self,
        _asked: bool,
        _pauses: Option<&Pauses>,
    ) -> Result<Option<Calibration>, Failure> {
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

/// Prints every object of the first deployment of each mode. Modes that clusters do not support are named.
pub(super) fn print_objects(
    args: &RunArgs,
    experiment: &Experiment,
    plan: &Plan,
) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    let (mut modes, mut refused): (Vec<Mode>, Vec<Failure>) = Default::default();
    let settings = args.cluster.settings(&run_identifier(&plan.name), ANY_IMAGE);
    for trial in &plan.trials {
        if modes.contains(&trial.mode) {
            continue;
        }
        modes.push(trial.mode);
        let written = plug::of(trial.spec.mesh, trial.mode, &settings)
            .and_then(|plug| objects::objects(&trial.spec, &settings, &*plug));
        match written {
            Ok(written) => {
                let _ = writeln!(text, "# Mode {}: {} objects", trial.mode, written.len());
                text.push_str(&documents(&written));
            }
            Err(error) => refused.push(error.into()),
        }
    }
    for failure in &refused {
        failure.report();
    }
    if args.detached.detach {
        let written = detach::objects(args, experiment)?;
        let _ = writeln!(text, "# The detached run: {} objects", written.len());
        text.push_str(&documents(&written));
    }
    // The reader may close the pipe early.
    let _ = anstream::stdout().write_all(text.as_bytes());
    Ok(if text.is_empty() { ExitCode::from(ENVIRONMENT_FAILED) } else { ExitCode::SUCCESS })
}

/// Value of the run's label: the experiment's name, truncated to fit a label, and the time in UTC to the
/// second.
pub(super) fn run_identifier(name: &str) -> String {
    let name = name.to_lowercase().replace(|other: char| !other.is_ascii_alphanumeric(), "-");
    let name: String = name.trim_matches('-').chars().take(MAX_LABELLED_NAME).collect();
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    format!("{}-{time}", if name.is_empty() { "run" } else { &name })
}
