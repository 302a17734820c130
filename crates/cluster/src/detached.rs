//! A detached run answers "How do I measure for hours in a cluster while my laptop is closed?"
//!
//! It continues without its user: a Job that executes the same `meshmeter run` in the cluster
//! ([`crate::runner`]), with the rights of a service account that an administrator has set up. This module
//! has its objects, and the client for attaching to it.

mod copy;

pub use self::copy::FolderNames;

use crate::Result;
use crate::connection::Connected;
use crate::lists::list_objects;
use crate::manifests::MAX_CONFIG_MAP_BYTES;
use crate::placement::place_generator;
use crate::plug::{annotated_outside_of_meshes, outside_of_meshes};
use crate::pods::{PodState, creation_failure};
use crate::port_forward::PortForward;
use crate::retry::{API_TIMEOUT, retry};
use crate::rights::DETACHED;
use crate::runner::protocol::{FETCHED_PATH, FOLDER_PATH, INTERRUPT_PATH, PROGRESS_PATH, RunProgress};
use crate::settings::{
    ClusterSettings, ENDED_PORT, MANAGED_BY, Owner, RUN_LABEL, RUNNER, RUNNER_PORT, runner_selector,
};
use crate::startup::Startup;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use mesh::admin::Admin;
use mesh::kubernetes::access::Action;
use mesh::kubernetes::object_ref::ObjectRef;
use serde_json::{Value, json};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Path of the experiment in the runner's pod.
pub const EXPERIMENT: &str = "/etc/meshmeter/experiment.yaml";
/// Path of the run folder in the runner's pod.
pub const FOLDER: &str = "/results/run";
const EXPERIMENT_FILE: &str = "experiment.yaml";
const JOB: (&str, &str) = ("batch/v1", "Job");
/// Time after which an ended Job is removed: its results were copied, or not fetched in time.
const REMOVED_AFTER_S: u64 = 3600;
/// User of the image.
const USER: u32 = 65532;
/// Time until a pod has started; a node may have to pull the image.
const START_TIMEOUT: Duration = Duration::from_secs(180);
/// Maximum time for which a runner may be unreachable while its pod exists.
const LOST_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A run to be detached.
#[derive(Clone, Copy, Debug)]
pub struct DetachedSpec<'a> {
    pub settings: &'a ClusterSettings,
    /// Namespace and name of the service account whose rights it has.
    pub account: (&'a str, &'a str),
    /// The resolved experiment.
    pub experiment: &'a str,
    /// Arguments of `meshmeter run` in the pod.
    pub arguments: &'a [String],
    /// How long its results are kept, as the user typed it.
    pub keep_for: &'a str,
}

/// Location of the Job of a detached run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DetachedRun {
    pub run: String,
    pub namespace: String,
    pub job: String,
    /// True if its results were copied, or not fetched in time.
    pub is_over: bool,
}

/// Name of the objects of a detached run.
fn job_name(run: &str) -> String {
    format!("run-{run}")
}

