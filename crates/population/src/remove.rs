//! Removes what a run has written: by its label only, so the population need not be known.

use super::{KINDS, NAMESPACE};
use crate::Result;
use crate::held::{has_controllers, list_held, list_labelled};
use experiment::environment::EnvironmentError;
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::lists::Shown;
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::wait::{Progress, wait_with_progress};
use std::time::Duration;

const GONE_TIMEOUT: Duration = Duration::from_secs(60);
/// Objects that Kubernetes and Istio create in every namespace.
const OF_EVERY_NAMESPACE: [(&str, &str); 5] = [
    ("ConfigMap", "kube-root-ca.crt"),
    ("ConfigMap", "istio-ca-root-cert"),
    ("ConfigMap", "istio-ca-crl"),
    ("ConfigMap", "istio-namespace-controller-election"),
    ("ServiceAccount", "default"),
];
const SHOWN_REMAINS: usize = 5;

/// Result of a removal.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Removed {
    pub objects: usize,
    /// Descriptions of the run's namespaces that contain other objects.
    pub remaining: Vec<String>,
}

/// Removes the objects with the label of a run, and those of its namespaces that contain nothing else.
/// `on_progress` receives the number of objects removed so far.
pub fn remove(api: &ApiClient, run_id: &str, on_progress: &dyn Fn(usize)) -> Result<Removed> {
    let objects = labelled(api, run_id)?;
    api.delete(&objects, on_progress)?;
    wait_until_gone("objects of the fleet", || labelled(api, run_id))?;
    let namespaces = namespaces(api, run_id)?;
    let held = if namespaces.is_empty() { Vec::new() } else { foreign(api, &namespaces)? };
    let remaining: Vec<String> =
        namespaces.iter().filter_map(|namespace| remains(namespace, &held)).collect();
    let is_empty = |namespace: &&String| !held.iter().any(|(holder, _)| holder == *namespace);
    let empty: Vec<&str> = namespaces.iter().filter(is_empty).map(String::as_str).collect();
    let references: Vec<ObjectRef> =
        empty.iter().map(|name| ObjectRef::new("v1", "Namespace", None, name)).collect();
    api.delete(&references, &|removed| on_progress(objects.len() + removed))?;
    if !has_controllers(api)? {
        api.finalize_namespaces(&empty)?;
    }
    wait_until_gone("namespaces of the fleet", || {
        let left = self::namespaces(api, run_id)?.into_iter().filter(|name| empty.contains(&name.as_str()));
        Ok(left.map(|name| ObjectRef::new("v1", "Namespace", None, &name)).collect())
    })?;
    Ok(Removed { objects: objects.len() + empty.len(), remaining })
}

fn labelled(api: &ApiClient, run_id: &str) -> Result<Vec<ObjectRef>> {
    let mut all = Vec::new();
    for kind in KINDS {
        let objects = list_labelled(api, kind, run_id, Shown::Metadata)?;
        for object in objects {
            all.push(ObjectRef::from_object(&object)?);
        }
    }
    Ok(all)
}

fn namespaces(api: &ApiClient, run_id: &str) -> Result<Vec<String>> {
    let objects = list_labelled(api, NAMESPACE, run_id, Shown::Metadata)?;
    objects.iter().map(|object| Ok(ObjectRef::from_object(object)?.name)).collect()
}

fn foreign(api: &ApiClient, namespaces: &[String]) -> Result<Vec<(String, ObjectRef)>> {
    let mut held = list_held(api, namespaces)?;
    held.retain(|(_, object)| !OF_EVERY_NAMESPACE.contains(&(object.kind.as_str(), object.name.as_str())));
    Ok(held)
}

fn remains(namespace: &str, held: &[(String, ObjectRef)]) -> Option<String> {
    let held = held.iter().filter(|(holder, _)| holder == namespace);
    let names: Vec<String> = held.map(|(_, object)| format!("{} {}", object.kind, object.name)).collect();
    (!names.is_empty()).then(|| format!("Namespace {namespace}, which holds {}", shown(&names)))
}

fn shown(names: &[String]) -> String {
    let more = names.len().saturating_sub(SHOWN_REMAINS);
    let first = names.iter().take(SHOWN_REMAINS).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}

/// Waits while objects keep disappearing. The error names the remaining ones.
fn wait_until_gone(what: &str, left: impl Fn() -> Result<Vec<ObjectRef>>) -> Result<()> {
    let mut last = Vec::new();
    let waited = wait_with_progress(&format!("{what} are gone"), GONE_TIMEOUT, || {
        last = left()?;
        Ok(if last.is_empty() { Progress::Done(()) } else { Progress::At(last.len()) })
    });
    waited.map_err(|error| {
        if last.is_empty() {
            return error;
        }
        let names: Vec<String> = last.iter().map(ToString::to_string).collect();
        let hint = format!("still there: {}", shown(&names));
        EnvironmentError::new(error.operation, "finalizers or the API keep them").with_hint(hint)
    })
}
