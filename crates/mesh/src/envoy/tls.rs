//! TLS of a proxy: with its peer proxies on both sides, and of a gateway's domains with clients.

use super::credentials::CredentialFiles;
use super::extension::extension;
use super::spec::Callee;
use serde_json::{Value, json};

/// TLS to a callee's proxy.
pub(super) fn outbound(credentials: &CredentialFiles, callee: &Callee, identity: &str) -> Value {
    let protocol = if callee.protocol.multiplexes() { "h2" } else { "istio-http/1.1" };
    let config = json!({
        "common_tls_context": mutual(credentials, &[identity], &[protocol]),
        "sni": format!("outbound_.{}_._.{}", callee.address.port(), callee.host),
    });
    extension("envoy.transport_sockets.tls", "transport_sockets.tls.v3.UpstreamTlsContext", config)
}

/// Accepts only peers with an expected identity, signed by the run's authority.
pub(super) fn inbound(credentials: &CredentialFiles, callers: &[String]) -> Value {
    downstream(&mutual(credentials, callers, &["istio-http/1.1", "h2", "http/1.1"]), true)
}

pub(super) fn downstream(context: &Value, requires_certificate: bool) -> Value {
    let config = json!({"common_tls_context": context, "require_client_certificate": requires_certificate});
    extension("envoy.transport_sockets.tls", "transport_sockets.tls.v3.DownstreamTlsContext", config)
}

/// TLS 1.2 or 1.3 (as a client, Envoy's default maximum is 1.2) with the run's certificates.
pub(super) fn context(credentials: &CredentialFiles, protocols: &[&str]) -> Value {
    json!({
        "alpn_protocols": protocols,
        "tls_params": {"tls_minimum_protocol_version": "TLSv1_2", "tls_maximum_protocol_version": "TLSv1_3"},
        "tls_certificates": [{
            "certificate_chain": {"filename": credentials.certificate},
            "private_key": {"filename": credentials.key},
        }],
    })
}

/// The peer must present one of these identities.
fn mutual(credentials: &CredentialFiles, peers: &[impl AsRef<str>], protocols: &[&str]) -> Value {
    let peer = |identity: &str| json!({"san_type": "URI", "matcher": {"exact": identity}});
    let peers: Vec<Value> = peers.iter().map(|identity| peer(identity.as_ref())).collect();
    let mut context = context(credentials, protocols);
    context["validation_context"] = json!({
        "trusted_ca": {"filename": credentials.authority},
        "match_typed_subject_alt_names": peers,
    });
    context
}
