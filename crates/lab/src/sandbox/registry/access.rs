//! Access to a lab that is held open, as `meshmeter lab up` and `lab status` print it.

use results::ComponentVersion;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How to use a lab that is held open. Each command is complete, as a list of words, and works from any shell
/// of the lab's user.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Access {
    /// URL that a client in the client's pod requests.
    pub url: String,
    /// Command for a short load on that URL from that pod.
    pub load: Vec<String>,
    pub logs: PathBuf,
    pub components: Vec<ComponentVersion>,
    /// In order from client to server.
    pub proxies: Vec<ProxyAccess>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ControlPlaneAccess>,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct ProxyAccess {
    pub name: String,
    pub pod: String,
    pub config_dump: Vec<String>,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct ControlPlaneAccess {
    /// The administrator's kubeconfig, for programs in the machine's own network. Its default namespace is
    /// `namespace`.
    pub kubeconfig: PathBuf,
    /// Address of the Kubernetes API: TLS with the kubeconfig's certificate.
    pub api: String,
    /// Host and port of istiod's xDS, for proxies and `istioctl`: TLS with a service account's token.
    pub discovery: String,
    pub namespace: String,
    /// Command that prints which proxies are connected to istiod, and what they have acknowledged.
    pub proxy_status: Vec<String>,
    /// Prefix of commands that run in the control plane's network.
    pub enter: Vec<String>,
}
