//! `ingress`: a client outside the mesh, a gateway in the service's namespace, and the service with its
//! sidecar.
//!
//! The client is a pod without a proxy. It speaks TLS with the gateway (SIMPLE or MUTUAL, certificates by the
//! run's authority) or plain HTTP. It connects to the gateway's pod by the service's public name, as a load
//! balancer in front of it would. The gateway's certificate is a Secret that istiod sends it.

use super::domains::{self, Domains, client_arguments};
use super::further_domain::FurtherDomain;
use crate::Result;
use crate::certificates::Credentials;
use crate::dataplane::sidecar::{before_sidecar, cluster};
use crate::deployment::part::Part;
use crate::deployment::rollout::Rollout;
use crate::deployment::station::{Destination, ProxyId, Station, Stations};
use crate::filters::proof::FilteredGateway;
use crate::istio::agent::{AgentSpec, ProxyKind};
use crate::running::GatewayPod;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use experiment::mesh_settings::IngressTls;
use experiment::topology::{Call, DriverPlacement, WorkloadId};
use mesh::envoy::hop::Hop;
use mesh::istio::objects::ingress::{self, Credential, PORT};
use mesh::istio::objects::subject::Subject;
use mesh::istio::objects::{self, estate};
use mesh::istio::propagation::Expected;
use mesh::kubernetes::workloads::{Membership, ServicePort};
use mesh::proof::client_tls::with_client_tls;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

const GATEWAY_PROXY: &str = "ingress-gateway";

fn listener() -> String {
    format!("0.0.0.0_{PORT}")
}

#[derive(Debug, Default)]
pub(super) struct Ingress {
    gateways: Vec<Gateway>,
}

#[derive(Debug)]
struct Gateway {
    pod: GatewayPod,
    proxy: ProxyId,
    target: WorkloadId,
    /// Public name of the target.
    host: String,
    /// Certificates and keys of clients; absent without TLS, and if the gateway serves several domains.
    client_files: Option<PathBuf>,
    /// Absent if the gateway has one public name.
    domains: Option<Domains>,
}

impl Ingress {
    fn before(&self, target: WorkloadId) -> Option<&Gateway> {
        self.gateways.iter().find(|gateway| gateway.target == target)
    }
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
        let mut agents = Vec::new();
        for ((target, pod), client) in targets.into_iter().zip(pods).zip(clients) {
            let statistics = statistics(rollout, &hop(rollout, target));
            let agent = pod.agent(rollout, GATEWAY_PROXY, ProxyKind::Router, statistics);
            agents.push(AgentSpec { resources: rollout.context.gateway_resources(), ..agent });
            let (mut served, mut client_files) = (None, None);
            if rollout.context.spec.ingress.declared {
                let name = rollout.qualified(rollout.namespace_index(target), GATEWAY_PROXY);
                let in_pod = &rollout.pods.infrastructure[pod.pod];
                served = Some(Domains::new(rollout, target, (&name, in_pod), client)?);
            } else {
                client_files = client.map(|(_, files)| files);
            }
            let host = host(rollout, target);
            self.gateways.push(Gateway { pod, proxy: 0, target, host, client_files, domains: served });
        }
        for (gateway, proxy) in self.gateways.iter_mut().zip(rollout.start_agents(agents)?) {
            gateway.proxy = proxy;
        }
        Ok(())
    }

    fn objects(&self, rollout: &Rollout<'_>) -> Vec<Value> {
        let objects = |gateway: &Gateway| {
            let Gateway { pod, target, host, domains, .. } = gateway;
            let route = |subject: &Subject<'_>| match domains {
                Some(domains) => domains.estate(rollout, subject).objects(),
                None => ingress::objects(rollout.context.spec, subject, host),
            };
            let filters = rollout.filters.iter().flat_map(|filters| {
                objects::filters::objects(&filters.configuration, rollout.mesh_namespace(*target))
            });
            [pod.service(), rollout.with_subject(*target, route), filters.collect()].concat()
        };
        self.gateways.iter().flat_map(objects).collect()
    }

    fn services_have_addresses(&self, rollout: &mut Rollout<'_>) -> Result<()> {
        // Drivers of several domains connect to the gateway by address.
        for Gateway { pod, target, host, .. } in
            self.gateways.iter().filter(|gateway| gateway.domains.is_none())
        {
            let drivers = rollout.topology().drivers.iter().filter(|driver| driver.target == *target);
            let namespaces: BTreeSet<usize> =
                drivers.map(|driver| rollout.namespace_index(driver.at)).collect();
            for namespace in namespaces {
                rollout.mesh().namespaces.add_name(namespace, pod.address(), &[host])?;
            }
        }
        Ok(())
    }

    fn expected(&self, rollout: &Rollout<'_>) -> Vec<(ProxyId, Vec<Expected>)> {
        self.gateways.iter().map(|gateway| (gateway.proxy, expected(rollout, gateway))).collect()
    }

    fn stations(&self, rollout: &Rollout<'_>, call: Call) -> Stations {
        let spec = rollout.context.spec;
        let station = |gateway: &Gateway| {
            let (hop, mtls) = (hop(rollout, gateway.target), spec.proxy.mtls.is_spoken());
            let evidence = with_client_tls(hop.evidence(mtls), spec.ingress_tls(), spec.ingress.scenario);
            Station::of_one(&rollout.proxies, gateway.proxy, evidence)
        };
        let gateway = self.before(call.to).filter(|_| !rollout.drivers_of(call).is_empty());
        Stations { at_caller: gateway.map(station).into_iter().collect(), ..Stations::default() }
    }

    fn destination(&self, rollout: &Rollout<'_>, driver: &DriverPlacement) -> Option<Destination> {
        let tls = rollout.context.spec.ingress_tls();
        let Gateway { host, client_files, domains, .. } = self.before(driver.target)?;
        if let Some(domains) = domains {
            return Some(domains.destination(rollout, driver));
        }
        let files = client_files.iter();
        Some(Destination {
            url: rollout.url(driver, &format!("{host}:{PORT}"), tls != IngressTls::Off),
            arguments: files.flat_map(|files| client_arguments(files, tls)).collect(),
        })
    }

    fn wait_until_serving(&self, rollout: &Rollout<'_>) -> Result<Vec<ProxyId>> {
        // All gateways have their configuration already: they proceed in parallel while this waits for one of
        // them.
        let mut waited = Vec::new();
        for gateway in &self.gateways {
            let Some(domains) = &gateway.domains else { continue };
            domains.wait_until_served(|| rollout.check_goes_on())?;
            domains.check_others_are_refused()?;
            waited.push(gateway.proxy);
        }
        Ok(waited)
    }

    fn further_domain(&self, rollout: &Rollout<'_>) -> Option<FurtherDomain> {
        let gateway = self.gateways.first()?;
        let domains = gateway.domains.as_ref()?;
        let (number, objects) =
            rollout.with_subject(gateway.target, |subject| domains.estate(rollout, subject).further());
        Some(domains.further(number, objects))
    }

    fn filtered_gateways(&self, rollout: &Rollout<'_>) -> Vec<FilteredGateway> {
        let filtered = |gateway: &Gateway| {
            let domains = gateway.domains.as_ref()?;
            Some(domains.filtered(gateway.proxy, &hop(rollout, gateway.target).connection_manager))
        };
        self.gateways.iter().filter_map(filtered).collect()
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

/// Public name of a target.
fn host(rollout: &Rollout<'_>, target: WorkloadId) -> String {
    ingress::host(&rollout.workload(target).namespace)
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
        let issued = certificates(rollout, &host(rollout, *target))?;
        objects.extend(credentials(tls, &namespace, &issued));
        clients.push(Some(domains::client_files(rollout, &namespace)?));
    }
    rollout.mesh_mut().namespaces.objects.apply(&objects)?;
    Ok(clients)
}