impl DetachedSpec<'_> {
    /// The location that it will have.
    pub fn place(&self) -> DetachedRun {
        let run = self.settings.run.clone();
        DetachedRun { job: job_name(&run), namespace: self.account.0.to_owned(), run, is_over: false }
    }

    /// The ConfigMap with the experiment, and the Job.
    pub fn objects(&self) -> Result<[Value; 2]> {
        let bytes = self.experiment.len();
        if bytes > MAX_CONFIG_MAP_BYTES {
            let reason =
                format!("it has {bytes} bytes, and a ConfigMap holds at most {MAX_CONFIG_MAP_BYTES}");
            return Err(EnvironmentError::new("detach an experiment", reason));
        }
        let metadata = self.metadata();
        let config = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
            "data": {EXPERIMENT_FILE: self.experiment},
        });
        Ok([config, self.job(&metadata)])
    }

    fn metadata(&self) -> Value {
        let DetachedRun { run, namespace, job, .. } = self.place();
        let (component, runner) = RUNNER;
        let (managed_by, meshmeter) = MANAGED_BY;
        let labels = json!({RUN_LABEL: run, component: runner, managed_by: meshmeter});
        json!({"name": job, "namespace": namespace, "labels": labels})
    }

    /// The Job. It is never restarted, since half of its results would be gone. Its pod becomes ready once
    /// the run has ended.
    fn job(&self, metadata: &Value) -> Value {
        let mut arguments: Vec<String> = vec![
            "cluster-runner".to_owned(),
            format!("--port={RUNNER_PORT}"),
            format!("--ended-port={ENDED_PORT}"),
            format!("--folder={FOLDER}"),
            format!("--keep-for={}", self.keep_for),
            "--".to_owned(),
        ];
        arguments.extend(self.arguments.iter().cloned());
        let mut labels = metadata["labels"].clone();
        for (name, value) in outside_of_meshes() {
            labels[name] = json!(value);
        }
        let mut pod = json!({
            "metadata": {"labels": labels, "annotations": annotated_outside_of_meshes()},
            "spec": {
                "serviceAccountName": self.account.1,
                "restartPolicy": "Never",
                "enableServiceLinks": false,
                "terminationGracePeriodSeconds": 2,
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [{
                    "name": "meshmeter",
                    "image": self.settings.image,
                    "args": arguments,
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                    "readinessProbe": {"httpGet": {"path": "/", "port": ENDED_PORT}, "periodSeconds": 5},
                    "volumeMounts": [
                        {"name": "experiment", "mountPath": "/etc/meshmeter", "readOnly": true},
                        {"name": "results", "mountPath": "/results"},
                    ],
                    "securityContext": {
                        "allowPrivilegeEscalation": false,
                        "readOnlyRootFilesystem": true,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }],
                "volumes": [
                    {"name": "experiment", "configMap": {"name": metadata["name"]}},
                    {"name": "results", "emptyDir": {}},
                ],
            },
        });
        place_generator(self.settings, &mut pod["spec"]);
        self.settings.add_pull_secret(&mut pod["spec"]);
        json!({
            "apiVersion": JOB.0, "kind": JOB.1, "metadata": metadata,
            "spec": {"backoffLimit": 0, "ttlSecondsAfterFinished": REMOVED_AFTER_S, "template": pod},
        })
    }

    /// Returns an error if this user may not start and follow detached runs in the account's namespace, or if
    /// the account does not exist.
    pub fn check(&self, cluster: &Connected) -> Result<()> {
        let (namespace, name) = self.account;
        let actions: Vec<Action> = DETACHED.iter().flat_map(crate::rights::Rule::actions).collect();
        let denied = cluster.api.denied(Some(namespace), &actions)?;
        if !denied.is_empty() {
            let denied: Vec<String> = denied.iter().map(Action::to_string).collect();
            let reason = format!("this user may not in namespace {namespace}: {}", denied.join(", "));
            let hint = format!(
                "an administrator can apply: meshmeter cluster rbac --detach --namespace {namespace} --user NAME"
            );
            return Err(EnvironmentError::new("detach a run", reason).with_hint(hint));
        }
        match cluster.api.get(&ObjectRef::new("v1", "ServiceAccount", Some(namespace), name))? {
            Some(_) => Ok(()),
            None => {
                let reason = format!("there is no service account {name} in namespace {namespace}");
                let hint = format!(
                    "kubectl create serviceaccount {name} --namespace {namespace}, and give it the rights of a run: meshmeter \
                     cluster rbac --namespace {namespace} --service-account {namespace}:{name}"
                );
                Err(EnvironmentError::new("detach a run", reason).with_hint(hint))
            }
        }
    }

    /// Writes the objects and waits until the runner responds. If it does not, the objects are removed again.
    pub fn start<'a>(&self, cluster: &'a Connected, is_stopped: &dyn Fn() -> bool) -> Result<Attached<'a>> {
        let [config, job] = self.objects()?;
        let written = [ObjectRef::from_object(&job)?, ObjectRef::from_object(&config)?];
        let begun = cluster.api.apply(std::slice::from_ref(&config)).and_then(|_| {
            let job = cluster.api.apply(&[job])?;
            // The ConfigMap is deleted with its Job.
            let mut owned = config;
            let place = self.place();
            let uid = job[0]["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            Owner { namespace: place.namespace.clone(), job: place.job.clone(), uid }.own(&mut owned);
            cluster.api.apply(&[owned])?;
            Attached::open(cluster, &place, is_stopped)
        });
        if begun.is_err() {
            // `cluster clean` finds objects that cannot be removed.
            let _ = retry(API_TIMEOUT, || cluster.api.delete(&written, &|_| ()));
        }
        begun
    }
}

