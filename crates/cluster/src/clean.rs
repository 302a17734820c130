//! Removes what runs have left behind: objects with the label of a run, and nothing else.

use crate::Result;
use crate::connection::Connected;
use crate::detached::{self, DetachedRun};
use crate::lists::{list_allowed, list_objects};
use crate::retry::{API_TIMEOUT, retry};
use crate::settings::{RUN_LABEL, runner_selector};
use experiment::environment::EnvironmentError;
use mesh::kubernetes::object_ref::{Kind, ObjectRef};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

/// Kinds that a run writes. Kinds whose objects create others come first.
const KINDS: [Kind; 17] = [
    // istiod would recreate the Deployments of these.
    ("gateway.networking.k8s.io/v1", "Gateway"),
    ("apps/v1", "Deployment"),
    ("batch/v1", "Job"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    ("security.istio.io/v1", "PeerAuthentication"),
    ("security.istio.io/v1", "AuthorizationPolicy"),
    ("networking.istio.io/v1", "DestinationRule"),
    ("networking.istio.io/v1", "Gateway"),
    ("networking.istio.io/v1", "VirtualService"),
    ("networking.istio.io/v1", "Sidecar"),
    ("extensions.istio.io/v1alpha1", "TrafficExtension"),
];
const NAMESPACE: Kind = ("v1", "Namespace");
/// Deleting a namespace takes some ten seconds, longer with many pods.
const GONE_TIMEOUT: Duration = Duration::from_secs(180);
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Remaining objects of runs.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// Objects by run, namespaces last.
    pub by_run: BTreeMap<String, Vec<ObjectRef>>,
    /// Kinds that this user may not list.
    pub not_listed: BTreeSet<&'static str>,
}

/// Finds objects with the label of a run: in these namespaces, or in all if there are none. With `run`, only
/// objects of that run.
pub fn find(cluster: &Connected, namespaces: &[String], run: Option<&str>) -> Result<Leftovers> {
    let selector = run.map_or_else(|| RUN_LABEL.to_owned(), |run| format!("{RUN_LABEL}={run}"));
    let mut found = Leftovers::default();
    let scopes: Vec<Option<&str>> = match namespaces {
        [] => vec![None],
        several => several.iter().map(|name| Some(name.as_str())).collect(),
    };
    let mut is_any_listed = false;
    for (api_version, kind) in served_kinds(cluster)? {
        for scope in &scopes {
            let Some(objects) = list_allowed(&cluster.api, (api_version, kind), *scope, &selector)? else {
                found.not_listed.insert(kind);
                continue;
            };
            is_any_listed = true;
            found.add(&objects)?;
        }
    }
    if !is_any_listed {
        return Err(not_allowed(namespaces));
    }
    let is_asked = |object: &Value| {
        namespaces.is_empty() || namespaces.iter().any(|name| object["metadata"]["name"] == **name)
    };
    // A user who may not list namespaces has not created any.
    let mut own = list_allowed(&cluster.api, NAMESPACE, None, &selector)?.unwrap_or_default();
    own.retain(is_asked);
    found.add(&own)?;
    Ok(found)
}

/// Kinds of [`KINDS`] that this cluster serves.
fn served_kinds(cluster: &Connected) -> Result<Vec<Kind>> {
    let served = cluster.api.served(&KINDS)?;
    Ok(KINDS.into_iter().filter(|kind| served.contains_key(kind)).collect())
}

fn not_allowed(namespaces: &[String]) -> EnvironmentError {
    let operation = "look for what runs have left";
    if namespaces.is_empty() {
        return EnvironmentError::new(operation, "this user may list nothing in all namespaces")
            .with_hint("name those of the run: --namespace NAME");
    }
    EnvironmentError::new(operation, format!("this user may list nothing in {}", namespaces.join(", ")))
}

impl Leftovers {
    fn add(&mut self, objects: &[Value]) -> Result<()> {
        for object in objects {
            let run = object["metadata"]["labels"][RUN_LABEL].as_str().unwrap_or_default();
            self.by_run.entry(run.to_owned()).or_default().push(ObjectRef::from_object(object)?);
        }
        Ok(())
    }
}

/// Ends the Jobs of a detached run, which would otherwise recreate objects while they are removed. Returns
/// true if there was one in the namespaces of these objects.
pub fn end_runner(cluster: &Connected, run: &str, objects: &[ObjectRef]) -> Result<bool> {
    let jobs = objects.iter().filter(|object| object.kind == "Job");
    let namespaces: BTreeSet<&String> = jobs.filter_map(|job| job.namespace.as_ref()).collect();
    let namespaces: Vec<String> = namespaces.into_iter().cloned().collect();
    if namespaces.is_empty() {
        return Ok(false);
    }
    let runners = detached::find(cluster, &namespaces, Some(run))?;
    for DetachedRun { namespace, job, .. } in &runners {
        let job = [ObjectRef::new("batch/v1", "Job", Some(namespace), job)];
        retry(API_TIMEOUT, || cluster.api.delete(&job, &|_| ()))?;
        wait_until_ended(cluster, run, namespace)?;
    }
    Ok(!runners.is_empty())
}

/// Waits until no pod of the runner is left.
fn wait_until_ended(cluster: &Connected, run: &str, namespace: &str) -> Result<()> {
    let selector = runner_selector(Some(run));
    let deadline = Instant::now() + GONE_TIMEOUT;
    loop {
        let left =
            retry(API_TIMEOUT, || list_objects(&cluster.api, ("v1", "Pod"), Some(namespace), &selector))?;
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(EnvironmentError::new(format!("end run {run}"), "its pod is still being deleted"));
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Deletes objects and waits until they are gone. Pods are removed with their owners. `is_stopped` ends the
/// wait.
pub fn remove(cluster: &Connected, objects: &[ObjectRef], is_stopped: &dyn Fn() -> bool) -> Result<()> {
    retry(API_TIMEOUT, || cluster.api.delete(objects, &|_| ()))?;
    let namespaces: BTreeSet<&ObjectRef> =
        objects.iter().filter(|object| object.kind == NAMESPACE.1).collect();
    let deadline = Instant::now() + GONE_TIMEOUT;
    loop {
        let left: Vec<ObjectRef> = namespaces.iter().map(|namespace| (*namespace).clone()).collect();
        let left = retry(API_TIMEOUT, || cluster.api.get_all(&left))?;
        let Some(waiting) = left.iter().flatten().next() else { return Ok(()) };
        let name = waiting["metadata"]["name"].as_str().unwrap_or_default();
        if is_stopped() || Instant::now() > deadline {
            let reason = format!("it is still being deleted: {}", why(waiting));
            return Err(EnvironmentError::new(format!("delete namespace {name}"), reason));
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Messages of a namespace about objects that delay its deletion.
fn why(namespace: &Value) -> String {
    let conditions = namespace["status"]["conditions"].as_array().into_iter().flatten();
    let messages: Vec<&str> = conditions
        .filter(|condition| condition["status"] == "True")
        .filter_map(|condition| condition["message"].as_str())
        .collect();
    if messages.is_empty() { "its pods have not ended yet".to_owned() } else { messages.join("; ") }
}
