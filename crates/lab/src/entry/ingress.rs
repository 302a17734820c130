//! `ingress`: a client outside the mesh, a gateway in the service's namespace, and the service with its sidecar.
//! The client is a pod without a proxy. It speaks TLS with the gateway (SIMPLE or MUTUAL,
//! certificates by the run's authority) or plain HTTP, and connects to the gateway's pod by the service's public name, as
//! a load balancer before it would. The gateway's certificate is a Secret that istiod gives it.

use crate::Result;
use crate::certificates::CredentialFiles;
use crate::component_name::lab_name;
use crate::container::ContainerUser;
use crate::dataplane::sidecar::{before_sidecar, cluster};
use crate::deployment::part::Part;
use crate::deployment::rollout::{AgentStart, Rollout};
use crate::deployment::station::{Destination, ProxyId, Station, Stations};
use crate::istio::agent::ProxyKind;
use crate::private_dir::PrivateDir;
use crate::running::GatewayPod;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use experiment::mesh_settings::IngressTls;
use experiment::topology::{Call, DriverPlacement, WorkloadId};
use mesh::envoy::hop::Hop;
use mesh::istio::objects::ingress::{self, Credential, PORT};
use mesh::istio::objects::subject::Subject;
use mesh::istio::propagation::Expected;
use mesh::kubernetes::workloads::{Membership, ServicePort};
use mesh::proof::{Demand, Evidence};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

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
    /// Certificates and keys of clients; absent without TLS.
    client_files: Option<PrivateDir>,
}

impl Ingress {
    fn before(&self, target: WorkloadId) -> Option<&Gateway> {
        self.gateways.iter().find(|gateway| gateway.target == target)
    }
}

impl Part for Ingress {
    fn start(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        let tls = rollout.context.spec.istio.ingress.tls;
        let mut agents = Vec::new();
        for target in targets(rollout)? {
            let (workload, namespace) = (rollout.workload(target), rollout.namespace_index(target));
            let host = ingress::host(&workload.namespace);
            // Before the gateway asks: that its account may not read secrets istiod remembers for a minute.
            let client_files = give_certificates(rollout, namespace, &host)?;
            let port = ServicePort { name: ingress::port_name(workload.protocol, tls), port: PORT };
            // It stands at the edge of the mesh: what it speaks with those who call it, its Gateway says.
            let pod = GatewayPod::create(rollout, (ingress::NAME, namespace), Membership::Outside, &[port])?;
            let statistics = statistics(&hop(rollout, target));
            let agent = pod.agent(rollout, GATEWAY_PROXY, ProxyKind::Router, statistics);
            agents.push(AgentStart { resources: rollout.context.gateway_resources(), ..agent });
            self.gateways.push(Gateway { pod, proxy: 0, target, host, client_files });
        }
        for (gateway, proxy) in self.gateways.iter_mut().zip(rollout.start_agents(agents)?) {
            gateway.proxy = proxy;
        }
        Ok(())
    }

    fn objects(&self, rollout: &Rollout<'_>) -> Vec<Value> {
        let objects = |Gateway { pod, target, host, .. }: &Gateway| {
            let route = |subject: &Subject<'_>| ingress::objects(rollout.context.spec, subject, host);
            [pod.service(), rollout.with_subject(*target, route)].concat()
        };
        self.gateways.iter().flat_map(objects).collect()
    }

    fn services_have_addresses(&self, rollout: &mut Rollout<'_>) -> Result<()> {
        for Gateway { pod, target, host, .. } in &self.gateways {
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
            Station::of_one(&rollout.proxies, gateway.proxy, evidence(&hop, mtls, spec.istio.ingress.tls))
        };
        let gateway = self.before(call.to).filter(|_| !rollout.drivers_of(call).is_empty());
        Stations { at_caller: gateway.map(station).into_iter().collect(), ..Stations::default() }
    }

