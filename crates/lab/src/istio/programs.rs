//! The programs and files that a mesh of Istio's runs from.

use crate::components::{Component, Installed, IstioFiles, Overrides, find, istio_files};
use experiment::environment::EnvironmentError;

/// What `mesh: istio` runs.
#[derive(Clone, Debug)]
pub struct IstioPrograms {
    /// What the API keeps its objects in.
    pub etcd: Installed,
    /// The Kubernetes API.
    pub api_server: Installed,
    /// Istio's control plane.
    pub istiod: Installed,
    /// What runs Envoy in a pod.
    pub pilot_agent: Installed,
    /// Envoy itself.
    pub envoy: Installed,
    /// The kinds of objects that Istio and the Gateway API add to the API, and the template of Envoy's bootstrap file.
    pub files: IstioFiles,
}

impl IstioPrograms {
    /// Finds all of them.
    ///
    /// # Errors
    /// Where one is missing, with how to get it.
    pub fn find(envoy: &Installed, overrides: &Overrides) -> Result<Self, EnvironmentError> {
        Ok(Self {
            etcd: find(Component::Etcd, overrides)?,
            api_server: find(Component::ApiServer, overrides)?,
            istiod: find(Component::Istiod, overrides)?,
            pilot_agent: find(Component::PilotAgent, overrides)?,
            envoy: envoy.clone(),
            files: istio_files()?,
        })
    }

    /// Those that a mesh without a control plane does not have.
    pub fn control_plane_and_agent(&self) -> [&Installed; 4] {
        [&self.istiod, &self.pilot_agent, &self.api_server, &self.etcd]
    }
}
