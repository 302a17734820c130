//! Deployments of `mesh: istio` as tests start from them.

use experiment::environment::DeploymentSpec;
use experiment::mesh_settings::WorkloadKeys;
use experiment::{MeshKind, MeshSettings};
use results::Mode;
use std::sync::Arc;

/// Settings that are defaults, except for keys: making RSA keys would take a sixth of a second of CPU per pod.
pub fn settings() -> MeshSettings {
    MeshSettings { workload_keys: WorkloadKeys::Ecdsa, ..MeshSettings::default() }
}

pub fn spec(mode: Mode) -> DeploymentSpec {
    DeploymentSpec { istio: Arc::new(settings()), ..DeploymentSpec::new(MeshKind::Istio, mode) }
}
