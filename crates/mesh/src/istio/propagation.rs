//! Whether a proxy has the configuration that it should have, asked of the proxy itself, and how long that took.

use crate::admin::{Admin, AdminCause, AdminError};
use crate::envoy::hop::{Hop, Layer};
use crate::envoy::plaintext::accepts_plaintext;
use crate::proof::Accepts;
use crate::wait::{Progress, wait_with_progress};
use crate::ztunnel;
use experiment::environment::EnvironmentError;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

/// How long nothing may change at the proxies meanwhile. istiod waits 100 ms for more changes, at most 10 s, and takes some
/// time to compute what a large mesh is told.
const PROPAGATION_TIMEOUT: Duration = Duration::from_secs(60);

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

/// A proxy that was started.
pub trait Running: fmt::Debug {
    /// Fails if it has ended, was stopped, or its log tells of configuration that it rejected.
    ///
    /// # Errors
    /// What happened, as the error of `operation`.
    fn check(&self, operation: &str) -> Result<(), EnvironmentError>;
}

/// A proxy, and what it is to show.
#[derive(Debug)]
pub struct Awaited<'a> {
    /// The component's name.
    pub name: &'a str,
    /// What istiod calls it; absent where it is not asked what it takes, as a ztunnel, which shows all that it has itself.
    pub known_as: Option<&'a str>,
    /// Its admin interface.
    pub admin: &'a Admin,
    /// Whether it goes on.
    pub running: &'a dyn Running,
    /// What it is to show.
    pub expected: Vec<Expected>,
}

/// Waits until every proxy shows all that is expected of it. Gives for each the seconds since `written_at`.
///
/// # Errors
/// Where one does not in time, with what it lacks; where one refuses its configuration or ends, with its words; where
/// `check` fails, which is asked again and again.
pub fn wait_until_propagated(
    awaited: &[Awaited<'_>],
    written_at: Instant,
    check: impl Fn() -> Result<(), EnvironmentError>,
) -> Result<BTreeMap<String, f64>, EnvironmentError> {
    let mut in_force = BTreeMap::new();
    let mut lacking = String::new();
    let waited = wait_with_progress("the proxies have their configuration", PROPAGATION_TIMEOUT, || {
        check()?;
        let mut clusters = Vec::new();
        for proxy in awaited {
            if in_force.contains_key(proxy.name) {
                continue;
            }
            let operation = format!("wait until {} has its configuration", proxy.name);
            proxy.running.check(&operation)?;
            let seen = first_lacking(proxy).map_err(|error| EnvironmentError::new(operation, error))?;
            match seen.lacking {
                None => {
                    in_force.insert(proxy.name.to_owned(), written_at.elapsed().as_secs_f64());
                }
                Some(expected) => lacking = format!("{} does not show {expected}", proxy.name),
            }
            clusters.push(seen.clusters);
            // One that holds thousands takes long to tell of them.
            check()?;
        }
        let done = in_force.len() == awaited.len();
        Ok(if done { Progress::Done(()) } else { Progress::At((lacking.clone(), clusters)) })
    });
    match waited {
        Ok(()) => Ok(in_force),
        // What a proxy says itself is worth more.
        Err(error) if lacking.is_empty() || error.hint.is_some() => Err(error),
        Err(error) => Err(error.with_hint(format!("the last look: {lacking}"))),
    }
}

/// What a look at a proxy showed.
struct Seen<'a> {
    /// The first thing that it does not show yet.
    lacking: Option<&'a Expected>,
    /// Clusters that it has so far; 0 where it was not asked.
    clusters: usize,
}

/// How far a proxy is. Each kind is asked for once; the dumps, which are large in a large
/// mesh, only when the rest is there.
fn first_lacking<'a>(proxy: &'a Awaited<'_>) -> Result<Seen<'a>, AdminError> {
    let mut answers = Answers {
        admin: proxy.admin,
        clusters: None,
        listeners: None,
        chains: None,
        routes: None,
        ztunnel: None,
    };
    let mut expected: Vec<&Expected> = proxy.expected.iter().collect();
    expected.sort_by_key(|expected| {
        !matches!(expected, Expected::Cluster(_) | Expected::Endpoint(..) | Expected::Listener(_))
    });
    let mut lacking = None;
    for expected in expected {
        if !answers.show(expected)? {
            lacking = Some(expected);
            break;
        }
    }
    Ok(Seen { lacking, clusters: answers.clusters.map_or(0, |clusters| clusters.len()) })
}

/// What a proxy has answered so far.
struct Answers<'a> {
    admin: &'a Admin,
    clusters: Option<BTreeMap<String, BTreeSet<SocketAddrV4>>>,
    listeners: Option<BTreeSet<String>>,
    chains: Option<String>,
    routes: Option<String>,
    ztunnel: Option<ztunnel::state::Dump>,
}

