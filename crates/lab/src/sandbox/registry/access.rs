//! How people use a lab that is held open for them: what `meshmeter lab up` prints and `lab status` repeats.

use experiment::schema::ComponentVersion;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What there is to use. Commands are whole, as words: each works as it stands, from any shell of the lab's user.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Access {
    /// What a client in the client's pod requests.
    pub url: String,
    /// A short load on that URL, from there.
    pub load: Vec<String>,
    /// Folder of the components' logs.
    pub logs: PathBuf,
    /// What runs, and on what, with versions.
    pub components: Vec<ComponentVersion>,
    /// The proxies, from client to server.
    pub proxies: Vec<ProxyAccess>,
    /// The control plane; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ControlPlaneAccess>,
}

/// A proxy to look into.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct ProxyAccess {
    /// The component's name.
    pub name: String,
    /// Its pod.
    pub pod: String,
    /// Prints what it is configured with.
    pub config_dump: Vec<String>,
}

/// A control plane to look into.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct ControlPlaneAccess {
    /// The administrator's kubeconfig, for programs in the machine's own network. Its default namespace is `namespace`.
    pub kubeconfig: PathBuf,
    /// Where the Kubernetes API answers, by TLS and with that file's certificate.
    pub api: String,
    /// Where istiod answers proxies and `istioctl` (xDS), by TLS and with a service account's token: host and port.
    pub discovery: String,
    /// The namespace of the client and the server.
    pub namespace: String,
    /// Prints which proxies are connected to istiod, and what they have acknowledged.
    pub proxy_status: Vec<String>,
    /// The beginning of a command that runs in the control plane's network.
    pub enter: Vec<String>,
}