/// Detached runs in these namespaces, or in all if there are none. With `run`, only that run.
pub fn find(cluster: &Connected, namespaces: &[String], run: Option<&str>) -> Result<Vec<DetachedRun>> {
    let selector = runner_selector(run);
    let scopes: Vec<Option<&str>> = match namespaces {
        [] => vec![None],
        several => several.iter().map(|name| Some(name.as_str())).collect(),
    };
    let mut found = Vec::new();
    for scope in scopes {
        let jobs = list_objects(&cluster.api, JOB, scope, &selector).map_err(|error| match scope {
            None => {
                error.with_hint("without a right to all namespaces, name the account's: --namespace NAME")
            }
            Some(_) => error,
        })?;
        found.extend(jobs.iter().map(|job| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            DetachedRun {
                run: text(&job["metadata"]["labels"][RUN_LABEL]),
                namespace: text(&job["metadata"]["namespace"]),
                job: text(&job["metadata"]["name"]),
                is_over: !job["status"]["completionTime"].is_null() || creation_failure(job).is_some(),
            }
        }));
    }
    Ok(found)
}

/// A connection to a runner.
#[derive(Debug)]
pub struct Attached<'a> {
    cluster: &'a Connected,
    place: DetachedRun,
    pod: String,
    runner: Admin,
    forward: PortForward,
}

