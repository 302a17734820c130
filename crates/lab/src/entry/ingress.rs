//! `ingress`: a client outside the mesh, a gateway in the service's namespace, and the service with its
//! sidecar.
//!
//! The client is a pod without a proxy. It speaks TLS with the gateway (SIMPLE or MUTUAL, certificates by the
//! run's authority) or plain HTTP. It connects to the gateway's pod by the service's public name, as a load
//! balancer in front of it would. The gateway's certificate is a Secret that istiod sends it.

use crate::Result;
use crate::certificates::Credentials;
use crate::istio::agent::{AgentSpec, ProxyKind};
use crate::rollout::Rollout;
use crate::rollout::domains::{self, Domains, client_arguments, public_name};
use crate::rollout::gateway::GatewayPod;
use crate::rollout::part::Part;
use crate::rollout::station::{Destination, Stations};
use experiment::environment::EnvironmentError;
use experiment::mesh_settings::IngressTls;
use experiment::topology::{Call, DriverPlacement, WorkloadId};
use mesh::dataplane::{istio_sidecar, with_subject};
use mesh::envoy::domains::listener_statistics;
use mesh::envoy::hop::Hop;
use mesh::istio::objects::ingress::{self, Credential, PORT};
use mesh::istio::objects::subject::Subject;
use mesh::istio::objects::{self, estate};
use mesh::istio::propagation::Expected;
use mesh::kubernetes::workloads::{Membership, ServicePort};
use mesh::proof::client_tls::with_client_tls;
use mesh::trial::place::ProxyId;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

const GATEWAY_PROXY: &str = "ingress-gateway";

#[derive(Debug, Default)]
pub(super) struct Ingress {
    /// By the workload behind them.
    gateways: BTreeMap<WorkloadId, Gateway>,
}

#[derive(Debug)]
struct Gateway {
    pod: GatewayPod,
    proxy: ProxyId,
    /// Directory with the certificates and keys of clients; absent without TLS.
    client_files: Option<PathBuf>,
}

impl Part for Ingress {
    fn start(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        let (targets, tls) = (targets(rollout)?, rollout.context.spec.ingress_tls());
        // Before a gateway requests them: istiod caches for a minute that its account may not read secrets.
        let clients = give_certificates(rollout, &targets)?;
        let namespaces = targets.iter().map(|target| {
            let port = ingress::port_name(rollout.workload(*target).protocol, tls);
            (rollout.namespace_index(*target), vec![ServicePort { name: port, port: PORT }])
        });
        // Gateways are outside the mesh's mTLS rules: their Gateway objects define what they speak with
        // clients.
        let namespaces = namespaces.collect();
        let pods = GatewayPod::create_in(rollout, ingress::NAME, Membership::Outside, namespaces)?;
        let agents = targets.iter().zip(&pods).map(|(target, pod)| AgentSpec {
            resources: rollout.context.gateway_resources(),
            ..pod.agent(
                rollout,
                GATEWAY_PROXY,
                ProxyKind::Router,
                statistics(rollout, &hop(rollout, *target)),
            )
        });
        let agents: Vec<AgentSpec> = agents.collect();
        let proxies = rollout.start_agents(&agents)?;
        for (((target, pod), proxy), client) in targets.into_iter().zip(pods).zip(proxies).zip(clients) {
            let client_files = client.as_ref().map(|(_, files)| files.clone());
            if rollout.context.spec.ingress.declared {
                let gateway = (rollout.proxies[proxy].name.clone(), pod.pod);
                let served = Domains::new(rollout, target, gateway, &hop(rollout, target), client)?;
                rollout.domains.insert(target, served);
            } else {
                // Drivers of several domains connect to the gateway by address.
                let drivers = rollout.topology().drivers.iter().filter(|driver| driver.target == target);
                let callers: BTreeSet<usize> =
                    drivers.map(|driver| rollout.namespace_index(driver.at)).collect();
                let (namespaces, name) = (&rollout.mesh().namespaces, public_name(rollout, target));
                callers.into_iter().try_for_each(|at| namespaces.add_name(at, pod.address(), &[&name]))?;
            }
            self.gateways.insert(target, Gateway { pod, proxy, client_files });
        }
        Ok(())
    }

    fn objects(&self, rollout: &Rollout<'_>) -> Vec<Value> {
        let objects = |(target, gateway): (&WorkloadId, &Gateway)| {
            let route = |subject: &Subject<'_>| match rollout.domains.get(target) {
                Some(domains) => domains.estate(rollout, subject).objects(),
                None => ingress::objects(rollout.context.spec, subject, &public_name(rollout, *target)),
            };
            let filters = rollout.filters.iter().flat_map(|filters| {
                objects::filters::objects(&filters.configuration, rollout.mesh_namespace(*target))
            });
            [gateway.pod.service(), with_subject(rollout, *target, route), filters.collect()].concat()
        };
        self.gateways.iter().flat_map(objects).collect()
    }

    fn expected(&self, rollout: &Rollout<'_>) -> Vec<(ProxyId, Vec<Expected>)> {
        self.gateways.iter().map(|(target, gateway)| (gateway.proxy, expected(rollout, *target))).collect()
    }

    fn stations(&self, rollout: &Rollout<'_>, call: Call) -> Stations {
        let spec = rollout.context.spec;
        let station = |gateway: &Gateway| {
            let (hop, mtls) = (hop(rollout, call.to), spec.proxy.mtls.is_spoken());
            let evidence = with_client_tls(hop.evidence(mtls), spec.ingress_tls(), spec.ingress.scenario);
            rollout.station_of(gateway.proxy, evidence)
        };
        let gateway = self.gateways.get(&call.to).filter(|_| !rollout.drivers_of(call).is_empty());
        Stations { at_caller: gateway.map(station).into_iter().collect(), ..Stations::default() }
    }

    fn destination(&self, rollout: &Rollout<'_>, driver: &DriverPlacement) -> Option<Destination> {
        let tls = rollout.context.spec.ingress_tls();
        let files = self.gateways.get(&driver.target)?.client_files.iter();
        let authority = format!("{}:{PORT}", public_name(rollout, driver.target));
        Some(Destination {
            url: rollout.url(driver, &authority, tls != IngressTls::Off),
            arguments: files.flat_map(|files| client_arguments(files, tls)).collect(),
        })
    }
}

