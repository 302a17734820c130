//! An Envoy with a static file in each pod, traffic redirected by rules as Istio's: no control plane.

use crate::Result;
use crate::components::Installed;
use crate::deployment::part::Part;
use crate::deployment::rollout::Rollout;
use crate::deployment::station::{ProxyId, Station, Stations};
use crate::local_lab::LocalLab;
use crate::redirect::{self, Redirect};
use crate::running::service::SERVICE_PORT;
use crate::running::{PodPlace, StaticEnvoyFactory};
use experiment::Protocol;
use experiment::environment::EnvironmentError;
use experiment::topology::{Call, WorkloadId};
use mesh::concurrent::try_side_by_side;
use mesh::envoy::bootstrap::Position;
use std::collections::BTreeMap;
use std::time::Duration;

/// A proxy listens as soon as it is ready.
const LISTENING_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) struct StaticEnvoys<'a> {
    envoy: &'a Installed,
    /// Of each member, where its proxies stand on the path and which they are, one per pod.
    proxies: BTreeMap<WorkloadId, (Position, Vec<ProxyId>)>,
}

pub(super) fn check(lab: &LocalLab) -> Result<()> {
    lab.envoy().and_then(|_| redirect::programs()).map(drop)
}

impl<'a> StaticEnvoys<'a> {
    pub fn new(envoy: &'a Installed) -> Self {
        Self { envoy, proxies: BTreeMap::new() }
    }
}

impl Part for StaticEnvoys<'_> {
    fn start(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        let mut wanted: Vec<(PodPlace, String, (Position, Protocol))> = Vec::new();
        for id in rollout.members() {
            let position = position(rollout, id)?;
            self.proxies.insert(id, (position.0, Vec::new()));
            let pods = rollout.pods.workloads[id].pods.iter();
            let names = pods.map(|running| format!("{}-proxy", running.name));
            wanted.extend(
                rollout.places_of(&[id]).into_iter().zip(names).map(|(place, name)| (place, name, position)),
            );
        }
        let places: Vec<PodPlace> = wanted.iter().map(|(place, ..)| *place).collect();
        let factory = StaticEnvoyFactory { context: &rollout.context, envoy: self.envoy };
        let pods = rollout.pods.select(&places).into_iter().zip(&wanted);
        let started =
            try_side_by_side(pods, |(pod, (_, name, position))| factory.start(pod, name, *position))?;
        for (place, proxy) in places.into_iter().zip(rollout.add_proxies(started)) {
            if let PodPlace::Workload(id, _) = place
                && let Some((_, proxies)) = self.proxies.get_mut(&id)
            {
                proxies.push(proxy);
            }
        }
        Ok(())
    }

    /// What leaves a caller's pod and what enters a callee's goes through their proxies.
    fn proxies_are_ready(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        for (&id, (position, proxies)) in &self.proxies {
            let redirect = match position {
                Position::ClientSidecar { .. } => Redirect { outbound: true, inbound_ports: Vec::new() },
                _ => Redirect { outbound: false, inbound_ports: vec![SERVICE_PORT] },
            };
            for (running, proxy) in rollout.pods.workloads[id].pods.iter().zip(proxies) {
                let container = &rollout.proxies[*proxy].container;
                running.pod.wait_until_listening(container, position.listening_port(), LISTENING_TIMEOUT)?;
            }
            rollout.change_pods(&rollout.places_of(&[id]), |pod| pod.redirect(&redirect))?;
        }
        Ok(())
    }

    fn stations(&self, rollout: &Rollout<'_>, call: Call) -> Stations {
        let spec = rollout.context.spec;
        let station = |id: WorkloadId| {
            let (position, proxies) = self.proxies.get(&id)?;
            let evidence = position.evidence(rollout.workload(call.to).protocol, spec.proxy.mtls.is_spoken());
            Some(Station { name: rollout.proxy_name(id), proxies: proxies.clone(), side: None, evidence })
        };
        Stations {
            at_caller: station(call.from).into_iter().collect(),
            at_callee: station(call.to).into_iter().collect(),
        }
    }
}

/// Where a workload's proxies stand on the path: a file has room for one callee with one pod, or for callers.
fn position(rollout: &Rollout<'_>, id: WorkloadId) -> Result<(Position, Protocol)> {
    let endpoints =
        |call: Call| rollout.endpoints_of(call.to).into_iter().map(move |endpoint| (call, endpoint));
    let callees: Vec<_> = rollout.calls_from(id).flat_map(endpoints).collect();
    match (callees.as_slice(), rollout.is_called(id)) {
        (&[(call, service)], false) => {
            Ok((Position::ClientSidecar { service }, rollout.workload(call.to).protocol))
        }
        ([], _) => Ok((Position::ServerSidecar { port: SERVICE_PORT }, rollout.workload(id).protocol)),
        _ => Err(EnvironmentError::new(
            format!("configure the sidecars of {}", rollout.workload(id).qualified_name()),
            "a static file knows one callee with one pod",
        )
        .with_hint("`mesh: istio` has sidecars for any topology")),
    }
}
