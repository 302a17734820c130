//! Where a trial takes place: what all that it starts has in common, apart from the pods that it starts things in.

use super::agent::AgentFactory;
use super::namespace::MeshNamespace;
use super::programs::IstioPrograms;
use crate::arrangement::LocalLab;
use crate::lab::Lab;
use experiment::environment::DeploymentSpec;
use std::path::Path;

/// Where a trial takes place.
#[derive(Debug)]
pub(super) struct Site<'a> {
    /// The lab with what the trials of a run share.
    pub place: &'a LocalLab,
    /// What is asked for.
    pub spec: &'a DeploymentSpec,
    /// Where logs go.
    pub log_dir: &'a Path,
    /// What proxies are run from.
    pub programs: &'a IstioPrograms,
    /// The trial's objects in the API.
    pub namespace: MeshNamespace,
}

impl Site<'_> {
    /// The lab.
    pub fn lab(&self) -> &Lab {
        self.place.lab()
    }

    /// What starts agents here.
    pub fn agents(&self) -> AgentFactory<'_> {
        AgentFactory { site: self }
    }
}
