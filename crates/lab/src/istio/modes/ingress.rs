//! `ingress`: a client outside the mesh, a gateway, and the service with its sidecar.
//!
//! The client is a pod without a proxy. It speaks TLS with the gateway (SIMPLE or MUTUAL,
//! certificates by the run's authority) or plain HTTP, and connects to the gateway's pod by the service's public name, as
//! a load balancer before it would. The gateway's certificate is a Secret that istiod gives it.

use super::gateway::Gateway;
use super::sidecar::{self, Side};
use super::{Memberships, Trial};
use crate::arrangement::LocalLab;
use crate::arrangement::started::{PrivateFolder, Started};
use crate::certificates::CertificateError;
use crate::container::ContainerUser;
use crate::envoy::hop::Hop;
use crate::envoy::proof::{Demand, Evidence};
use crate::istio::in_force::Expected;
use crate::istio::redirect::redirect_through_sidecar;
use experiment::Mode;
use experiment::environment::{DeploymentSpec, EnvironmentError};
use experiment::mesh_settings::IngressTls;
use mesh::istio::objects::ingress::{self, Credential, HOST, PORT};
use mesh::istio::objects::markers::Markers;
use mesh::kubernetes::workloads::{Membership, ServicePort};
use std::path::Path;

/// The gateway's proxy, as a component.
pub(super) const GATEWAY_PROXY: &str = "ingress-gateway";

/// The listener of the gateway's port.
fn listener() -> String {
    format!("0.0.0.0_{PORT}")
}

pub(super) fn can_run(place: &LocalLab) -> Result<(), EnvironmentError> {
    sidecar::can_run(place, Mode::Ingress)
}

pub(super) fn bring_up(
    place: &LocalLab,
    spec: &DeploymentSpec,
    log_dir: &Path,
) -> Result<Started, EnvironmentError> {
    let memberships = Memberships { client: Membership::Outside, server: Membership::Sidecar };
    let mut trial = Trial::begin(place, spec, log_dir, memberships)?;
    trial.write_settings()?;
    let tls = spec.istio.ingress.tls;
    let port = ServicePort { name: ingress::port_name(spec), port: PORT };
    let gateway = Gateway::create(&mut trial, ingress::NAME, port)?;
    // Before the gateway asks: that its account may not read secrets istiod remembers for a minute.
    let client_files = give_certificates(&mut trial, tls)?;
    let (gateway_hop, server_hop) = (hop(&trial), sidecar::inbound(&trial));
    let proxy = gateway.start(&mut trial, GATEWAY_PROXY, &statistics(&gateway_hop))?;
    // Before the proxy: see `sidecar.rs`.
    redirect_through_sidecar(&mut trial.pods.server, trial.site.programs, log_dir)?;
    let server = trial.start_sidecar(Side::Server, &server_hop.statistics())?;
    for agent in [&proxy, &server] {
        agent.wait_until_ready(place.lab())?;
    }
    let mut objects = trial.service_objects();
    objects.extend(gateway.service());
    objects.extend(trial.with_subject(|subject| ingress::objects(spec, subject)));
    let (written, _) = trial.write(&objects)?;
    trial.site.namespace.add_name(gateway.address(), &[HOST])?;
    let markers = trial.markers();
    let awaited = [
        proxy.awaited(expected(&trial, &gateway_hop, &markers)),
        server.awaited(sidecar::expected_of_server(&trial, &server_hop, &markers)),
    ];
    let in_force = trial.wait_until_propagated(&awaited, &written)?;
    let proxies = vec![
        proxy.on_the_path(ingress::NAME, evidence(&gateway_hop, spec.proxy.mtls.is_spoken(), tls)),
        server.on_the_path(trial.pods.server.name(), sidecar::evidence_of_server(&trial, &server_hop)),
    ];
    let (scheme, path) = (spec.protocol.scheme(tls != IngressTls::Off), spec.protocol.path());
    let mut client_arguments = trial.client_arguments()?;
    client_arguments.extend(client_files.iter().flat_map(|files| self::client_arguments(files.path(), tls)));
    let started = trial.started()?;
    Ok(Started {
        proxies,
        push: Some(written.push(in_force)),
        url: format!("{scheme}://{HOST}:{PORT}{path}"),
        client_arguments,
        _folders: client_files.into_iter().collect(),
        ..started
    })
}

/// Makes the gateway's certificate known to the API, and writes what the client shows and trusts; nothing without TLS.
fn give_certificates(
    trial: &mut Trial<'_>,
    tls: IngressTls,
) -> Result<Option<PrivateFolder>, EnvironmentError> {
    if tls == IngressTls::Off {
        return Ok(None);
    }
    let failed = |error: CertificateError| {
        EnvironmentError::new("make the certificates of the ingress gateway", error)
    };
    let authority = trial.site.place.authority();
    let gateway = authority.issue_server(&[HOST], &[]).map_err(failed)?;
    let client = authority.issue_client("client", "meshmeter").map_err(failed)?;
    let credential = Credential {
        certificate: gateway.certificate_pem(),
        key: gateway.key_pem(),
        client_authority: gateway.authority_pem(),
    };
    let objects =
        ingress::credential(trial.site.spec.istio.ingress, trial.site.namespace.name(), &credential);
    trial.site.namespace.apply(&objects)?;
    let name = format!("{}-client", trial.site.namespace.name());
    let folder = PrivateFolder(trial.site.lab().create_private_dir(&name, ContainerUser::Lab)?);
    client.write(folder.path(), None).map_err(failed)?;
    Ok(Some(folder))
}

/// What the generator trusts and, where the gateway asks for it, shows.
fn client_arguments(folder: &Path, tls: IngressTls) -> Vec<String> {
    let files = crate::certificates::CredentialFiles::in_folder(folder);
    let mut arguments = vec![("--cacert", files.authority)];
    if tls == IngressTls::Mutual {
        arguments.extend([("--cert", files.certificate), ("--key", files.key)]);
    }
    arguments.into_iter().map(|(option, path)| format!("{option}={}", path.display())).collect()
}

/// What the gateway does with the load. It speaks mutual TLS with the server's sidecar.
fn hop(trial: &Trial<'_>) -> Hop {
    Hop::outbound(sidecar::before_servers_proxy(trial.site.spec), PORT, sidecar::cluster(trial))
}

/// Prefixes of the statistics that prove its path, the client's TLS included.
fn statistics(hop: &Hop) -> Vec<String> {
    hop.statistics().into_iter().chain([format!("listener.{}", listener())]).collect()
}

/// Timeout and retries are in the gateway's own route, which is there as a whole.
fn expected(trial: &Trial<'_>, hop: &Hop, markers: &Markers) -> Vec<Expected> {
    let mut expected = vec![
        Expected::Endpoint(hop.cluster.clone(), trial.server_endpoint()),
        Expected::Listener(listener()),
        Expected::route(hop, HOST),
    ];
    expected.extend(markers.every_listener.iter().cloned().map(Expected::InListeners));
    expected
}

/// Beside what its hop shows, the gateway speaks TLS with the client where that is asked for; with `mutual`, with no client
/// that has no certificate.
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
