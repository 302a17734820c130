//! An Envoy with a static file in front of each target, in a pod of its own.

use super::domains::{self, Domains};
use crate::Result;
use crate::component_name::lab_name;
use crate::container::ContainerUser;
use crate::dataplane::static_envoy::callee;
use crate::deployment::part::Part;
use crate::deployment::rollout::Rollout;
use crate::deployment::station::{Destination, ProxyId, Station, Stations};
use crate::filters::proof::FilteredGateway;
use crate::private_dir::PrivateDir;
use crate::running::service::SERVICE_PORT;
use crate::running::{PodPlace, StaticEnvoyFactory};
use components::Installed;
use experiment::environment::{Estate, Scenario};
use experiment::mesh_settings::IngressTls;
use experiment::topology::{Call, DriverPlacement, WorkloadId};
use mesh::concurrent::try_side_by_side;
use mesh::envoy::bootstrap::{Callee, Position};
use mesh::envoy::domains::{DomainHost, Domains as StaticDomains};
use mesh::envoy::hop::Hop;
use mesh::filters::GatewayFilters;
use mesh::istio::objects::ingress::PORT;
use mesh::proof::Evidence;
use mesh::proof::client_tls::with_client_tls;
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::time::Duration;

const NAME: &str = "gateway";
/// Envoy takes a while to read a file of a hundred thousand routes.
const LISTENING_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) struct StaticGateway<'a> {
    envoy: &'a Installed,
    gateways: BTreeMap<WorkloadId, Gateway>,
}

struct Gateway {
    hop: Hop,
    evidence: Evidence,
    pod: usize,
    proxy: ProxyId,
    port: u16,
    /// Absent: any host, without TLS.
    domains: Option<Domains>,
}

impl<'a> StaticGateway<'a> {
    pub fn new(envoy: &'a Installed) -> Self {
        Self { envoy, gateways: BTreeMap::new() }
    }

    /// A gateway whose proxy is not started yet, and the configuration to start it with.
    fn prepare(
        &self,
        rollout: &mut Rollout<'_>,
        target: WorkloadId,
        (name, pod): (&str, usize),
    ) -> Result<(Gateway, Position)> {
        let callee = callee(rollout, target)?;
        let has_domains = rollout.context.spec.ingress.declared;
        let port = if has_domains { PORT } else { SERVICE_PORT };
        let hop = callee.hop_of_gateway(port);
        let mut evidence = hop.evidence(false);
        let mut domains = None;
        let position = if has_domains {
            let client = domains::client_files(rollout, name)?;
            let in_pod = &rollout.pods.infrastructure[pod];
            let served = Domains::new(rollout, target, (name, in_pod), Some(client))?;
            evidence = with_client_tls(
                evidence,
                rollout.context.spec.ingress_tls(),
                rollout.context.spec.ingress.scenario,
            );
            let position = self.position(rollout, name, callee, &served)?;
            domains = Some(served);
            position
        } else {
            Position::Gateway { port, callee, domains: None, filters: GatewayFilters::default() }
        };
        Ok((Gateway { hop, evidence, pod, proxy: 0, port, domains }, position))
    }

    /// The proxy's position, for which the domains' certificates are written. They are removed with the
    /// deployment.
    fn position(
        &self,
        rollout: &mut Rollout<'_>,
        name: &str,
        callee: Callee,
        served: &Domains,
    ) -> Result<Position> {
        let spec = rollout.context.spec;
        let estate: &Estate = &spec.ingress;
        let directory = lab_name(&format!("t{}-{name}-domains", rollout.context.number));
        let directory = PrivateDir(rollout.context.lab.create_private_dir(&directory, ContainerUser::Proxy)?);
        let owner = StaticEnvoyFactory { context: &rollout.context, envoy: self.envoy }.owner();
        let mut files = Vec::new();
        for (index, credentials) in domains::certificates(rollout, &served.public_name)?.iter().enumerate() {
            files.push(credentials.write(&directory.path().join(index.to_string()), owner)?);
        }
        rollout.directories.push(directory);
        let host = |domain| DomainHost {
            name: Estate::domain(domain, &served.public_name),
            credentials: files[estate.credential_of(domain)].clone(),
        };
        let domains = StaticDomains {
            hosts: (1..=estate.domains).map(host).collect(),
            paths: estate.paths,
            rewrite: served.rewrite.clone(),
            takes_certificates: spec.ingress_tls() == IngressTls::Mutual,
            is_tls12: estate.scenario == Scenario::Tls12,
        };
        let filters = rollout.filters.as_ref().map(|filters| filters.configuration.clone());
        let filters = filters.unwrap_or_default();
        Ok(Position::Gateway { port: PORT, callee, domains: Some(domains), filters })
    }
}

