//! An Envoy with a static file in each pod, with traffic redirected by rules like Istio's; no control plane.

use crate::Result;
use crate::certificates::spiffe_identity;
use crate::redirect::Redirect;
use crate::rollout::Rollout;
use crate::rollout::part::Part;
use crate::rollout::station::Stations;
use crate::running::StaticEnvoyFactory;
use components::Installed;
use experiment::environment::EnvironmentError;
use experiment::topology::{Call, WorkloadId};
use mesh::concurrent::try_side_by_side;
use mesh::dataplane::{MeshView, SERVICE_PORT};
use mesh::envoy::bootstrap::{Callee, Inbound, Position};
use mesh::envoy::hop::Hop;
use mesh::names::service_host;
use std::net::SocketAddrV4;
use std::time::Duration;

/// Time until a started proxy listens, which it does as soon as it is ready.
const LISTENING_TIMEOUT: Duration = Duration::from_secs(20);

/// Namespace, in names and identities, of workloads that have none.
const NAMESPACE: &str = "default";

pub(super) struct StaticEnvoys<'a> {
    pub envoy: &'a Installed,
}

impl Part for StaticEnvoys<'_> {
    fn start(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        let wanted = rollout.member_pods().map(|(id, running)| {
            Ok((format!("{}-proxy", running.name), position(rollout, id)?, identity(rollout, id)))
        });
        let wanted = wanted.collect::<Result<Vec<_>>>()?;
        let places = rollout.places_of(&rollout.members());
        let factory = StaticEnvoyFactory { context: &rollout.context, envoy: self.envoy };
        let pods = rollout.pods.select(&places).into_iter().zip(wanted);
        let started = try_side_by_side(pods, |(pod, (name, position, identity))| {
            factory.start(pod, &name, position, Some(&identity), None)
        })?;
        let proxies = rollout.add_proxies(started);
        rollout.record_proxies_of_members(proxies);
        Ok(())
    }

    /// Redirects what leaves a caller's pod and what enters a callee's through their proxies.
    fn proxies_are_ready(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        for id in rollout.members() {
            let position = position(rollout, id)?;
            let Position::Sidecar { inbound, callees } = &position else { continue };
            let external = rollout.calls_from(id).filter(|call| rollout.workload(call.to).is_external());
            let redirect = Redirect {
                outbound: !callees.is_empty(),
                excluded: external
                    .flat_map(|call| rollout.endpoints_of(call.to))
                    .map(|endpoint| *endpoint.ip())
                    .collect(),
                inbound_ports: inbound.iter().map(|inbound| inbound.port).collect(),
            };
            let workload = &rollout.pods.workloads[id];
            for (running, proxy) in workload.pods.iter().zip(&workload.proxies) {
                let container = &rollout.proxies[*proxy].container;
                for port in position.listening_ports() {
                    running.pod.wait_until_listening(container, port, LISTENING_TIMEOUT)?;
                }
            }
            rollout.change_pods(&rollout.places_of(&[id]), |pod| pod.redirect(&redirect))?;
        }
        Ok(())
    }

    fn stations(&self, rollout: &Rollout<'_>, call: Call) -> Stations {
        let mtls = rollout.context.spec.proxy.mtls.is_spoken();
        let station = |id, hop: Hop| rollout.station_beside(id, hop.evidence(mtls));
        // Calls to external services are not redirected.
        let Ok(callee) = callee(rollout, call.to) else { return Stations::default() };
        let inbound = Hop::inbound(rollout.layer(call.to), SERVICE_PORT);
        Stations {
            at_caller: station(call.from, callee.hop()).into_iter().collect(),
            at_callee: station(call.to, inbound).into_iter().collect(),
        }
    }
}

fn position(rollout: &Rollout<'_>, id: WorkloadId) -> Result<Position> {
    let callees = rollout.calls_from(id).filter(|call| !rollout.workload(call.to).is_external());
    let callees: Vec<Callee> = callees.map(|call| callee(rollout, call.to)).collect::<Result<_>>()?;
    let callers = rollout.calls_to(id).filter(|call| rollout.is_member(call.from));
    let inbound = Inbound {
        host: host(rollout, id),
        port: SERVICE_PORT,
        callers: callers.map(|call| identity(rollout, call.from)).collect(),
    };
    let takes_requests = rollout.workload(id).serves();
    Ok(Position::Sidecar { inbound: takes_requests.then_some(inbound), callees })
}

/// A service as the proxies in front of it know it.
pub(crate) fn callee(rollout: &Rollout<'_>, id: WorkloadId) -> Result<Callee> {
    let workload = rollout.workload(id);
    let endpoints = rollout.endpoints_of(id);
    if workload.is_external() || !workload.protocol.is_http() {
        let reason = format!("{} does not speak plaintext HTTP", workload.qualified_name());
        return Err(EnvironmentError::new("configure Envoys with static files", reason)
            .with_hint("`mesh: istio` carries any protocol"));
    }
    Ok(Callee {
        host: host(rollout, id),
        protocol: workload.protocol,
        address: SocketAddrV4::new(rollout.service_address(id), SERVICE_PORT),
        endpoints,
        identity: rollout.is_member(id).then(|| identity(rollout, id)),
    })
}

fn names<'a>(rollout: &Rollout<'a>, id: WorkloadId) -> (&'a str, &'a str) {
    let workload = rollout.workload(id);
    let namespace = if workload.namespace.is_empty() { NAMESPACE } else { &workload.namespace };
    (namespace, &workload.name)
}

fn host(rollout: &Rollout<'_>, id: WorkloadId) -> String {
    let (namespace, name) = names(rollout, id);
    service_host(name, namespace)
}

fn identity(rollout: &Rollout<'_>, id: WorkloadId) -> String {
    let (namespace, name) = names(rollout, id);
    spiffe_identity(namespace, name)
}
