//! Data planes: what carries the traffic of the workloads in the mesh. One file each.
//! It starts proxies for workloads, redirects traffic through them, and names the counters that prove a call's path.

pub(crate) mod none;
pub(crate) mod sidecar;
pub(crate) mod static_envoy;
mod waypoint;
mod ztunnel;

use crate::Result;
use crate::deployment::part::{Nothing, Part};
use crate::local_lab::LocalLab;
use experiment::Mode;
use experiment::dataplane::DataPlane;

pub(crate) fn part(data_plane: DataPlane, lab: &LocalLab) -> Result<Box<dyn Part + '_>> {
    Ok(match data_plane {
        DataPlane::None => Box::new(Nothing),
        DataPlane::StaticEnvoy => Box::new(static_envoy::StaticEnvoys::new(lab.envoy()?)),
        DataPlane::Sidecar => Box::new(sidecar::Sidecars::new(lab.istio_programs()?)),
        DataPlane::Ztunnel => Box::new(ztunnel::Ztunnels::new(lab.ambient_programs()?, false)),
        DataPlane::ZtunnelWaypoint => Box::new(waypoint::Waypoints::new(lab.ambient_programs()?)),
    })
}

pub(crate) fn check(data_plane: DataPlane, lab: &LocalLab, mode: Mode) -> Result<()> {
    match data_plane {
        DataPlane::None => Ok(()),
        DataPlane::StaticEnvoy => static_envoy::check(lab),
        DataPlane::Sidecar => sidecar::check(lab, mode),
        DataPlane::Ztunnel => ztunnel::check(lab, mode),
        DataPlane::ZtunnelWaypoint => ztunnel::check(lab, mode).and_then(|()| sidecar::check(lab, mode)),
    }
}
