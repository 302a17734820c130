//! A run that is started in a pod of the cluster itself. The pod's service account gives access to the API,
//! and the pod's image is the image of the run.

use crate::Result;
use crate::connection::Connected;
use experiment::environment::EnvironmentError;
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

/// Image of the pod in which this process runs.
pub fn own_image(cluster: &Connected) -> Result<String> {
    let failure = |reason: &str| {
        EnvironmentError::new("find the image of this pod", reason).with_hint("name one with --image IMAGE")
    };
    let namespace = std::fs::read_to_string(Path::new(ACCOUNT).join("namespace"));
    let namespace = namespace.map_err(|error| failure(&error.to_string()))?;
    let name = env::var("HOSTNAME").map_err(|_| failure("HOSTNAME does not name the pod"))?;
    let pod = cluster.api.get(&ObjectRef::new("v1", "Pod", Some(namespace.trim()), &name))?;
    let containers = pod.as_ref().and_then(|pod| pod["spec"]["containers"].as_array());
    let own = containers.into_iter().flatten().find(|container| container["name"] == CONTAINER);
    let image = own.and_then(|container| container["image"].as_str());
    image.map(ToOwned::to_owned).ok_or_else(|| failure("it has no container of the name meshmeter"))
}
