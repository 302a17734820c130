//! `ingress`: a client outside the mesh, a gateway, and the service with its sidecar.
//! The client is a pod without a proxy. It speaks TLS with the gateway (SIMPLE or MUTUAL,
//! certificates by the run's authority) or plain HTTP, and connects to the gateway's pod by the service's public name, as
//! a load balancer before it would. The gateway's certificate is a Secret that istiod gives it.

use crate::Result;
use crate::certificates::CredentialFiles;
use crate::component_name::lab_name;
use crate::container::ContainerUser;
use crate::dataplane::sidecar::{before_sidecar, cluster};
use crate::deployment::part::Part;
use crate::deployment::rollout::Rollout;
use crate::deployment::station::{Destination, ProxyId, Station, Stations};
use crate::istio::agent::ProxyKind;
use crate::private_dir::PrivateDir;
use crate::running::GatewayPod;
use experiment::environment::EnvironmentError;
use experiment::mesh_settings::IngressTls;
use experiment::topology::{Call, DriverPlacement, WorkloadId};
use mesh::envoy::hop::Hop;
use mesh::istio::objects::ingress::{self, Credential, HOST, PORT};
use mesh::istio::propagation::Expected;
use mesh::kubernetes::workloads::{Membership, ServicePort};
use mesh::proof::{Demand, Evidence};
use serde_json::Value;
use std::path::Path;

const GATEWAY_PROXY: &str = "ingress-gateway";

fn listener() -> String {
    format!("0.0.0.0_{PORT}")
}

#[derive(Debug, Default)]
pub(super) struct Ingress {
    gateway: Option<Gateway>,
    /// Certificates and keys of clients; absent without TLS.
    client_files: Option<PrivateDir>,
}

#[derive(Debug)]
struct Gateway {
    pod: GatewayPod,
    proxy: ProxyId,
    target: WorkloadId,
}

impl Part for Ingress {
    fn start(&mut self, rollout: &mut Rollout<'_>) -> Result<()> {
        let target = only_target(rollout)?;
        let spec = rollout.context.spec;
        // Before the gateway asks: that its account may not read secrets istiod remembers for a minute.
        self.client_files = give_certificates(rollout, spec.istio.ingress.tls)?;
        let port = ServicePort {
            name: ingress::port_name(rollout.workload(target).protocol, spec.istio.ingress.tls),
            port: PORT,
        };
        // It stands at the edge of the mesh: what it speaks with those who call it, its Gateway says.
        let pod = GatewayPod::create(rollout, (ingress::NAME, 0), Membership::Outside, &[port])?;
        let statistics = statistics(&hop(rollout, target));
        let agent = pod.agent(rollout, GATEWAY_PROXY, ProxyKind::Router, statistics);
        let proxy = rollout.start_agents(vec![agent])?[0];
        self.gateway = Some(Gateway { pod, proxy, target });
        Ok(())
    }

    fn objects(&self, rollout: &Rollout<'_>) -> Vec<Value> {
        let Some(Gateway { pod, target, .. }) = &self.gateway else { return Vec::new() };
        let mut objects = pod.service();
        let spec = rollout.context.spec;
        objects.extend(rollout.with_subject(*target, |subject| ingress::objects(spec, subject)));
        objects
    }

    fn services_have_addresses(&self, rollout: &mut Rollout<'_>) -> Result<()> {
        let Some(gateway) = &self.gateway else { return Ok(()) };
        rollout.mesh().namespaces.add_name(0, gateway.pod.address(), &[HOST])
    }

    fn expected(&self, rollout: &Rollout<'_>) -> Vec<(ProxyId, Vec<Expected>)> {
        self.gateway.iter().map(|gateway| (gateway.proxy, expected(rollout, gateway.target))).collect()
    }

    fn stations(&self, rollout: &Rollout<'_>, call: Call) -> Stations {
        let spec = rollout.context.spec;
        let station = |gateway: &Gateway| Station {
            name: rollout.proxies[gateway.proxy].name.clone(),
            proxies: vec![gateway.proxy],
            side: None,
            evidence: evidence(
                &hop(rollout, gateway.target),
                spec.proxy.mtls.is_spoken(),
                spec.istio.ingress.tls,
            ),
        };
        let before_target = self.gateway.iter().filter(|gateway| gateway.target == call.to);
        Stations { at_caller: before_target.map(station).collect(), ..Stations::default() }
    }

    fn destination(&self, rollout: &Rollout<'_>, driver: &DriverPlacement) -> Option<Destination> {
        let tls = rollout.context.spec.istio.ingress.tls;
        Some(Destination {
            url: rollout.url(driver, &format!("{HOST}:{PORT}"), tls != IngressTls::Off),
            arguments: self
                .client_files
                .iter()
                .flat_map(|files| client_arguments(files.path(), tls))
                .collect(),
        })
    }

    fn take_directories(&mut self) -> Vec<PrivateDir> {
        self.client_files.take().into_iter().collect()
    }
}

/// The workload that drivers offer load to. The gateway has one public name, which leads to one.
fn only_target(rollout: &Rollout<'_>) -> Result<WorkloadId> {
    let mut targets: Vec<WorkloadId> =
        rollout.topology().drivers.iter().map(|driver| driver.target).collect();
    targets.dedup();
    match targets[..] {
        [target] => Ok(target),
        _ => Err(EnvironmentError::new(
            "start the ingress gateway",
            format!("drivers offer load to {} workloads, and its public name leads to one", targets.len()),
        )),
    }
}

/// Makes the gateway's certificate known to the API, and writes what clients show and trust; nothing without TLS.
fn give_certificates(rollout: &mut Rollout<'_>, tls: IngressTls) -> Result<Option<PrivateDir>> {
    if tls == IngressTls::Off {
        return Ok(None);
    }
    let failed = |error: EnvironmentError| {
        EnvironmentError::new("make the certificates of the ingress gateway", error)
    };
    let authority = rollout.context.authority;
    let gateway = authority.issue_server(&[HOST], &[]).map_err(failed)?;
    let client = authority.issue_client("client", "meshmeter").map_err(failed)?;
    let credential = Credential {
        certificate: &gateway.certificate_pem,
        key: &gateway.key_pem,
        client_authority: &gateway.authority_pem,
    };
    let settings = rollout.context.spec.istio.ingress;
    let mesh = rollout.mesh_mut();
    let namespace = mesh.namespaces.names()[0].clone();
    mesh.namespaces.objects.apply(&ingress::credential(settings, &namespace, &credential))?;
    let directory = lab_name(&format!("{namespace}-client"));
    let directory = PrivateDir(rollout.context.lab.create_private_dir(&directory, ContainerUser::Lab)?);
    client.write(directory.path(), None).map_err(failed)?;
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

/// Timeout and retries are in the gateway's own route, which is there as a whole.
fn expected(rollout: &Rollout<'_>, target: WorkloadId) -> Vec<Expected> {
    let hop = hop(rollout, target);
    let endpoints = rollout.endpoints_of(target).into_iter();
    let mut expected: Vec<Expected> =
        endpoints.map(|endpoint| Expected::Endpoint(hop.cluster.clone(), endpoint)).collect();
    expected.extend([Expected::Listener(listener()), Expected::route(&hop, HOST)]);
    let markers = rollout.markers(target);
    expected.extend(markers.every_listener.into_iter().map(Expected::InListeners));
    expected
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
