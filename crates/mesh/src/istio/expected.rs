//! What a proxy shows once it has its configuration.

use crate::envoy::hop::{Hop, Layer};
use crate::proof::evidence::Accepts;
use std::fmt;
use std::net::SocketAddrV4;

/// Something that a proxy shows once it has its configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Expected {
    /// A cluster of this name.
    Cluster(String),
    /// A cluster of this name with this address in it, which it takes to be healthy.
    Endpoint(String, SocketAddrV4),
    /// A listener of this name that takes connections. It does so only once its routes are there.
    Listener(String),
    /// A listener's filter chain of this name.
    FilterChain(String),
    /// A listener that leads connections to this cluster, unread.
    TcpRoute(String),
    /// A route for this domain, such as `server.mesh-1.svc.cluster.local`.
    Domain(String),
    /// At a ztunnel: a Service with somebody behind it, before which a waypoint stands or not.
    AmbientService {
        /// Its whole name.
        host: String,
        /// Whether its requests go through a waypoint.
        behind_waypoint: bool,
    },
    /// At a ztunnel: a pod that is reached by HBONE.
    AmbientWorkload {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// At a ztunnel: an authorization policy.
    AmbientPolicy {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Plain text for a port of the application is taken, or is not.
    Accepts(Accepts),
    /// Text in its listeners.
    InListeners(String),
    /// Text in its routes.
    InRoutes(String),
}

impl Expected {
    /// That a proxy leads the load where it should: requests for this domain by a route, connections by their listener.
    #[must_use]
    pub fn route(hop: &Hop, domain: &str) -> Self {
        match hop.layer {
            Layer::L7 { .. } => Self::Domain(domain.to_owned()),
            Layer::L4 => Self::TcpRoute(hop.cluster.clone()),
        }
    }
}

/// As it is told to people, after "the proxy does not show".
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
            Self::InListeners(text) => write!(f, "`{text}` in its listeners"),
            Self::InRoutes(text) => write!(f, "`{text}` in its routes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_awaited_is_told_in_words() {
        let accepts = |plaintext| Expected::Accepts(Accepts { port: 8080, plaintext });
        assert_eq!(accepts(false).to_string(), "that it takes nothing but mutual TLS for port 8080");
        assert_eq!(accepts(true).to_string(), "that it takes plain text for port 8080");
        let endpoint = Expected::Endpoint("outbound|80||a".to_owned(), "10.77.0.4:8080".parse().unwrap());
        assert_eq!(endpoint.to_string(), "10.77.0.4:8080 as a healthy endpoint of outbound|80||a");
    }
}