impl<'a> Attached<'a> {
    /// Waits until the runner responds. The error says why its pod does not run, or no longer runs.
    pub fn open(cluster: &'a Connected, place: &DetachedRun, is_stopped: &dyn Fn() -> bool) -> Result<Self> {
        let operation = || format!("attach to run {}", place.run);
        let selector = runner_selector(Some(&place.run));
        let namespaces = [place.namespace.clone()];
        let startup = Startup::for_runner(&cluster.api, &namespaces, &selector);
        let began = Instant::now();
        let mut attached: Option<Self> = None;
        loop {
            if is_stopped() {
                return Err(EnvironmentError::new(operation(), "it was stopped"));
            }
            let listed = retry(API_TIMEOUT, || {
                list_objects(&cluster.api, ("v1", "Pod"), Some(&place.namespace), &selector)
            })?;
            if let Some(reason) = listed.iter().find_map(ended) {
                return Err(EnvironmentError::new(operation(), reason).with_hint(clean_hint(&place.run)));
            }
            let pods: Vec<PodState> = listed.iter().map(PodState::read).collect();
            startup.check(&pods)?;
            if let (None, Some(pod)) = (&attached, pods.first()) {
                let forward = PortForward::open(&cluster.api, &pod.namespace, &pod.name, RUNNER_PORT)?;
                let runner = forward.admin(&pod.name);
                attached =
                    Some(Self { cluster, place: place.clone(), pod: pod.name.clone(), runner, forward });
            }
            if let Some(attached) = attached.take_if(|attached| attached.ask(0).is_ok()) {
                return Ok(attached);
            }
            if began.elapsed() > START_TIMEOUT {
                let reason = format!("its pod does not respond after {} s", START_TIMEOUT.as_secs());
                return Err(EnvironmentError::new(operation(), reason));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    pub fn place(&self) -> &DetachedRun {
        &self.place
    }

    fn ask(&self, from: usize) -> Result<RunProgress> {
        let operation = || format!("follow run {}", self.place.run);
        self.runner.get_json(&format!("{PROGRESS_PATH}?{from}")).map_err(|error| {
            match self.forward.last_error() {
                Some(reason) => EnvironmentError::new(operation(), reason),
                None => EnvironmentError::new(operation(), error),
            }
        })
    }

    /// Lines from this one on, and the exit status. Waits while the runner is unreachable; returns an error
    /// if its pod is lost.
    pub fn progress(&self, from: usize, is_stopped: &dyn Fn() -> bool) -> Result<RunProgress> {
        let began = Instant::now();
        loop {
            let error = match self.ask(from) {
                Ok(progress) => return Ok(progress),
                Err(_) if is_stopped() => return Ok(RunProgress::default()),
                Err(error) => error,
            };
            let pod = ObjectRef::new("v1", "Pod", Some(&self.place.namespace), &self.pod);
            let lost = match self.cluster.api.get(&pod) {
                Ok(None) => Some("its pod is gone, and with it what was not copied".to_owned()),
                Ok(Some(pod)) => ended(&pod),
                Err(_) => None,
            };
            if let Some(reason) = lost {
                let operation = format!("follow run {}", self.place.run);
                return Err(EnvironmentError::new(operation, reason).with_hint(clean_hint(&self.place.run)));
            }
            if began.elapsed() > LOST_TIMEOUT {
                let hint = format!("it may go on: meshmeter cluster attach {}", self.place.run);
                return Err(error.with_hint(hint));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Ends the run. It keeps the results so far.
    pub fn interrupt(&self) -> Result<()> {
        retry(API_TIMEOUT, || {
            self.runner.post_json::<()>(INTERRUPT_PATH, &()).context(format!("stop run {}", self.place.run))
        })
    }

    /// Copies the run folder into an empty one, to the disk. It takes any time as long as bytes arrive. Returns
    /// the paths that were left out, since a run has no such names.
    pub fn copy_folder(
        &self,
        to: &Path,
        names: FolderNames<'_>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Vec<PathBuf>> {
        let open = |from: u64| {
            let opened = self.runner.stream(&format!("{FOLDER_PATH}?{from}"));
            opened.map_err(|error| match self.forward.last_error() {
                Some(reason) => io::Error::other(reason),
                None => io::Error::other(error),
            })
        };
        copy::unpack(copy::Resumed::new(&open, is_stopped), to, names)
            .and_then(|left_out| {
                // The runner removes its folder once it is copied.
                rustix::fs::syncfs(File::open(to)?)?;
                Ok(left_out)
            })
            .context(format!("copy the folder of run {}", self.place.run))
    }

    /// Reports that the folder was copied: the Job completes with the run's exit status.
    pub fn fetched(&self) -> Result<()> {
        let operation = || format!("end the Job of run {}", self.place.run);
        self.runner.post_json::<()>(FETCHED_PATH, &()).context(operation())
    }
}

fn clean_hint(run: &str) -> String {
    format!("remove what it has left: meshmeter cluster clean --run {run}")
}

/// Why nothing can be copied from a pod any more.
fn ended(pod: &Value) -> Option<String> {
    let status = &pod["status"];
    let terminated = &status["containerStatuses"][0]["state"]["terminated"];
    let code = terminated["exitCode"].as_i64();
    let reason = terminated["reason"].as_str().or(status["reason"].as_str()).unwrap_or("no reason");
    match (status["phase"].as_str()?, code) {
        // A run whose results were fetched, or kept for the given time, ends with its own exit status.
        // Kubelets may still report a pod as running for a moment after its container has ended.
        ("Succeeded", _) | (_, Some(0..=3)) => Some(format!(
            "it has ended with status {}, and its results were copied or not fetched in time",
            code.unwrap_or(0)
        )),
        (_, Some(code)) => {
            Some(format!("its pod ended with status {code} ({reason}), and its results with it"))
        }
        ("Failed", None) => Some(format!("its pod failed ({reason}), and its results with it")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detached_objects_are_config_map_and_job_outside_deployments() {
        let settings = ClusterSettings::new("meshmeter:1", "shop-20261122-201500");
        let arguments = ["run".to_owned(), EXPERIMENT.to_owned()];
        let account = ("perf", "meshmeter");
        let spec = DetachedSpec {
            settings: &settings,
            account,
            experiment: "name: shop",
            arguments: &arguments,
            keep_for: "24h",
        };
        let [config, job] = spec.objects().unwrap();
        assert_eq!(config["metadata"]["name"], "run-shop-20261122-201500");
        assert_eq!(config["data"]["experiment.yaml"], "name: shop");
        let pod = &job["spec"]["template"];
        assert_eq!(pod["metadata"]["labels"]["app.kubernetes.io/component"], "runner");
        assert_eq!(
            settings.selector(),
            "meshmeter.dev/run=shop-20261122-201500,app.kubernetes.io/component!=runner"
        );
        assert_eq!(pod["spec"]["serviceAccountName"], "meshmeter");
        assert_eq!(pod["spec"]["containers"][0]["args"][6], "run");
        let large = "x".repeat(MAX_CONFIG_MAP_BYTES + 1);
        assert!(DetachedSpec { experiment: &large, ..spec }.objects().is_err());
    }

    #[test]
    fn ended_pods_report_fate_of_results() {
        let pod = |phase: &str, state: Value| json!({"status": {"phase": phase, "containerStatuses": [{"state": state}]}});
        let terminated =
            |code: i64, reason: &str| json!({"terminated": {"exitCode": code, "reason": reason}});
        assert_eq!(ended(&pod("Running", json!({"running": {}}))), None);
        assert!(
            ended(&pod("Failed", terminated(1, "Error"))).unwrap().starts_with("it has ended with status 1")
        );
        assert_eq!(
            ended(&pod("Running", terminated(1, "Error"))),
            ended(&pod("Failed", terminated(1, "Error")))
        );
        let killed = ended(&pod("Failed", terminated(137, "OOMKilled"))).unwrap();
        assert_eq!(killed, "its pod ended with status 137 (OOMKilled), and its results with it");
    }
}