    fn destination(&self, rollout: &Rollout<'_>, driver: &DriverPlacement) -> Option<Destination> {
        let tls = rollout.context.spec.istio.ingress.tls;
        let Gateway { host, client_files, .. } = self.before(driver.target)?;
        let files = client_files.iter();
        Some(Destination {
            url: rollout.url(driver, &format!("{host}:{PORT}"), tls != IngressTls::Off),
            arguments: files.flat_map(|files| client_arguments(files.path(), tls)).collect(),
        })
    }

    fn take_directories(&mut self) -> Vec<PrivateDir> {
        self.gateways.iter_mut().filter_map(|gateway| gateway.client_files.take()).collect()
    }
}

/// The workloads that drivers offer load to, each in a namespace of its own.
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

/// Makes the gateway's certificate known to the API, and writes what clients show and trust; nothing without TLS.
fn give_certificates(rollout: &mut Rollout<'_>, namespace: usize, host: &str) -> Result<Option<PrivateDir>> {
    let settings = rollout.context.spec.istio.ingress;
    if settings.tls == IngressTls::Off {
        return Ok(None);
    }
    let operation = "make the certificates of the ingress gateway";
    let authority = rollout.context.authority;
    let gateway = authority.issue_server(&[host], &[]).context(operation)?;
    let client = authority.issue_client("client", "meshmeter").context(operation)?;
    let credential = Credential {
        certificate: &gateway.certificate_pem,
        key: &gateway.key_pem,
        client_authority: &gateway.authority_pem,
    };
    let mesh = rollout.mesh_mut();
    let namespace = mesh.namespaces.names()[namespace].clone();
    mesh.namespaces.objects.apply(&ingress::credential(settings, &namespace, &credential))?;
    let directory = lab_name(&format!("{namespace}-client"));
    let directory = PrivateDir(rollout.context.lab.create_private_dir(&directory, ContainerUser::Lab)?);
    client.write(directory.path(), None).context(operation)?;
    Ok(Some(directory))
}

fn client_arguments(folder: &Path, tls: IngressTls) -> Vec<String> {
    let files = CredentialFiles::in_folder(folder);
    let mut arguments = vec![("--cacert", files.authority)];
    if tls == IngressTls::Mutual {
        arguments.extend([("--cert", files.certificate), ("--key", files.key)]);
    }
    arguments.into_iter().map(|(option, path)| format!("{option}={}", path.display())).collect()
}

/// What the gateway does with the load. It speaks mutual TLS with the sidecar behind it.
fn hop(rollout: &Rollout<'_>, target: WorkloadId) -> Hop {
    Hop::outbound(before_sidecar(rollout, target), PORT, cluster(rollout, target))
}

/// Prefixes of the statistics that prove its path, the client's TLS included.
fn statistics(hop: &Hop) -> Vec<String> {
    hop.statistics().into_iter().chain([format!("listener.{}", listener())]).collect()
}

fn expected(rollout: &Rollout<'_>, Gateway { target, host, .. }: &Gateway) -> Vec<Expected> {
    let target = *target;
    let hop = hop(rollout, target);
    let endpoints = rollout.endpoints_of(target).into_iter();
    let endpoints = endpoints.map(|endpoint| Expected::Endpoint(hop.cluster.clone(), endpoint));
    endpoints.chain([Expected::Listener(listener()), Expected::route(&hop, host)]).collect()
}

/// The hop's evidence, and TLS with the client if configured; with `mutual`, every client has a certificate.
fn evidence(hop: &Hop, mtls: bool, tls: IngressTls) -> Evidence {
    let listener = format!("listener.{}", listener());
    let mut demands = vec![Demand {
        counter: format!("{listener}.ssl.handshake"),
        rises: tls != IngressTls::Off,
        otherwise: if tls == IngressTls::Off {
            "completed TLS handshakes with the client, though it is to take plain text"
        } else {
            "completed no TLS handshake with the client"
        },
    }];
    if tls == IngressTls::Mutual {
        demands.push(Demand {
            counter: format!("{listener}.ssl.no_certificate"),
            rises: false,
            otherwise: "took connections of clients that showed no certificate",
        });
    }
    Evidence { demands, ..hop.evidence(mtls) }
}
