//! State that a proxy shows once it has its configuration.

use crate::envoy::hop::{Hop, Layer};
use crate::proof::evidence::Accepts;
use std::fmt;
use std::net::SocketAddrV4;

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Expected {
    Cluster(String),
    /// An address in this cluster that the proxy considers healthy.
    Endpoint(String, SocketAddrV4),
    /// A listener, which accepts connections only once its routes are present.
    Listener(String),
    FilterChain(String),
    /// A listener that forwards connections to this cluster as opaque TCP.
    TcpRoute(String),
    /// A route for a domain such as `server.mesh-1.svc.cluster.local`.
    Domain(String),
    /// At a ztunnel: a Service with endpoints.
    AmbientService {
        host: String,
        behind_waypoint: bool,
    },
    /// At a ztunnel: a pod reached over HBONE.
    AmbientWorkload {
        namespace: String,
        name: String,
    },
    AmbientPolicy {
        namespace: String,
        name: String,
    },
    Accepts(Accepts),
}

impl Expected {
    /// State that routes the load: a route for this domain if the proxy reads requests, otherwise a listener.
    pub fn route(hop: &Hop, domain: &str) -> Self {
        match hop.layer {
            Layer::L7 { .. } => Self::Domain(domain.to_owned()),
            Layer::L4 => Self::TcpRoute(hop.cluster.clone()),
        }
    }
}

/// Follows "the proxy does not show" in errors.
impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(name) => write!(f, "the cluster {name}"),
            Self::Endpoint(cluster, address) => write!(f, "{address} as a healthy endpoint of {cluster}"),
            Self::Listener(name) => write!(f, "the listener {name}"),
            Self::FilterChain(name) => write!(f, "the filter chain {name}"),
            Self::TcpRoute(cluster) => write!(f, "a listener that leads connections to {cluster}"),
            Self::Domain(domain) => write!(f, "a route for {domain}"),
            Self::AmbientService { host, behind_waypoint: false } => write!(f, "the Service {host}"),
            Self::AmbientService { host, behind_waypoint: true } => {
                write!(f, "the Service {host} behind a waypoint")
            }
            Self::AmbientWorkload { namespace, name } => write!(f, "the pod {namespace}/{name} by HBONE"),
            Self::AmbientPolicy { namespace, name } => write!(f, "the policy {namespace}/{name}"),
            Self::Accepts(Accepts { port, plaintext: true }) => {
                write!(f, "that it takes plain text for port {port}")
            }
            Self::Accepts(Accepts { port, plaintext: false }) => {
                write!(f, "that it takes nothing but mutual TLS for port {port}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_state_is_described() {
        let accepts = |plaintext| Expected::Accepts(Accepts { port: 8080, plaintext });
        assert_eq!(accepts(false).to_string(), "that it takes nothing but mutual TLS for port 8080");
        assert_eq!(accepts(true).to_string(), "that it takes plain text for port 8080");
        let endpoint = Expected::Endpoint("outbound|80||a".to_owned(), "10.77.0.4:8080".parse().unwrap());
        assert_eq!(endpoint.to_string(), "10.77.0.4:8080 as a healthy endpoint of outbound|80||a");
    }
}
