//! Data planes: what carries the traffic of workloads in the mesh. One file each, and a line in [`kind`]. A
//! data plane starts proxies for workloads, redirects traffic through them, and names the counters that prove
//! a call's path.

pub(crate) mod none;
pub(crate) mod sidecar;
pub(crate) mod static_envoy;
mod waypoint;
mod ztunnel;

use crate::Result;
use crate::deployment::part::Part;
use crate::local_lab::LocalLab;
use crate::programs::ChosenPrograms;
use experiment::Mode;
use experiment::dataplane::DataPlane;

/// A data plane in the lab.
pub(crate) struct Kind {
    /// Succeeds if the data plane can run here; the error says what is missing.
    pub check: fn(&LocalLab, &ChosenPrograms, Mode) -> Result<()>,
    pub part: for<'a> fn(&'a ChosenPrograms) -> Result<Box<dyn Part + 'a>>,
}

pub(crate) fn kind(data_plane: DataPlane) -> Kind {
    match data_plane {
        DataPlane::None => none::KIND,
        DataPlane::StaticEnvoy => static_envoy::KIND,
        DataPlane::Sidecar => sidecar::KIND,
        DataPlane::Ztunnel => ztunnel::KIND,
        DataPlane::ZtunnelWaypoint => waypoint::KIND,
    }
}
