//! `meshmeter run --on cluster --detach`: hands the run to a Job in the cluster, which executes this same
//! command there.

use super::on_cluster::run_identifier;
use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use cluster::detached::{DetachedSpec, EXPERIMENT, FOLDER};
use experiment::{Experiment, Files};
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// Starts the run and returns once it is under way.
pub(super) fn run(args: &RunArgs, experiment: &Experiment) -> Result<ExitCode, Failure> {
    let detached = Detached::new(args, experiment)?;
    let stop = interrupt::on_signals()?;
    let connected = args.cluster.connection.connection().open()?;
    let spec = detached.spec()?;
    spec.check(&connected)?;
    let attached = spec.start(&connected, &|| stop.load(Ordering::Relaxed))?;
    let place = attached.place();
    let (run, namespace, job) = (&place.run, &place.namespace, &place.job);
    output::print(&format!(
        "run {run} goes on in the cluster, as Job {job} of namespace {namespace}\n  \
         follow it, and copy its results:  meshmeter cluster attach {run} --namespace {namespace}\n  \
         wait for its end:                 kubectl wait --namespace {namespace} --timeout 24h \
         --for jsonpath='{{.status.ready}}'=1 job/{job}\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Objects of the Job, for a dry run.
pub(super) fn objects(args: &RunArgs, experiment: &Experiment) -> Result<Vec<Value>, Failure> {
    let detached = Detached::new(args, experiment)?;
    Ok(detached.spec()?.objects()?.to_vec())
}

/// A run to be detached.
struct Detached<'a> {
    args: &'a RunArgs,
    settings: cluster::settings::ClusterSettings,
    experiment: String,
    arguments: Vec<String>,
}

impl<'a> Detached<'a> {
    fn new(args: &'a RunArgs, experiment: &Experiment) -> Result<Self, Failure> {
        check(args)?;
        let yaml = experiment.to_yaml();
        // The pod has nothing but this text, so it must parse without files.
        Experiment::parse_with(&yaml, "experiment", &[], &NoFiles).map_err(|error| {
            Failure::usage(format!(
                "an experiment that names files cannot be detached: {}",
                error.render(false)
            ))
        })?;
        let run = run_identifier(&experiment.name);
        let settings = args.cluster.settings(&run, "");
        let mut arguments: Vec<String> =
            ["run", EXPERIMENT, "--out", FOLDER, "--run-identifier", &run].map(str::to_owned).to_vec();
        if args.require_all_modes {
            arguments.push("--require-all-modes".to_owned());
        }
        arguments.extend(args.cluster.arguments());
        Ok(Self { args, settings, experiment: yaml, arguments })
    }

    fn spec(&self) -> Result<DetachedSpec<'_>, Failure> {
        let Some((namespace, name)) = &self.args.detached.service_account else {
            return Err(Failure::usage("a detached run needs an account whose rights it has").with_hint(
                "--service-account NAMESPACE:NAME; `meshmeter cluster rbac` prints the rights that it needs",
            ));
        };
        Ok(DetachedSpec {
            settings: &self.settings,
            account: (namespace, name),
            experiment: &self.experiment,
            arguments: &self.arguments,
            keep_for: &self.args.detached.keep_for,
        })
    }
}

/// Rejects options that have no effect before the results are copied.
fn check(args: &RunArgs) -> Result<(), Failure> {
    if args.cluster.image.is_none() {
        return Err(Failure::usage("a run on a cluster needs an image of Meshmeter")
            .with_hint("--image IMAGE, as the cluster's nodes pull it"));
    }
    let automation = &args.automation;
    let later = [
        (args.out.is_some(), "--out"),
        (args.json, "--json"),
        (automation.junit.is_some(), "--junit"),
        (automation.markdown.is_some(), "--markdown"),
    ];
    if let Some((_, option)) = later.iter().find(|(is_given, _)| *is_given) {
        return Err(Failure::usage(format!("{option} is of results, which a detached run has later"))
            .with_hint(format!("give {option} to `meshmeter cluster attach`")));
    }
    if args.noise.accept_noise {
        return Err(Failure::usage("--accept-noise is of results, which a detached run has later")
            .with_hint(
                "give --accept-noise to `meshmeter report`, once `meshmeter cluster attach` has copied them",
            ));
    }
    if args.export.is_asked_for() {
        return Err(Failure::usage("a detached run sends no live metrics")
            .with_hint("leave out --detach, or the options that send metrics"));
    }
    Ok(())
}

/// Stands in for the pod, which has only the experiment and no other files.
struct NoFiles;

impl Files for NoFiles {
    fn text(&self, path: &str) -> Result<String, String> {
        Err(format!("{path} is not in the cluster"))
    }

    fn locate(&self, path: &str) -> Result<PathBuf, String> {
        Err(format!("{path} is not in the cluster"))
    }

    fn locate_program(&self, path: &str) -> Result<PathBuf, String> {
        Err(format!("{path} is not in the cluster"))
    }
}
