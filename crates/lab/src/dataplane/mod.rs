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
use crate::programs::ChosenPrograms;
use experiment::Mode;
use experiment::dataplane::DataPlane;

pub(crate) fn part(data_plane: DataPlane, programs: &ChosenPrograms) -> Result<Box<dyn Part + '_>> {
    Ok(match data_plane {
        DataPlane::None => Box::new(Nothing),
        DataPlane::StaticEnvoy => Box::new(static_envoy::StaticEnvoys::new(programs.envoy()?)),
        DataPlane::Sidecar => Box::new(sidecar::Sidecars::new(programs.istio()?)),
        DataPlane::Ztunnel => Box::new(ztunnel::Ztunnels::new(programs.ambient()?, false)),
        DataPlane::ZtunnelWaypoint => Box::new(waypoint::Waypoints::new(programs.ambient()?)),
    })
}

pub(crate) fn check(
    data_plane: DataPlane,
    lab: &LocalLab,
    programs: &ChosenPrograms,
    mode: Mode,
) -> Result<()> {
    match data_plane {
        DataPlane::None => Ok(()),
        DataPlane::StaticEnvoy => static_envoy::check(programs),
        DataPlane::Sidecar => sidecar::check(lab, programs, mode),
        DataPlane::Ztunnel => ztunnel::check(programs, mode),
        DataPlane::ZtunnelWaypoint => {
            ztunnel::check(programs, mode)?;
            sidecar::check(lab, programs, mode)?;
            programs.istio()?.check_gateway_api()?;
            programs.istio()?.check_waypoints()
        }
    }
}
