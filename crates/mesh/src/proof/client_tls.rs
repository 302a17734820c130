//! A gateway's counters of the TLS that its clients use.

use super::evidence::{Demand, Evidence};
use crate::envoy::domains::listener_statistics;
use crate::istio::objects::ingress::PORT;
use experiment::environment::Scenario;
use experiment::mesh_settings::IngressTls;

/// Adds demands on TLS between clients and gateway as configured. With `mutual`, every client must present a
/// certificate.
pub fn with_client_tls(evidence: Evidence, tls: IngressTls, scenario: Scenario) -> Evidence {
    let listener = listener_statistics(PORT);
    let demand = |counter: &str, rises: bool, otherwise: &'static str| Demand {
        counter: format!("{listener}.ssl.{counter}"),
        rises,
        otherwise,
    };
    let mut demands = match scenario {
        Scenario::Tls12 => vec![
            demand("versions.TLSv1.2", true, "completed no handshake with TLS 1.2"),
            demand("versions.TLSv1.3", false, "completed handshakes with TLS 1.3"),
        ],
        Scenario::Resumption => vec![demand("session_reused", true, "resumed no TLS session")],
        Scenario::FullHandshakes => vec![demand("session_reused", false, "resumed TLS sessions")],
        _ => Vec::new(),
    };
    let (is_tls, otherwise) = match tls {
        IngressTls::Off => {
            (false, "completed TLS handshakes with the client, though it should accept plaintext")
        }
        _ => (true, "completed no TLS handshake with the client"),
    };
    demands.push(demand("handshake", is_tls, otherwise));
    if tls == IngressTls::Mutual {
        demands.push(demand(
            "no_certificate",
            false,
            "took connections of clients that showed no certificate",
        ));
    }
    Evidence { demands, ..evidence }
}