impl Answers<'_> {
    fn show(&mut self, expected: &Expected) -> Result<bool, AdminError> {
        Ok(match expected {
            Expected::Cluster(name) => self.clusters()?.contains_key(name),
            Expected::Endpoint(name, address) => {
                self.clusters()?.get(name).is_some_and(|endpoints| endpoints.contains(address))
            }
            Expected::Listener(name) => self.listeners()?.contains(name),
            Expected::FilterChain(name) => self.listener_dump()?.contains(&format!("\"name\": \"{name}\"")),
            Expected::TcpRoute(cluster) => {
                self.listener_dump()?.contains(&format!("\"cluster\": \"{cluster}\""))
            }
            Expected::AmbientService { host, behind_waypoint } => {
                self.ztunnel()?.has_service(host, *behind_waypoint)
            }
            Expected::AmbientWorkload { namespace, name } => {
                self.ztunnel()?.has_ambient_workload(namespace, name)
            }
            Expected::AmbientPolicy { namespace, name } => self.ztunnel()?.has_policy(namespace, name),
            Expected::Accepts(Accepts { port, plaintext }) => {
                let dump: Value = serde_json::from_str(self.listener_dump()?)
                    .map_err(|error| self.admin.error(LISTENER_DUMP, AdminCause::Shape(error)))?;
                accepts_plaintext(&dump, *port) == Some(*plaintext)
            }
            Expected::InListeners(text) => self.listener_dump()?.contains(text),
            Expected::InRoutes(text) => self.route_dump()?.contains(text),
            Expected::Domain(name) => self.route_dump()?.contains(&format!("\"{name}\"")),
        })
    }

    fn listener_dump(&mut self) -> Result<&str, AdminError> {
        dump(self.admin, LISTENER_DUMP, &mut self.chains)
    }

    fn route_dump(&mut self) -> Result<&str, AdminError> {
        dump(self.admin, "/config_dump?resource=dynamic_route_configs", &mut self.routes)
    }

    fn ztunnel(&mut self) -> Result<&ztunnel::state::Dump, AdminError> {
        if self.ztunnel.is_none() {
            self.ztunnel = Some(self.admin.ask_long_json("/config_dump")?);
        }
        Ok(self.ztunnel.as_ref().expect("it was just set"))
    }

    fn clusters(&mut self) -> Result<&BTreeMap<String, BTreeSet<SocketAddrV4>>, AdminError> {
        if self.clusters.is_none() {
            let answer: Clusters = self.admin.ask_long_json("/clusters?format=json")?;
            self.clusters = Some(answer.healthy());
        }
        Ok(self.clusters.as_ref().expect("it was just set"))
    }

    fn listeners(&mut self) -> Result<&BTreeSet<String>, AdminError> {
        if self.listeners.is_none() {
            let answer: Listeners = self.admin.ask_json("/listeners?format=json")?;
            self.listeners =
                Some(answer.listener_statuses.into_iter().map(|listener| listener.name).collect());
        }
        Ok(self.listeners.as_ref().expect("it was just set"))
    }
}

/// A part of the proxy's configuration as text, asked for once.
fn dump<'a>(admin: &Admin, path: &str, known: &'a mut Option<String>) -> Result<&'a str, AdminError> {
    if known.is_none() {
        let answer = admin.ask_long(path)?;
        *known = Some(String::from_utf8_lossy(&answer).into_owned());
    }
    Ok(known.as_deref().expect("it was just set"))
}

const LISTENER_DUMP: &str = "/config_dump?resource=dynamic_listeners";

/// `/clusters?format=json`.
#[derive(Deserialize)]
struct Clusters {
    #[serde(default)]
    cluster_statuses: Vec<Cluster>,
}

#[derive(Deserialize)]
struct Cluster {
    name: String,
    #[serde(default)]
    host_statuses: Vec<Host>,
}

#[derive(Deserialize)]
struct Host {
    address: Address,
    #[serde(default)]
    health_status: Health,
}

#[derive(Deserialize)]
struct Address {
    /// Absent where a host is a pipe or an internal listener.
    socket_address: Option<SocketAddress>,
}

#[derive(Deserialize)]
struct SocketAddress {
    address: String,
    port_value: u16,
}

#[derive(Default, Deserialize)]
struct Health {
    eds_health_status: Option<String>,
}

impl Clusters {
    /// The addresses of each cluster that requests may be sent to.
    fn healthy(self) -> BTreeMap<String, BTreeSet<SocketAddrV4>> {
        let healthy = |host: Host| {
            let status = host.health_status.eds_health_status;
            let address = host.address.socket_address?;
            let ip: Ipv4Addr = address.address.parse().ok()?;
            let is_healthy = status.is_none_or(|status| status == "HEALTHY" || status == "UNKNOWN");
            is_healthy.then_some(SocketAddrV4::new(ip, address.port_value))
        };
        let hosts = |hosts: Vec<Host>| hosts.into_iter().filter_map(healthy).collect();
        self.cluster_statuses
            .into_iter()
            .map(|cluster| (cluster.name, hosts(cluster.host_statuses)))
            .collect()
    }
}

/// `/listeners?format=json`.
#[derive(Deserialize)]
struct Listeners {
    #[serde(default)]
    listener_statuses: Vec<Listener>,
}

#[derive(Deserialize)]
struct Listener {
    name: String,
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

    #[test]
    fn only_addresses_that_requests_may_be_sent_to_count() {
        let answer = r#"{"cluster_statuses": [
            {"name": "outbound|8080||server", "host_statuses": [
                {"address": {"socket_address": {"address": "10.77.0.4", "port_value": 8080}},
                 "health_status": {"eds_health_status": "HEALTHY"}, "weight": 1},
                {"address": {"socket_address": {"address": "10.77.0.5", "port_value": 8080}},
                 "health_status": {"eds_health_status": "UNHEALTHY"}},
                {"address": {"pipe": {"path": "/socket"}}}]},
            {"name": "inbound|8080||"}]}"#;
        let clusters: Clusters = serde_json::from_str(answer).unwrap();
        let healthy = clusters.healthy();
        let expected = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 4), 8080);
        assert_eq!(healthy["outbound|8080||server"], BTreeSet::from([expected]));
        assert!(healthy["inbound|8080||"].is_empty());
        let empty: Clusters = serde_json::from_str("{}").unwrap();
        assert!(empty.healthy().is_empty());
    }
}
