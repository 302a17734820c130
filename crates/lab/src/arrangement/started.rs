//! What an arrangement consists of once it is up, whoever configured its proxies.

pub(crate) use mesh::proxy::{CounterSource, Unresponsive};

use super::tracing::{SentSpans, Tracing};
use crate::container::Container;
use crate::envoy::proof::Evidence;
use crate::istio::MeshNamespace;

use crate::pod::Pod;
use experiment::environment::EnvironmentError;
use experiment::schema::{ConfigurationPush, Role};
use mesh::admin::liveness::LivenessProbe;
use std::fs;
use std::path::{Path, PathBuf};

/// Everything of an arrangement that was started. Pods come first, so that they, and all processes with them, are the
/// first to be dropped; the objects of the mesh go last.
#[derive(Debug)]
pub(crate) struct Started {
    /// Its pods.
    pub pods: Pods,
    /// The service's process.
    pub server: Container,
    /// What the service answers as long as it does anything.
    pub server_sign_of_life: LivenessProbe,
    /// From client to server.
    pub proxies: Vec<Proxy>,
    /// What else belongs to the arrangement and must not die: the control plane.
    pub supporting: Vec<Supporting>,
    /// What the generator requests.
    pub url: String,
    /// What the generator needs besides.
    pub client_arguments: Vec<String>,
    /// What is to be traced; absent where nothing is.
    pub tracing: Option<Tracing>,
    /// How long the configuration took to be in force; absent where nothing is configured while it runs.
    pub push: Option<ConfigurationPush>,
    /// Certificates and keys of client and service.
    pub _folders: Vec<PrivateFolder>,
    /// The objects that describe it to a control plane; absent where there is none.
    pub namespace: Option<MeshNamespace>,
}

/// The pods of an arrangement.
#[derive(Debug)]
pub(crate) struct Pods {
    /// Where the generator runs.
    pub client: Pod,
    /// Where the service runs.
    pub server: Pod,
    /// Those of proxies that have one to themselves.
    pub others: Vec<Pod>,
}

impl Pods {
    /// All of them.
    pub fn all(&self) -> Vec<&Pod> {
        [&self.client, &self.server].into_iter().chain(&self.others).collect()
    }
}

/// A running proxy on the path. One that stands on it twice (a ztunnel that client and server share) is listed twice.
#[derive(Debug)]
pub(crate) struct Proxy {
    /// The component's name.
    pub name: String,
    /// Which end of the path this is about, of a proxy that stands at both; absent for others.
    pub side: Option<&'static str>,
    /// The name of its pod.
    pub pod: String,
    /// Its process, with all that it starts.
    pub container: Container,
    /// What of its counters tells of the path.
    pub evidence: Evidence,
    /// What it sends where requests are traced; absent where it is never told to.
    pub spans: Option<SentSpans>,
    /// Where its counters are read, and what it holds.
    pub counters: Box<dyn CounterSource>,
    /// Its configuration and keys; absent where what reads its counters keeps them.
    pub _files: Option<PrivateFolder>,
}

/// A component that is neither on the path nor the application.
#[derive(Clone, Debug)]
pub(crate) struct Supporting {
    /// The component's name.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The name of its pod.
    pub pod: String,
    /// Its process, with all that it starts.
    pub container: Container,
    /// What it answers as long as it does anything; absent where it is asked in another way.
    pub sign_of_life: Option<LivenessProbe>,
    /// Whether the traffic of its pod is to be shown as its own.
    pub shows_network: bool,
}

/// A folder of the lab that goes with its owner: configuration, keys, sockets.
#[derive(Debug)]
pub(crate) struct PrivateFolder(pub PathBuf);

impl PrivateFolder {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // What cannot be removed here goes with the lab's private folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Makes the folder for an arrangement's logs.
pub(crate) fn create_log_dir(log_dir: &Path) -> Result<(), EnvironmentError> {
    fs::create_dir_all(log_dir)
        .map_err(|error| EnvironmentError::new(format!("create the log folder {}", log_dir.display()), error))
}