/// Certificates of a gateway, with the names of their Secrets.
fn certificates(rollout: &Rollout<'_>, host: &str) -> Result<Vec<(Credentials, String)>> {
    if rollout.context.spec.ingress.declared {
        let issued = domains::certificates(rollout, host)?;
        return Ok(issued.into_iter().zip((0..).map(estate::credential_name)).collect());
    }
    let operation = "make the certificates of the ingress gateway";
    let issued = rollout.context.authority.issue_server(&[host], &[]).context(operation)?;
    Ok(vec![(issued, ingress::CREDENTIAL.to_owned())])
}

fn credentials(tls: IngressTls, namespace: &str, issued: &[(Credentials, String)]) -> Vec<Value> {
    let credentials: Vec<Credential<'_>> = issued
        .iter()
        .map(|(issued, name)| Credential {
            name,
            certificate: &issued.certificate_pem,
            key: &issued.key_pem,
            client_authority: &issued.authority_pem,
        })
        .collect();
    ingress::credentials(tls, namespace, &credentials)
}

/// How the gateway forwards the load. It speaks mutual TLS with the sidecar behind it.
fn hop(rollout: &Rollout<'_>, target: WorkloadId) -> Hop {
    Hop::outbound(before_sidecar(rollout, target), PORT, cluster(rollout, target))
}

/// Prefixes of the statistics that prove its path, the client's TLS included. Each domain's routes add seven
/// statistics (`http.outbound_0.0.0.0_8443.rds.…`), which are left out.
fn statistics(rollout: &Rollout<'_>, hop: &Hop) -> Vec<String> {
    let mut prefixes = hop.statistics();
    let filters =
        rollout.filters.iter().flat_map(|filters| filters.configuration.counters(&hop.connection_manager));
    prefixes.extend(filters);
    prefixes.push(format!("listener.{}", listener()));
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
fn expected(rollout: &Rollout<'_>, Gateway { target, host, domains, .. }: &Gateway) -> Vec<Expected> {
    let target = *target;
    let hop = hop(rollout, target);
    let endpoints = rollout.endpoints_of(target).into_iter();
    let endpoints = endpoints.map(|endpoint| Expected::Endpoint(hop.cluster.clone(), endpoint));
    let route = domains.is_none().then(|| Expected::route(&hop, host));
    let services = rollout.filters.iter().flat_map(|filters| filters.configuration.endpoints());
    let services = services.map(|(service, endpoint)| Expected::Endpoint(service.cluster(), endpoint));
    endpoints.chain(services).chain([Expected::Listener(listener())]).chain(route).collect()
}
