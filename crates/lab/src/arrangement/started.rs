//! What an arrangement consists of once it is up, whoever configured its proxies.

use super::tracing::{SentSpans, Tracing};
use crate::container::Container;
use crate::dump::DumpCopy;
use crate::envoy::admin::{Admin, AdminCause, AdminError};
use crate::envoy::proof::Evidence;
use crate::istio::MeshNamespace;
use crate::life::Question;
use crate::pod::Pod;
use experiment::environment::EnvironmentError;
use experiment::schema::{ConfigurationPush, ProxyConfiguration, ProxyHeap, Role};
use std::collections::BTreeMap;
use std::fmt;
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
    pub server_sign_of_life: Question,
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
    pub sign_of_life: Option<Question>,
    /// Whether the traffic of its pod is to be shown as its own.
    pub shows_network: bool,
}

/// A proxy that is asked what it counted and what it holds.
pub(crate) trait CounterSource: fmt::Debug {
    /// All counters by name.
    ///
    /// # Errors
    /// Where there is no answer in time.
    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError>;

    /// Its own account of its heap; absent where it gives none.
    ///
    /// # Errors
    /// Where there is no answer in time.
    fn heap(&self) -> Result<Option<ProxyHeap>, AdminError> {
        Ok(None)
    }

    /// Whether it takes plain text for this port of the application; absent where it tells of no such port.
    ///
    /// # Errors
    /// Where there is no answer in time.
    fn takes_plain_text(&self, _port: u16) -> Result<Option<bool>, AdminError> {
        Ok(None)
    }

    /// Its configuration, counted, and copied as it is read: whole, without certificates and keys. Absent, and nothing is
    /// copied, where it tells of none. Telling may leave its heap larger.
    ///
    /// # Errors
    /// Where there is no answer in time, or not of its shape: the copy is then worth nothing.
    fn configuration(&self, _copy: &mut dyn DumpCopy) -> Result<Option<ProxyConfiguration>, AdminError> {
        Ok(None)
    }

    /// What it answers as long as it does anything; nothing where it answers no questions.
    fn signs_of_life(&self) -> Vec<Question> {
        Vec::new()
    }

    /// Where it answers people; absent where it has no admin interface.
    fn admin(&self) -> Option<&Admin> {
        None
    }
}

/// A proxy that did not answer, and is not asked again.
#[derive(Debug)]
pub(crate) struct Silent {
    /// The component.
    pub proxy: String,
    /// Why it did not.
    pub reason: String,
}

impl Silent {
    fn error(&self, path: &str) -> AdminError {
        let cause = AdminCause::NotAsked(self.reason.clone());
        AdminError { proxy: self.proxy.clone(), path: path.to_owned(), cause }
    }
}

impl CounterSource for Silent {
    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError> {
        Err(self.error("its counters"))
    }

    fn heap(&self) -> Result<Option<ProxyHeap>, AdminError> {
        Err(self.error("its heap"))
    }

    fn configuration(&self, _copy: &mut dyn DumpCopy) -> Result<Option<ProxyConfiguration>, AdminError> {
        Err(self.error("its configuration"))
    }
}

impl CounterSource for Admin {
    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError> {
        Self::counters(self)
    }

    fn heap(&self) -> Result<Option<ProxyHeap>, AdminError> {
        Self::heap(self).map(Some)
    }

    fn configuration(&self, copy: &mut dyn DumpCopy) -> Result<Option<ProxyConfiguration>, AdminError> {
        Self::configuration(self, copy).map(Some)
    }

    fn signs_of_life(&self) -> Vec<Question> {
        vec![Question { of: None, admin: self.clone(), path: "/ready" }]
    }

    fn admin(&self) -> Option<&Admin> {
        Some(self)
    }
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
