//! ztunnel, the node proxy of ambient mode, on both sides of each call. Either one ztunnel serves all pods,
//! as on a node of a cluster, or each pod has its own (`istio.ztunnel`). The redirect rules are Istio's own
//! in both cases.

use super::Kind;
use crate::Result;
use crate::deployment::part::Part;
use crate::deployment::rollout::Rollout;
use crate::deployment::station::{ProxyId, Station, Stations};
use crate::istio::AmbientPrograms;
use crate::istio::redirect::redirect_into_ambient;
use crate::istio::ztunnel::{NAME, ServedPod, ZtunnelFactory};
use crate::local_lab::LocalLab;
use crate::pod::PodSpec;
use crate::programs::ChosenPrograms;
use crate::redirect;
use crate::running::{PodIdentity, PodPlace, Proxy};
use experiment::Mode;
use experiment::environment::EnvironmentError;
use experiment::mesh_settings::ZtunnelPlacement;
use experiment::topology::{Call, WorkloadId};
use mesh::concurrent::try_side_by_side;
use mesh::istio::objects::{extra, policy};
use mesh::istio::propagation::Expected;
use mesh::kubernetes::workloads::{Membership, Workload};
use mesh::names::{SYSTEM_NAMESPACE, TOKEN_AUDIENCE};
use mesh::proof::Evidence;
use mesh::ztunnel::evidence::AmbientCall;
use std::collections::BTreeMap;
use std::net::SocketAddrV4;

pub(super) const KIND: Kind =
    Kind { check, part: |programs| Ok(Box::new(Ztunnels::new(programs.ambient()?, false))) };

pub(super) fn check(_lab: &LocalLab, programs: &ChosenPrograms, mode: Mode) -> Result<()> {
    let missing = |error: EnvironmentError| {
        let hint = error.hint.clone();
        let missing = EnvironmentError::new(format!("run mode {mode}"), error);
        hint.into_iter().fold(missing, EnvironmentError::with_hint)
    };
    programs.ambient().map_err(missing)?;
    programs.istio()?;
    redirect::programs().map(drop)
}

pub(super) struct Ztunnels<'a> {
    programs: &'a AmbientPrograms,
    through_waypoint: bool,
    /// Proxies of each member, one per pod. A shared ztunnel is repeated for every pod.
    proxies: BTreeMap<WorkloadId, Vec<ProxyId>>,
}

impl<'a> Ztunnels<'a> {
    pub fn new(programs: &'a AmbientPrograms, through_waypoint: bool) -> Self {
        Self { programs, through_waypoint, proxies: BTreeMap::new() }
    }

    fn start_shared(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        let names = rollout.mesh().namespaces.name_files(0);
        let mut pod = rollout.context.lab.create_pod(&PodSpec::new(NAME).with_names(names))?;
        // ztunnel is not itself part of the mesh.
        let workload = Workload::single(NAME, SYSTEM_NAMESPACE, pod.address(), Membership::Outside);
        rollout.describe(&[&workload])?;
        self.redirect(rollout, None)?;
        let members = rollout.members();
        let control_plane = &rollout.mesh().control_plane;
        let api = control_plane.api();
        let mut served = Vec::new();
        for running in members.iter().flat_map(|id| &rollout.pods.workloads[*id].pods) {
            let identity = running.identity.as_ref().expect("members are described to the API");
            served.push(ServedPod { pod: &running.pod, identity, uid: api.uid(&identity.object_ref())? });
        }
        let own = PodIdentity::for_workload(&workload).next().expect("it has one pod");
        let token = api.pod_token(&own.object_ref(), &own.account, TOKEN_AUDIENCE)?;
        let started = self.factory(rollout).start_shared(&mut pod, &token, served)?;
        rollout.pods.infrastructure.push(pod);
        let proxy = rollout.add_proxies(vec![started])[0];
        for id in members {
            self.proxies.insert(id, vec![proxy]);
        }
        Ok(())
    }

    fn start_per_pod(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        let control_plane = rollout.mesh().control_plane.discovery();
        self.redirect(rollout, Some(control_plane))?;
        let mesh = rollout.mesh.as_ref().expect("ztunnel is configured by a control plane");
        let api = mesh.control_plane.api();
        let members = rollout.members();
        let mut wanted = Vec::new();
        for running in members.iter().flat_map(|id| &rollout.pods.workloads[*id].pods) {
            let identity = running.identity.clone().expect("members are described to the API");
            let token = api.pod_token(&identity.object_ref(), &identity.account, TOKEN_AUDIENCE)?;
            wanted.push((format!("{}-ztunnel", running.name), identity, token));
        }
        let places = rollout.places_of(&members);
        let factory = ZtunnelFactory {
            context: &rollout.context,
            program: &self.programs.ztunnel.path,
            root_certificate: mesh.control_plane.root_certificate(),
        };
        let pods = rollout.pods.select(&places).into_iter().zip(&wanted);
        let started: Vec<Proxy> = try_side_by_side(pods, |(pod, (name, identity, token))| {
            factory.start_dedicated(name, pod, identity, token)
        })?;
        for (place, proxy) in places.into_iter().zip(rollout.add_proxies(started)) {
            if let PodPlace::Workload(id, _) = place {
                self.proxies.entry(id).or_default().push(proxy);
            }
        }
        Ok(())
    }

