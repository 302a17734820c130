//! A sidecar in each pod, configured by istiod, with traffic redirected by Istio's own rules.

use crate::NoProxyUser;
use crate::Result;
use crate::exit;
use crate::istio::agent::{AgentSpec, ProxyKind};
use crate::istio::redirect::redirect_through_sidecar;
use crate::local_lab::LocalLab;
use crate::programs::ChosenPrograms;
use crate::redirect;
use crate::rollout::Rollout;
use crate::rollout::part::Part;
use crate::rollout::station::Stations;
use experiment::dataplane::Exit;
use experiment::environment::EnvironmentError;
use experiment::topology::{Call, WorkloadId};
use mesh::dataplane::{MeshView, SERVICE_PORT, check_calls_from_outside, istio_sidecar};
use mesh::envoy::hop::{Hop, Layer};
use mesh::istio::propagation::Expected;
use mesh::proof::{Evidence, Seen};
use mesh::trial::place::ProxyId;
use results::Mode;
use std::net::Ipv4Addr;

pub(super) struct Sidecars;

/// Checks that agents can run here. Sidecars, gateways and waypoints need them.
pub(super) fn check(lab: &LocalLab, programs: &ChosenPrograms, mode: Mode) -> Result<()> {
    programs.istio()?;
    redirect::programs()?;
    let Some(NoProxyUser { reason, hint }) = lab.lab.no_proxy_user() else { return Ok(()) };
    Err(EnvironmentError::new(
        format!("run mode {mode}"),
        format!("Istio's redirect rules identify a proxy by its user (1337), which is not available here: {reason}"),
    )
    .with_hint(format!("{hint}; `mesh: envoy` runs sidecars without it")))
}

impl Part for Sidecars {
    fn start(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        check_calls_from_outside(rollout)?;
        let places = rollout.places_of(&rollout.members());
        let bypassed = bypassed(rollout);
        // Rules come before the proxies, as with Istio's init container. The rules take a connection that is
        // older than they are for a new one, and istiod's responses on it would be misrouted.
        let (programs, log_dir) = (rollout.mesh().programs, rollout.context.log_dir);
        rollout.change_pods(&places, |pod| redirect_through_sidecar(pod, programs, log_dir, &bypassed))?;
        let agents = places.into_iter().zip(rollout.member_pods()).map(|(place, (id, running))| AgentSpec {
            place,
            name: format!("{}-proxy", running.name),
            kind: ProxyKind::Sidecar,
            identity: running.identity.clone().expect("members are described to the API"),
            statistics: statistics(rollout, id),
            resources: rollout.context.proxy_resources(),
        });
        let agents: Vec<AgentSpec> = agents.collect();
        let started = rollout.start_agents(&agents)?;
        rollout.record_proxies_of_members(started);
        Ok(())
    }

    fn expected(&self, rollout: &Rollout<'_>) -> Vec<(ProxyId, Vec<Expected>)> {
        let mut all = Vec::new();
        for id in rollout.members() {
            let mut expected = Vec::new();
            for call in rollout.calls_from(id) {
                expected.extend(expected_of_caller(rollout, call));
            }
            if rollout.is_called(id) {
                expected.extend(expected_of_callee(rollout, id));
            }
            let proxies = rollout.pods.workloads[id].proxies.iter();
            all.extend(proxies.map(|proxy| (*proxy, expected.clone())));
        }
        all
    }

    fn stations(&self, rollout: &Rollout<'_>, call: Call) -> Stations {
        let at_caller = match rollout.mode.exit {
            _ if !rollout.workload(call.to).is_external() => istio_sidecar::at_caller(rollout, call),
            Exit::Bypass => Evidence::new(Seen::Nothing(exit::hops::past_the_sidecar(rollout, call.from))),
            exit => outbound(rollout, call).evidence(exit::hops::speaks_mutual_tls(exit)),
        };
        let at_callee = istio_sidecar::at_callee(rollout, call);
        Stations {
            at_caller: rollout.station_beside(call.from, at_caller).into_iter().collect(),
            at_callee: rollout.station_beside(call.to, at_callee).into_iter().collect(),
        }
    }
}

/// Addresses that calls reach without passing the sidecar.
fn bypassed(rollout: &Rollout<'_>) -> Vec<Ipv4Addr> {
    if rollout.mode.exit != Exit::Bypass {
        return Vec::new();
    }
    let external = rollout.services().into_iter().filter(|id| rollout.workload(*id).is_external());
    external.flat_map(|id| rollout.endpoints_of(id)).map(|endpoint| *endpoint.ip()).collect()
}

/// Prefixes of the statistics that prove the paths of calls from and to a workload.
fn statistics(rollout: &Rollout<'_>, id: WorkloadId) -> Vec<String> {
    let outbound = rollout.calls_from(id).map(|call| outbound(rollout, call));
    let inbound = rollout.is_called(id).then(|| istio_sidecar::inbound(rollout, id));
    let past = match rollout.mode.exit {
        Exit::None => Vec::new(),
        _ => exit::hops::past_the_sidecar(rollout, id),
    };
    Hop::all_statistics(outbound.chain(inbound), past)
}

fn outbound(rollout: &Rollout<'_>, call: Call) -> Hop {
    match rollout.workload(call.to).is_external() {
        true => exit::hops::hop_of_caller(rollout, call),
        false => istio_sidecar::outbound(rollout, call.to, SERVICE_PORT),
    }
}

fn expected_of_caller(rollout: &Rollout<'_>, call: Call) -> Vec<Expected> {
    let hop = outbound(rollout, call);
    if rollout.workload(call.to).is_external() {
        return exit::hops::expected_of_caller(rollout, call, &hop);
    }
    let listens_at = match hop.layer {
        Layer::L7 { .. } => Ipv4Addr::UNSPECIFIED,
        // A connection itself names no host; only its destination address identifies the service.
        Layer::L4 => rollout.pods.workloads[call.to].service_address.unwrap_or(Ipv4Addr::UNSPECIFIED),
    };
    let endpoints = rollout.endpoints_of(call.to).into_iter();
    let endpoints = endpoints.map(|endpoint| Expected::Endpoint(hop.cluster.clone(), endpoint));
    let listener = Expected::Listener(format!("{listens_at}_{SERVICE_PORT}"));
    endpoints.chain([listener, Expected::route(&hop, &rollout.host_of(call.to))]).collect()
}

fn expected_of_callee(rollout: &Rollout<'_>, id: WorkloadId) -> Vec<Expected> {
    vec![
        Expected::Cluster(istio_sidecar::inbound(rollout, id).cluster),
        Expected::FilterChain(format!("0.0.0.0_{SERVICE_PORT}")),
    ]
}
