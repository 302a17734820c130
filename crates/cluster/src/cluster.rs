//! The cluster of one run: the connection, the run's settings, and the namespaces that it has created.

use crate::Result;
use crate::clean;
use crate::connection::Connected;
use crate::in_pod;
use crate::plug::{self, PlugContext};
use crate::settings::ClusterSettings;
use experiment::environment::{DeploymentSpec, EnvironmentError, ProgressSink};
use mesh::kubernetes::object_ref::ObjectRef;
use results::ComponentVersion;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Returns true once the user has stopped the run.
pub type StopCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// A cluster as the environment of one run.
pub struct Cluster {
    pub(crate) connected: Connected,
    pub(crate) settings: ClusterSettings,
    pub(crate) is_stopped: StopCheck,
    pub(crate) progress: ProgressSink,
    logs: PathBuf,
    /// Namespaces that this run has created.
    pub(crate) namespaces: BTreeSet<String>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Callers that want the error call `close` first.
        let _ = self.close();
    }
}

impl Cluster {
    /// Looks up in the API what injects sidecars, and the Job that owns the pod of this process.
    pub fn new(connected: Connected, mut settings: ClusterSettings, is_stopped: StopCheck) -> Self {
        plug::look_up(&mut settings, &connected.api);
        settings.owner = in_pod::owner(&connected);
        Self {
            connected,
            settings,
            is_stopped,
            progress: ProgressSink::default(),
            logs: PathBuf::new(),
            namespaces: BTreeSet::new(),
        }
    }

    /// Removes the namespaces of the run.
    pub fn close(&mut self) -> Result<()> {
        let namespaces = std::mem::take(&mut self.namespaces);
        let namespaces: Vec<ObjectRef> =
            namespaces.iter().map(|name| ObjectRef::new("v1", "Namespace", None, name)).collect();
        if namespaces.is_empty() {
            return Ok(());
        }
        // Also after a run was stopped. A user who does not want to wait stops a second time, which ends the
        // process.
        clean::remove(&self.connected, &namespaces, &|| false).map_err(|error| {
            error.with_hint(format!("remove it later: meshmeter cluster clean --run {}", self.settings.run))
        })
    }

    /// The deployment as plugs see it, with the settings of this run.
    pub(crate) fn context<'a>(&'a self, spec: &'a DeploymentSpec) -> PlugContext<'a> {
        PlugContext { spec, settings: &self.settings }
    }

    /// Keeps logs of components that fail in this directory.
    pub fn keep_logs_in(&mut self, directory: &Path) {
        directory.clone_into(&mut self.logs);
    }

    pub fn report_progress_to(&mut self, progress: ProgressSink) {
        self.progress = progress;
    }

    pub(crate) fn log_dir(&self, label: &str) -> PathBuf {
        self.logs.join(label)
    }

    pub(crate) fn check_not_stopped(&self, operation: &str) -> Result<()> {
        if (self.is_stopped)() {
            return Err(EnvironmentError::new(operation, "the run was stopped"));
        }
        Ok(())
    }
}

/// Version of a component by the tag of its image.
pub(crate) fn version_of_image(name: &str, image: &str) -> ComponentVersion {
    version(name, image.rsplit_once(':').map_or("unknown", |(_, tag)| tag))
}

pub(crate) fn version(name: &str, version: &str) -> ComponentVersion {
    ComponentVersion { name: name.to_owned(), version: version.to_owned(), ..ComponentVersion::default() }
}
