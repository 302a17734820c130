//! A run that is started in a pod of the cluster itself. The pod's service account gives access to the API,
//! and the pod's image is the image of the run.

use crate::Result;
use crate::connection::Connected;
use crate::settings::Owner;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use mesh::kubernetes::object_ref::ObjectRef;
use serde_json::{Value, json};
use std::env;
use std::path::Path;

/// Path at which kubelets mount a pod's service account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const NAME: &str = "in-cluster";
/// Name of the container in a run's own pod.
const CONTAINER: &str = "meshmeter";

/// True if this process runs in a pod that has a service account.
pub fn is_in_pod() -> bool {
    kubeconfig().is_some()
}

/// Kubeconfig of the pod's account; absent outside of pods.
pub(crate) fn kubeconfig() -> Option<Value> {
    let (host, port) = (env::var("KUBERNETES_SERVICE_HOST").ok()?, env::var("KUBERNETES_SERVICE_PORT").ok()?);
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let token = Path::new(ACCOUNT).join("token");
    token.exists().then(|| {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": NAME, "cluster": {
                "server": format!("https://{host}:{port}"),
                "certificate-authority": Path::new(ACCOUNT).join("ca.crt"),
            }}],
            // The file is read again when the token expires.
            "users": [{"name": NAME, "user": {"tokenFile": token}}],
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
            "current-context": NAME,
        })
    })
}

/// Pod in which this process runs; absent if this cluster has no such pod.
fn own_pod(cluster: &Connected) -> Result<Option<Value>> {
    let operation = "find this pod";
    let namespace = std::fs::read_to_string(Path::new(ACCOUNT).join("namespace")).context(operation)?;
    let name =
        env::var("HOSTNAME").map_err(|_| EnvironmentError::new(operation, "HOSTNAME does not name it"))?;
    cluster.api.get(&ObjectRef::new("v1", "Pod", Some(namespace.trim()), &name))
}

/// Job that owns the pod of this process; absent if there is none, or if this user may not read the pod.
pub(crate) fn owner(cluster: &Connected) -> Option<Owner> {
    owner_of(&own_pod(cluster).ok()??)
}

fn owner_of(pod: &Value) -> Option<Owner> {
    let metadata = &pod["metadata"];
    let job = metadata["ownerReferences"].as_array()?.iter().find(|owner| owner["kind"] == "Job")?;
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    Some(Owner {
        namespace: text(&metadata["namespace"])?,
        job: text(&job["name"])?,
        uid: text(&job["uid"])?,
    })
}

/// Image of the pod in which this process runs.
pub fn own_image(cluster: &Connected) -> Result<String> {
    let hint = "name one with --image IMAGE";
    let failure = |reason: &str| EnvironmentError::new("find the image of this pod", reason).with_hint(hint);
    let pod = own_pod(cluster).map_err(|error| error.with_hint(hint))?;
    let containers = pod.as_ref().and_then(|pod| pod["spec"]["containers"].as_array());
    let own = containers.into_iter().flatten().find(|container| container["name"] == CONTAINER);
    let image = own.and_then(|container| container["image"].as_str());
    image.map(ToOwned::to_owned).ok_or_else(|| failure("it has no container of the name meshmeter"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_is_job_of_pod() {
        let pod = |kind: &str| {
            let owner = json!({"kind": kind, "name": "perf-1", "uid": "u"});
            json!({"metadata": {"name": "perf-1-x", "namespace": "perf", "ownerReferences": [owner]}})
        };
        let job = Owner { namespace: "perf".to_owned(), job: "perf-1".to_owned(), uid: "u".to_owned() };
        assert_eq!(owner_of(&pod("Job")), Some(job));
        assert_eq!(owner_of(&pod("ReplicaSet")), None);
        assert_eq!(owner_of(&json!({"metadata": {"namespace": "perf"}})), None);
    }
}