/// Workloads that drivers request, each with its gateway's name and the index of its namespace.
fn names(rollout: &Rollout<'_>) -> Vec<(WorkloadId, (String, usize))> {
    let mut names: Vec<(WorkloadId, (String, usize))> = Vec::new();
    for target in rollout.topology().drivers.iter().map(|driver| driver.target) {
        if names.iter().any(|(other, _)| *other == target) {
            continue;
        }
        let namespace = rollout.namespace_index(target);
        let is_first = !names.iter().any(|(_, (_, other))| *other == namespace);
        let name =
            if is_first { NAME.to_owned() } else { format!("{NAME}-{}", rollout.workload(target).name) };
        names.push((target, (rollout.qualified(namespace, &name), namespace)));
    }
    names
}

impl Part for StaticGateway<'_> {
    fn start(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        let (targets, names): (Vec<WorkloadId>, Vec<(String, usize)>) = names(rollout).into_iter().unzip();
        let pods = rollout.create_proxy_pods(&names)?;
        let mut starts = Vec::new();
        for ((target, (name, _)), pod) in targets.iter().zip(&names).zip(&pods) {
            let (gateway, position) = self.prepare(rollout, *target, (name, *pod))?;
            self.gateways.insert(*target, gateway);
            starts.push((name, position));
        }
        let factory = StaticEnvoyFactory { context: &rollout.context, envoy: self.envoy };
        let places: Vec<PodPlace> = pods.into_iter().map(PodPlace::Infrastructure).collect();
        let started = try_side_by_side(
            rollout.pods.select(&places).into_iter().zip(starts),
            |(pod, (name, position))| factory.start(pod, name, position, None),
        )?;
        for (target, proxy) in targets.iter().zip(rollout.add_proxies(started)) {
            self.gateways.get_mut(target).expect("it was prepared").proxy = proxy;
        }
        Ok(())
    }

    fn proxies_are_ready(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        self.gateways.values().try_for_each(|gateway| {
            let container = &rollout.proxies[gateway.proxy].container;
            let pod = &rollout.pods.infrastructure[gateway.pod];
            pod.wait_until_listening(container, gateway.port, LISTENING_TIMEOUT)
        })
    }

    fn stations(&self, rollout: &Rollout<'_>, call: Call) -> Stations {
        let station = |Gateway { evidence, proxy, .. }: &Gateway| {
            Station::of_one(&rollout.proxies, *proxy, evidence.clone())
        };
        let gateway = self.gateways.get(&call.to).filter(|_| !rollout.drivers_of(call).is_empty());
        Stations { at_caller: gateway.map(station).into_iter().collect(), ..Stations::default() }
    }

    fn destination(&self, rollout: &Rollout<'_>, driver: &DriverPlacement) -> Option<Destination> {
        let gateway = self.gateways.get(&driver.target)?;
        if let Some(domains) = &gateway.domains {
            return Some(domains.destination(rollout, driver));
        }
        let address = rollout.pods.infrastructure[gateway.pod].address();
        let url = rollout.url(driver, &SocketAddrV4::new(address, gateway.port).to_string(), false);
        Some(Destination { url, ..Destination::default() })
    }

    fn wait_until_serving(&self, rollout: &Rollout<'_>) -> Result<Vec<ProxyId>> {
        for domains in self.gateways.values().filter_map(|gateway| gateway.domains.as_ref()) {
            domains.wait_until_served(|| rollout.check_goes_on())?;
            domains.check_others_are_refused()?;
        }
        Ok(Vec::new())
    }

    fn filtered_gateways(&self, _rollout: &Rollout<'_>) -> Vec<FilteredGateway> {
        let filtered = |gateway: &Gateway| {
            let domains = gateway.domains.as_ref()?;
            Some(domains.filtered(gateway.proxy, &gateway.hop.connection_manager))
        };
        self.gateways.values().filter_map(filtered).collect()
    }
}
