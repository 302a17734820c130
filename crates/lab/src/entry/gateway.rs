//! An Envoy with a static file in front of each target, in a pod of its own.

use crate::Result;
use crate::container::ContainerUser;
use crate::dataplane::static_envoy::callee;
use crate::private_dir::PrivateDir;
use crate::rollout::Rollout;
use crate::rollout::domains::{self, Domains};
use crate::rollout::part::Part;
use crate::rollout::station::{Destination, Stations};
use crate::running::{PodPlace, StaticEnvoyFactory};
use components::Installed;
use experiment::environment::{Estate, Scenario};
use experiment::mesh_settings::IngressTls;
use experiment::topology::{Call, DriverPlacement, WorkloadId};
use mesh::concurrent::try_side_by_side;
use mesh::dataplane::SERVICE_PORT;
use mesh::envoy::bootstrap::{DomainHost, Domains as StaticDomains, Position};
use mesh::filters::GatewayFilters;
use mesh::istio::objects::ingress::PORT;
use mesh::proof::client_tls::with_client_tls;
use mesh::trial::place::ProxyId;
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::time::Duration;

const NAME: &str = "gateway";
/// Envoy takes a while to read a file of a hundred thousand routes.
const LISTENING_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) struct StaticGateway<'a> {
    pub envoy: &'a Installed,
    /// Pod and proxy of the gateway in front of each target.
    pub gateways: BTreeMap<WorkloadId, (usize, ProxyId)>,
}

/// Port on which gateways listen: another one for domains.
fn port(rollout: &Rollout<'_>) -> u16 {
    if rollout.context.spec.ingress.declared { PORT } else { SERVICE_PORT }
}

impl StaticGateway<'_> {
    /// The proxy's position, and the directory of its certificates. Any host and no TLS, or the experiment's
    /// domains with their certificates.
    fn position(
        &self,
        rollout: &mut Rollout<'_>,
        target: WorkloadId,
        name: &str,
        pod: usize,
    ) -> Result<(Position, Option<PathBuf>)> {
        let (callee, port) = (callee(rollout, target)?, port(rollout));
        let spec = rollout.context.spec;
        if !spec.ingress.declared {
            let filters = GatewayFilters::default();
            return Ok((Position::Gateway { port, callee, domains: None, filters }, None));
        }
        let client = domains::client_files(rollout, name)?;
        let hop = callee.hop_of_gateway(port);
        let served = Domains::new(rollout, target, (name.to_owned(), pod), &hop, Some(client))?;
        let estate: &Estate = &spec.ingress;
        let directory = format!("t{}-{name}-domains", rollout.context.number);
        let directory = PrivateDir::create(rollout.context.lab, &directory, ContainerUser::Proxy)?;
        let owner = StaticEnvoyFactory { context: &rollout.context, envoy: self.envoy }.owner();
        let mut files = Vec::new();
        for (index, credentials) in domains::certificates(rollout, &served.public_name)?.iter().enumerate() {
            files.push(credentials.write(&directory.path().join(index.to_string()), owner)?);
        }
        let certificates = directory.path().to_path_buf();
        rollout.directories.push(directory);
        let host = |domain| DomainHost {
            name: served.host(domain),
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
        rollout.domains.insert(target, served);
        let filters = filters.unwrap_or_default();
        Ok((Position::Gateway { port, callee, domains: Some(domains), filters }, Some(certificates)))
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
        let mut positions = Vec::new();
        for ((target, (name, _)), pod) in targets.iter().zip(&names).zip(&pods) {
            positions.push((name, self.position(rollout, *target, name, *pod)?));
        }
        let factory = StaticEnvoyFactory { context: &rollout.context, envoy: self.envoy };
        let places: Vec<PodPlace> = pods.iter().copied().map(PodPlace::Infrastructure).collect();
        let selected = rollout.pods.select(&places).into_iter().zip(positions);
        let started = try_side_by_side(selected, |(pod, (name, (position, certificates)))| {
            factory.start(pod, name, position, None, certificates.as_deref())
        })?;
        let gateways = pods.into_iter().zip(rollout.add_proxies(started));
        self.gateways = targets.into_iter().zip(gateways).collect();
        Ok(())
    }

    fn proxies_are_ready(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        self.gateways.values().try_for_each(|(pod, proxy)| {
            let (pod, proxy) = (&rollout.pods.infrastructure[*pod], &rollout.proxies[*proxy]);
            pod.wait_until_listening(&proxy.container, port(rollout), LISTENING_TIMEOUT)
        })
    }

    fn stations(&self, rollout: &Rollout<'_>, call: Call) -> Stations {
        let spec = rollout.context.spec;
        let station = |(_, proxy): &(usize, ProxyId)| {
            let evidence = callee(rollout, call.to).ok()?.hop_of_gateway(port(rollout)).evidence(false);
            let evidence = match spec.ingress.declared {
                true => with_client_tls(evidence, spec.ingress_tls(), spec.ingress.scenario),
                false => evidence,
            };
            Some(rollout.station_of(*proxy, evidence))
        };
        let gateway = self.gateways.get(&call.to).filter(|_| !rollout.drivers_of(call).is_empty());
        Stations { at_caller: gateway.and_then(station).into_iter().collect(), ..Stations::default() }
    }

    fn destination(&self, rollout: &Rollout<'_>, driver: &DriverPlacement) -> Option<Destination> {
        let (pod, _) = self.gateways.get(&driver.target)?;
        let address = rollout.pods.infrastructure[*pod].address();
        let url = rollout.url(driver, &SocketAddrV4::new(address, port(rollout)).to_string(), false);
        Some(Destination { url, ..Destination::default() })
    }
}
