//! Admission webhooks and policies in an experiment's own objects.
//! One that rejects everything also rejects the deletion of other objects, but the API does not apply it to
//! itself. Admission objects are therefore deleted first, and the next request waits until the API accepts
//! objects again.

use super::client::ApiClient;
use super::object_ref::{ObjectRef, group_version};
use crate::Result;
use crate::wait::wait_for;
use experiment::environment::EnvironmentError;
use experiment::mesh_settings::ExtraObjects;
use serde_json::{Value, json};
use std::time::Duration;

const GROUP: &str = "admissionregistration.k8s.io";
/// The API notices a deleted webhook or policy within milliseconds.
const REMOVED_TIMEOUT: Duration = Duration::from_secs(20);

/// Adds a hint with the names of the experiment's own admission objects, which may explain why the API
/// rejected a request or was slow. An error that has a hint is returned unchanged.
pub fn name_admission_objects(error: EnvironmentError, extra: Option<&ExtraObjects>) -> EnvironmentError {
    let objects = extra.into_iter().flat_map(|extra| &extra.objects);
    let admission = objects.filter_map(|object| ObjectRef::from_object(object).ok()).filter(is_admission);
    let names: Vec<String> = admission.map(|object| object.to_string()).collect();
    if names.is_empty() || error.hint.is_some() {
        return error;
    }
    let verb = if names.len() == 1 { "takes" } else { "take" };
    error.with_hint(format!("of `istio.extra`, {} {verb} part in admission", names.join(", ")))
}

fn is_admission(object: &ObjectRef) -> bool {
    group_version(&object.api_version).0 == GROUP
}

/// Deletes the admission objects among `objects`, if any, and waits until the API accepts the first objects
/// of a deployment.
pub(super) fn remove_admission_objects(api: &ApiClient, objects: &[ObjectRef]) -> Result<()> {
    let admission: Vec<ObjectRef> = objects.iter().filter(|object| is_admission(object)).cloned().collect();
    if admission.is_empty() {
        return Ok(());
    }
    api.delete(&admission, &|_| ())?;
    let mut refused = None;
    let waited = wait_for("the Kubernetes API accepts objects again", REMOVED_TIMEOUT, || {
        api.check_not_stopped()?;
        refused = probes().iter().find_map(|probe| api.dry_run(probe).err());
        Ok(refused.is_none().then_some(()))
    });
    waited.map_err(|error| match refused {
        Some(reason) => EnvironmentError::new(error.operation, reason),
        None => error,
    })
}

/// An object of each kind that a deployment begins with. They are only used in dry runs.
fn probes() -> [Value; 4] {
    let metadata = json!({"name": "asked-for-but-never-made", "namespace": "default"});
    let pod = json!({"containers": [{"name": "app", "image": "app"}]});
    [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": metadata["name"]}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}),
    ]
}
