//! ztunnel, the node proxy of ambient mode, on both sides of each call. Either one ztunnel serves all pods,
//! as on a node of a cluster, or each pod has its own (`istio.ztunnel`). The redirect rules are Istio's own
//! in both cases.

use crate::Result;
use crate::istio::AmbientPrograms;
use crate::istio::redirect::redirect_into_ambient;
use crate::istio::zds::NodePod;
use crate::istio::ztunnel::NAME;
use crate::pod::PodSpec;
use crate::programs::ChosenPrograms;
use crate::redirect;
use crate::rollout::Rollout;
use crate::rollout::part::Part;
use crate::rollout::station::Stations;
use crate::running::PodIdentity;
use experiment::environment::EnvironmentError;
use experiment::mesh_settings::ZtunnelPlacement;
use experiment::topology::{Call, WorkloadId};
use mesh::concurrent::try_side_by_side;
use mesh::dataplane::{MeshView as _, check_calls_from_outside, istio_ambient};
use mesh::istio::propagation::Expected;
use mesh::kubernetes::workloads::{Membership, Workload};
use mesh::names::{SYSTEM_NAMESPACE, TOKEN_AUDIENCE};
use mesh::proof::Evidence;
use mesh::trial::place::{ProxyId, Station};
use results::Mode;
use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use std::os::fd::AsFd as _;

pub(super) fn check(programs: &ChosenPrograms, mode: Mode) -> Result<()> {
    programs.ambient().map_err(|error| EnvironmentError {
        hint: error.hint.clone(),
        ..EnvironmentError::new(format!("run mode {mode}"), error)
    })?;
    programs.istio()?;
    redirect::programs().map(drop)
}

pub(super) struct Ztunnels<'a> {
    pub programs: &'a AmbientPrograms,
}

impl Ztunnels<'_> {
    fn start_shared(&self, rollout: &mut Rollout<'_>) -> Result<()> {
        let names = rollout.mesh().namespaces.name_files(0);
        let mut pod = rollout.context.lab.create_pod(&PodSpec::new(NAME).with_names(names))?;
        // ztunnel is not itself part of the mesh.
        let workload = Workload::single(NAME, SYSTEM_NAMESPACE, pod.address(), Membership::Outside);
        rollout.describe(&[&workload])?;
        self.redirect(rollout, None)?;
        let api = rollout.mesh().control_plane.api();
        let served = rollout.member_pods().map(|(_, running)| {
            let identity = running.identity.as_ref().expect("members are described to the API");
            let network = running.pod.namespace().file().as_fd();
            Ok(NodePod { uid: api.uid(&identity.object_ref())?, identity, network })
        });
        let served = served.collect::<Result<Vec<_>>>()?;
        let own = PodIdentity::for_workload(&workload).next().expect("it has one pod");
        let token = api.pod_token(&own.object_ref(), &own.account, TOKEN_AUDIENCE)?;
        let factory = rollout.mesh().proxies(&rollout.context);
        let started = factory.start_shared_ztunnel(&self.programs.ztunnel, &mut pod, &token, &served)?;
        rollout.pods.infrastructure.push(pod);
        let proxies = rollout.add_proxies(vec![started]);
        for id in rollout.members() {
            rollout.pods.workloads[id].proxies.clone_from(&proxies);
        }
        Ok(())
    }

    fn start_per_pod(&self, rollout: &mut Rollout<'_>) -> Result<()> {
        let control_plane = rollout.mesh().control_plane.discovery();
        self.redirect(rollout, Some(control_plane))?;
        let api = rollout.mesh().control_plane.api();
        let wanted = rollout.member_pods().map(|(_, running)| {
            let identity = running.identity.clone().expect("members are described to the API");
            let token = api.pod_token(&identity.object_ref(), &identity.account, TOKEN_AUDIENCE)?;
            Ok((format!("{}-ztunnel", running.name), identity, token))
        });
        let wanted = wanted.collect::<Result<Vec<_>>>()?;
        let places = rollout.places_of(&rollout.members());
        let mesh = rollout.mesh.as_ref().expect("ztunnel is configured by a control plane");
        let factory = mesh.proxies(&rollout.context);
        let program = &self.programs.ztunnel;
        let pods = rollout.pods.select(&places).into_iter().zip(&wanted);
        let started = try_side_by_side(pods, |(pod, (name, identity, token))| {
            factory.start_dedicated_ztunnel((name, program), pod, identity, token)
        })?;
        let proxies = rollout.add_proxies(started);
        rollout.record_proxies_of_members(proxies);
        Ok(())
    }

    fn redirect(&self, rollout: &mut Rollout<'_>, control_plane: Option<SocketAddrV4>) -> Result<()> {
        let places = rollout.places_of(&rollout.members());
        let (programs, log_dir) = (self.programs, rollout.context.log_dir);
        rollout.change_pods(&places, |pod| redirect_into_ambient(pod, programs, control_plane, log_dir))
    }
}

impl Part for Ztunnels<'_> {
    fn start(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        check_calls_from_outside(rollout)?;
        match rollout.context.spec.istio.ztunnel {
            ZtunnelPlacement::Shared => self.start_shared(rollout),
            ZtunnelPlacement::PerPod => self.start_per_pod(rollout),
        }
    }

    fn expected(&self, rollout: &Rollout<'_>) -> Vec<(ProxyId, Vec<Expected>)> {
        let workloads = rollout.pods.workloads.iter();
        let described = workloads.clone().enumerate().flat_map(|(id, workload)| {
            let identities = workload.pods.iter().filter_map(|running| running.identity.as_ref());
            identities.map(move |own| (id, own))
        });
        let pods =
            described.map(|(id, own)| (own.namespace.as_str(), own.pod.as_str(), rollout.is_member(id)));
        let expected = istio_ambient::expected_of_ztunnel(rollout, pods);
        let proxies: BTreeSet<ProxyId> = workloads.flat_map(|workload| &workload.proxies).copied().collect();
        proxies.into_iter().map(|proxy| (proxy, expected.clone())).collect()
    }

    fn stations(&self, rollout: &Rollout<'_>, call: Call) -> Stations {
        let (source, destination) = istio_ambient::evidence(rollout, call, false);
        let is_shared = rollout.context.spec.istio.ztunnel == ZtunnelPlacement::Shared;
        let station = |id: WorkloadId, side: &'static str, evidence: Option<Evidence>| {
            let name = match is_shared {
                true => NAME.to_owned(),
                false => format!("{}-ztunnel", rollout.workload(id).qualified_name()),
            };
            let station = rollout.station_beside(id, evidence?)?;
            Some(Station { name, side: is_shared.then_some(side), ..station })
        };
        Stations {
            at_caller: station(call.from, "client", source).into_iter().collect(),
            at_callee: station(call.to, "server", destination).into_iter().collect(),
        }
    }
}