/// The workloads that drivers load, each in a namespace of its own.
fn targets(rollout: &Rollout<'_>) -> Result<BTreeSet<WorkloadId>> {
    let targets: BTreeSet<WorkloadId> =
        rollout.topology().drivers.iter().map(|driver| driver.target).collect();
    let namespaces: BTreeSet<usize> = targets.iter().map(|target| rollout.namespace_index(*target)).collect();
    if namespaces.len() < targets.len() {
        let names: Vec<String> = targets.iter().map(|id| rollout.workload(*id).qualified_name()).collect();
        let names = names.join(", ");
        let reason =
            format!("the public name of a namespace leads to one workload, and drivers request {names}");
        return Err(EnvironmentError::new("start the ingress gateway", reason));
    }
    Ok(targets)
}

/// Writes the gateways' certificates to the API, and the clients' certificates and CA to files. Does nothing
/// without TLS.
fn give_certificates(
    rollout: &mut Rollout<'_>,
    targets: &BTreeSet<WorkloadId>,
) -> Result<Vec<Option<(Credentials, PathBuf)>>> {
    let tls = rollout.context.spec.ingress_tls();
    if tls == IngressTls::Off {
        return Ok(targets.iter().map(|_| None).collect());
    }
    let (mut objects, mut clients) = (Vec::new(), Vec::new());
    for target in targets {
        let namespace = rollout.mesh_namespace(*target).to_owned();
        let issued = domains::certificates(rollout, &public_name(rollout, *target))?;
        let names = (0..issued.len()).map(|number| match rollout.context.spec.ingress.declared {
            true => estate::credential_name(number),
            false => ingress::CREDENTIAL.to_owned(),
        });
        let names: Vec<String> = names.collect();
        let credentials = issued.iter().zip(&names).map(|(issued, name)| Credential {
            name,
            certificate: &issued.certificate_pem,
            key: &issued.key_pem,
            client_authority: &issued.authority_pem,
        });
        objects.extend(ingress::credentials(tls, &namespace, &credentials.collect::<Vec<_>>()));
        clients.push(Some(domains::client_files(rollout, &namespace)?));
    }
    rollout.mesh_mut().namespaces.objects.apply(&objects)?;
    Ok(clients)
}

/// How the gateway forwards the load. It speaks mutual TLS with the sidecar behind it.
fn hop(rollout: &Rollout<'_>, target: WorkloadId) -> Hop {
    istio_sidecar::outbound(rollout, target, PORT)
}

/// Prefixes of the statistics that prove its path, the client's TLS included. Each domain's routes add seven
/// statistics (`http.outbound_0.0.0.0_8443.rds.…`), which are left out.
fn statistics(rollout: &Rollout<'_>, hop: &Hop) -> Vec<String> {
    let mut prefixes = hop.statistics();
    let filters =
        rollout.filters.iter().flat_map(|filters| filters.configuration.counters(&hop.connection_manager));
    prefixes.extend(filters);
    prefixes.push(listener_statistics(PORT));
    if rollout.context.spec.ingress.declared {
        let http = format!("http.{}", hop.connection_manager);
        prefixes.retain(|prefix| *prefix != http);
        let others = ('a'..='z').filter(|first| *first != 'r').map(String::from);
        let others = others.chain(["rq", "rs"].map(str::to_owned));
        // Recent versions of Istio end the name with a semicolon (`istio::agent`).
        prefixes.extend(others.flat_map(|start| [".", ";."].map(|end| format!("{http}{end}{start}"))));
    }
    prefixes
}

/// Expected configuration of a gateway. Routes of several domains are not read from the config dump, which is
/// about a hundred megabytes for 100 000 of them. Instead, each is requested once the gateway has
/// acknowledged its configuration ([`Domains::wait_until_served`]).
fn expected(rollout: &Rollout<'_>, target: WorkloadId) -> Vec<Expected> {
    let hop = hop(rollout, target);
    let endpoints = rollout.endpoints_of(target).into_iter();
    let endpoints = endpoints.map(|endpoint| Expected::Endpoint(hop.cluster.clone(), endpoint));
    let has_one_name = !rollout.domains.contains_key(&target);
    let route = has_one_name.then(|| Expected::route(&hop, &public_name(rollout, target)));
    let services = rollout.filters.iter().flat_map(|filters| filters.configuration.endpoints());
    let services = services.map(|(service, endpoint)| Expected::Endpoint(service.cluster(), endpoint));
    let listener = Expected::Listener(format!("0.0.0.0_{PORT}"));
    endpoints.chain(services).chain([listener]).chain(route).collect()
}
