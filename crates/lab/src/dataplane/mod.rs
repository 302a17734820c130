//! Data planes: what carries the traffic of workloads in the mesh. One file each, and a line in [`part`] and
//! [`check`]. A data plane starts proxies for workloads, redirects traffic through them, and names the
//! counters that prove a call's path.

pub(crate) mod none;
pub(crate) mod sidecar;
pub(crate) mod static_envoy;
mod waypoint;
mod ztunnel;

use crate::local_lab::LocalLab;
use crate::programs::ChosenPrograms;
use crate::rollout::Rollout;
use crate::rollout::part::{Nothing, Part};
use crate::running::RunningPod;
use crate::{Result, redirect};
use experiment::dataplane::DataPlane;
use experiment::environment::EnvironmentError;
use experiment::topology::WorkloadId;
use mesh::kubernetes::workloads::Membership;
use mesh::trial::place::ProxyId;
use results::Mode;

pub(crate) fn part(data_plane: DataPlane, programs: &ChosenPrograms) -> Result<Box<dyn Part + '_>> {
    let ztunnels = || programs.ambient().map(|programs| ztunnel::Ztunnels { programs });
    Ok(match data_plane {
        DataPlane::None => Box::new(Nothing),
        DataPlane::StaticEnvoy => Box::new(static_envoy::StaticEnvoys { envoy: programs.envoy()? }),
        DataPlane::Sidecar => Box::new(sidecar::Sidecars),
        DataPlane::Ztunnel => Box::new(ztunnels()?),
        DataPlane::ZtunnelWaypoint => {
            Box::new(waypoint::Waypoints { ztunnels: ztunnels()?, waypoints: Vec::new() })
        }
        DataPlane::Linkerd | DataPlane::Cilium => return Err(on_clusters_only("start the mesh".to_owned())),
    })
}

/// How workloads in the mesh are described to the API of a control plane.
pub(crate) fn membership(data_plane: DataPlane) -> Membership {
    match data_plane {
        DataPlane::None | DataPlane::StaticEnvoy | DataPlane::Linkerd | DataPlane::Cilium => {
            Membership::Outside
        }
        DataPlane::Sidecar => Membership::Sidecar,
        DataPlane::Ztunnel | DataPlane::ZtunnelWaypoint => Membership::Ambient,
    }
}

/// Succeeds if the data plane can run here; the error says what is missing.
pub(crate) fn check(
    data_plane: DataPlane,
    lab: &LocalLab,
    programs: &ChosenPrograms,
    mode: Mode,
) -> Result<()> {
    match data_plane {
        DataPlane::None => Ok(()),
        DataPlane::StaticEnvoy => programs.envoy().and_then(|_| redirect::programs()).map(drop),
        DataPlane::Sidecar => sidecar::check(lab, programs, mode),
        DataPlane::Ztunnel => ztunnel::check(programs, mode),
        DataPlane::ZtunnelWaypoint => {
            ztunnel::check(programs, mode)?;
            sidecar::check(lab, programs, mode)?;
            programs.istio()?.check_gateway_api()?;
            programs.istio()?.check_waypoints()
        }
        DataPlane::Linkerd | DataPlane::Cilium => Err(on_clusters_only(format!("run mode {mode}"))),
    }
}

/// The error of an operation with a mesh that labs do not have.
pub(crate) fn on_clusters_only(operation: String) -> EnvironmentError {
    EnvironmentError::new(operation, "labs have no such mesh")
        .with_hint("a cluster that has it can run it: `--on cluster`")
}

impl Rollout<'_> {
    /// Pods of the workloads in the mesh, in the order of their places.
    fn member_pods(&self) -> impl Iterator<Item = (WorkloadId, &RunningPod)> {
        let pods = |id: WorkloadId| self.pods.workloads[id].pods.iter().map(move |running| (id, running));
        self.members().into_iter().flat_map(pods)
    }

    /// Records proxies in pods of the mesh: one per pod, in the order of [`Self::member_pods`].
    fn record_proxies_of_members(&mut self, proxies: Vec<ProxyId>) {
        let members: Vec<WorkloadId> = self.member_pods().map(|(id, _)| id).collect();
        for (id, proxy) in members.into_iter().zip(proxies) {
            self.pods.workloads[id].proxies.push(proxy);
        }
    }
}
