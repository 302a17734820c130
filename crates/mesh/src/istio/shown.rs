//! The awaited parts of the configuration that a proxy shows at its admin port.

use super::expected::Expected;
use crate::admin::{Admin, AdminCause, AdminError};
use crate::envoy::plaintext::accepts_plaintext;
use crate::proof::evidence::Accepts;
use crate::ztunnel;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4};

/// A proxy's configuration at one moment. Each part is requested at most once, when needed.
#[derive(Debug)]
pub(super) struct ShownConfiguration<'a> {
    admin: &'a Admin,
    clusters_path: String,
    clusters: Option<BTreeMap<String, BTreeSet<SocketAddrV4>>>,
    listeners: Option<BTreeSet<String>>,
    chains: Option<String>,
    routes: Option<String>,
    ztunnel: Option<ztunnel::state::Dump>,
}

impl<'a> ShownConfiguration<'a> {
    /// `expected`: everything that will be looked up.
    pub fn new(admin: &'a Admin, expected: &[&Expected]) -> Self {
        let (clusters, listeners, chains, routes, ztunnel) = Default::default();
        Self { admin, clusters_path: clusters_path(expected), clusters, listeners, chains, routes, ztunnel }
    }

    /// Number of clusters that the proxy has received so far; 0 if its clusters were not requested.
    pub fn received_clusters(&self) -> Result<u64, AdminError> {
        match self.clusters {
            Some(_) => Ok(self.admin.counters_at(RECEIVED_CLUSTERS)?.values().sum()),
            None => Ok(0),
        }
    }

    pub fn has(&mut self, expected: &Expected) -> Result<bool, AdminError> {
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
            Expected::Domain(name) => self.route_dump()?.contains(&format!("\"{name}\"")),
        })
    }

    fn listener_dump(&mut self) -> Result<&str, AdminError> {
        Ok(once(&mut self.chains, || self.admin.get_long(LISTENER_DUMP).map(|dump| text(&dump)))?)
    }

    fn route_dump(&mut self) -> Result<&str, AdminError> {
        Ok(once(&mut self.routes, || self.admin.get_long(ROUTE_DUMP).map(|dump| text(&dump)))?)
    }

    fn ztunnel(&mut self) -> Result<&ztunnel::state::Dump, AdminError> {
        once(&mut self.ztunnel, || self.admin.ask_long_json("/config_dump"))
    }

    fn clusters(&mut self) -> Result<&BTreeMap<String, BTreeSet<SocketAddrV4>>, AdminError> {
        let clusters = || self.admin.ask_long_json(&self.clusters_path).map(Clusters::healthy);
        once(&mut self.clusters, clusters)
    }

    fn listeners(&mut self) -> Result<&BTreeSet<String>, AdminError> {
        let names =
            |listeners: Listeners| listeners.listener_statuses.into_iter().map(|listener| listener.name);
        let listeners = || Ok(names(self.admin.get_json("/listeners?format=json")?).collect());
        once(&mut self.listeners, listeners)
    }
}

fn once<T>(known: &mut Option<T>, request: impl FnOnce() -> Result<T, AdminError>) -> Result<&T, AdminError> {
    if known.is_none() {
        *known = Some(request()?);
    }
    Ok(known.as_ref().expect("it was just set"))
}

fn text(response: &[u8]) -> String {
    String::from_utf8_lossy(response).into_owned()
}

const ROUTE_DUMP: &str = "/config_dump?resource=dynamic_route_configs";
const CLUSTERS: &str = "/clusters?format=json";
const RECEIVED_CLUSTERS: &str =
    "/stats?format=json&type=Counters&filter=%5Ecluster_manager%5C.cluster_(added%7Cmodified)$";
/// Maximum total length of names in a filter: servers limit the length of paths.
const MAX_FILTER_BYTES: usize = 4096;
const LISTENER_DUMP: &str = "/config_dump?resource=dynamic_listeners";

/// Path that lists only the expected clusters: printing all those of a large mesh takes CPU while the proxy
/// is being configured.
fn clusters_path(expected: &[&Expected]) -> String {
    let names = expected.iter().filter_map(|expected| match expected {
        Expected::Cluster(name) | Expected::Endpoint(name, _) => Some(name.as_str()),
        _ => None,
    });
    let names: BTreeSet<&str> = names.collect();
    if names.iter().map(|name| name.len()).sum::<usize>() > MAX_FILTER_BYTES {
        return CLUSTERS.to_owned();
    }
    let mut path = format!("{CLUSTERS}&filter=^(");
    for (index, name) in names.into_iter().enumerate() {
        path.push_str(if index > 0 { "%7C" } else { "" });
        for byte in name.bytes() {
            // Writing to a string cannot fail. Other characters are escaped for the regular expression, and
            // then for the path.
            let _ = match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => write!(path, "{}", char::from(byte)),
                _ => write!(path, "%5C%{byte:02X}"),
            };
        }
    }
    path + ")$"
}

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
    /// Absent if a host is a pipe or an internal listener.
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
    /// Addresses of each cluster that requests may be sent to.
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
    fn clusters_are_filtered_by_name() {
        let domain = Expected::Domain("a.mesh".to_owned());
        let cluster = Expected::Cluster("outbound|80||a-1.mesh".to_owned());
        let endpoint = Expected::Endpoint("b".to_owned(), SocketAddrV4::new(Ipv4Addr::LOCALHOST, 80));
        let path = clusters_path(&[&domain, &endpoint, &cluster]);
        assert_eq!(path, "/clusters?format=json&filter=^(b%7Coutbound%5C%7C80%5C%7C%5C%7Ca-1%5C%2Emesh)$");
        let many: Vec<Expected> = (0..1000).map(|n| Expected::Cluster(format!("cluster-{n}"))).collect();
        assert_eq!(clusters_path(&many.iter().collect::<Vec<_>>()), CLUSTERS);
    }

    #[test]
    fn only_addresses_eligible_for_requests_are_listed() {
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
