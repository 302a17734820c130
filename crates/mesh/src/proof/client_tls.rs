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
    let mut demands = scenario_demands(scenario, &listener);
    demands.push(Demand {
        counter: format!("{listener}.ssl.handshake"),
        rises: tls != IngressTls::Off,
        otherwise: if tls == IngressTls::Off {
            "completed TLS handshakes with the client, though it is to take plain text"
        } else {
            "completed no TLS handshake with the client"
        },
    });
    if tls == IngressTls::Mutual {
        demands.push(Demand {
            counter: format!("{listener}.ssl.no_certificate"),
            rises: false,
            otherwise: "took connections of clients that showed no certificate",
        });
    }
    Evidence { demands, ..evidence }
}

/// Counters of handshakes at the gateway, for scenarios that concern handshakes.
fn scenario_demands(scenario: Scenario, listener: &str) -> Vec<Demand> {
    let demand = |counter: &str, rises: bool, otherwise: &'static str| Demand {
        counter: format!("{listener}.ssl.{counter}"),
        rises,
        otherwise,
    };
    match scenario {
        Scenario::Tls12 => vec![
            demand("versions.TLSv1.2", true, "completed no handshake with TLS 1.2"),
            demand("versions.TLSv1.3", false, "completed handshakes with TLS 1.3"),
        ],
        Scenario::Resumption => vec![demand("session_reused", true, "resumed no TLS session")],
        Scenario::FullHandshakes => vec![demand("session_reused", false, "resumed TLS sessions")],
        _ => Vec::new(),
    }
}