    fn redirect(&self, rollout: &mut Rollout<'_>, control_plane: Option<SocketAddrV4>) -> Result<()> {
        let places = rollout.places_of(&rollout.members());
        let (programs, log_dir) = (self.programs, rollout.context.log_dir);
        rollout.change_pods(&places, |pod| redirect_into_ambient(pod, programs, control_plane, log_dir))
    }

    fn factory<'b>(&'b self, rollout: &'b Rollout<'_>) -> ZtunnelFactory<'b> {
        ZtunnelFactory {
            context: &rollout.context,
            program: &self.programs.ztunnel.path,
            root_certificate: rollout.mesh().control_plane.root_certificate(),
        }
    }
}

impl Part for Ztunnels<'_> {
    fn membership(&self) -> Membership {
        Membership::Ambient
    }

    fn start(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        rollout.refuse_calls_from_outside(
            "paths from outside an ambient mesh are not proven; let it be in the mesh",
        )?;
        match rollout.context.spec.istio.ztunnel {
            ZtunnelPlacement::Shared => self.start_shared(rollout),
            ZtunnelPlacement::PerPod => self.start_per_pod(rollout),
        }
    }

    fn expected(&self, rollout: &Rollout<'_>) -> Vec<(ProxyId, Vec<Expected>)> {
        let expected = expected(rollout, self.through_waypoint);
        let mut proxies: Vec<ProxyId> = self.proxies.values().flatten().copied().collect();
        proxies.dedup();
        proxies.into_iter().map(|proxy| (proxy, expected.clone())).collect()
    }

    fn stations(&self, rollout: &Rollout<'_>, call: Call) -> Stations {
        let end = |id| (rollout.workload(id).name.as_str(), rollout.mesh_namespace(id));
        let ambient = AmbientCall {
            protocol: rollout.workload(call.to).protocol,
            from: end(call.from),
            to: end(call.to),
            through_waypoint: self.through_waypoint,
            is_shared_with_others: false,
        };
        let (source, destination) = ambient.evidence();
        let is_shared = rollout.context.spec.istio.ztunnel == ZtunnelPlacement::Shared;
        let station = |id: WorkloadId, side: &'static str, evidence: Evidence| {
            let proxies = self.proxies.get(&id)?.clone();
            let name = match is_shared {
                true => NAME.to_owned(),
                false => format!("{}-ztunnel", rollout.workload(id).qualified_name()),
            };
            Some(Station { name, proxies, side: is_shared.then_some(side), evidence })
        };
        Stations {
            at_caller: station(call.from, "client", source).into_iter().collect(),
            at_callee: station(call.to, "server", destination).into_iter().collect(),
        }
    }
}

/// Configuration that every ztunnel must have received.
fn expected(rollout: &Rollout<'_>, behind_waypoint: bool) -> Vec<Expected> {
    let spec = rollout.context.spec;
    let described = rollout.members().into_iter().flat_map(|id| &rollout.pods.workloads[id].pods);
    let mut expected: Vec<Expected> = described
        .filter_map(|running| running.identity.as_ref())
        .map(|identity| Expected::AmbientWorkload {
            namespace: identity.namespace.clone(),
            name: identity.pod.clone(),
        })
        .collect();
    let services = rollout.services().into_iter().filter(|id| rollout.is_member(*id));
    expected
        .extend(services.map(|id| Expected::AmbientService { host: rollout.host_of(id), behind_waypoint }));
    if !behind_waypoint {
        // Rules that a waypoint checks do not go to ztunnel.
        for id in rollout.services().into_iter().filter(|id| rollout.is_member(*id)) {
            let (rules, service) = (spec.istio.authorization.identities, &rollout.workload(id).name);
            let names = policy::policy_names(policy::IDENTITY_RULES, service, rules);
            let namespace = rollout.mesh_namespace(id);
            let policy = |name| Expected::AmbientPolicy { namespace: namespace.to_owned(), name };
            expected.extend(names.into_iter().map(policy));
        }
    }
    for namespace in rollout.mesh().namespaces.names() {
        let own = extra::ztunnel_policies(spec.istio.extra.as_ref(), namespace);
        expected.extend(own.into_iter().map(|(namespace, name)| Expected::AmbientPolicy { namespace, name }));
    }
    expected
}
