//! The awaited parts of the configuration that a proxy shows at its admin port.

use super::propagation::Expected;
use crate::admin::{Admin, AdminError};
use crate::envoy::traffic::any_of;
use crate::ztunnel;
use results::percent_encode;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Clusters and their endpoints, several lines each: `name::key::value` and `name::address::key::value`.
const CLUSTERS: &str = "/clusters";
/// End of the line of an endpoint that requests may be sent to.
const HEALTHY: &str = "::health_flags::healthy";
const RECEIVED_CLUSTERS: &str =
    "/stats?format=json&type=Counters&filter=%5Ecluster_manager%5C.cluster_(added%7Cmodified)$";
/// Active listeners, one per line: `name::address`.
const LISTENERS: &str = "/listeners";
const LISTENER_DUMP: &str = "/config_dump?resource=dynamic_listeners";
const ROUTE_DUMP: &str = "/config_dump?resource=dynamic_route_configs";
/// Maximum total length of names in a filter: servers limit the length of paths.
const MAX_FILTER_BYTES: usize = 4096;

/// A proxy's configuration at one moment. Each part is requested at most once, when needed.
#[derive(Debug)]
pub(super) struct ShownConfiguration<'a> {
    admin: &'a Admin,
    clusters_path: String,
    /// Names of clusters, and `name::address` of each healthy endpoint.
    clusters: Option<HashSet<String>>,
    ztunnel: Option<ztunnel::state::Dump>,
    /// Other responses, by their path.
    texts: BTreeMap<&'static str, String>,
}

impl<'a> ShownConfiguration<'a> {
    /// `expected`: everything that will be looked up.
    pub fn new(admin: &'a Admin, expected: &[Expected]) -> Self {
        let (clusters, ztunnel, texts) = Default::default();
        Self { admin, clusters_path: clusters_path(expected), clusters, ztunnel, texts }
    }

    /// Number of clusters that the proxy has received so far; 0 if its clusters were not requested.
    pub fn received_clusters(&self) -> Result<u64, AdminError> {
        match self.clusters {
            Some(_) => {
                let counters = self.admin.counters_at(RECEIVED_CLUSTERS)?;
                Ok(counters.values().copied().fold(0, u64::saturating_add))
            }
            None => Ok(0),
        }
    }

    pub fn has(&mut self, expected: &Expected) -> Result<bool, AdminError> {
        Ok(match expected {
            Expected::Cluster(name) => self.clusters()?.contains(name),
            Expected::Endpoint(name, address) => self.clusters()?.contains(&format!("{name}::{address}")),
            Expected::Listener(name) => {
                let is_wanted = |line: &str| line.split_once("::").is_some_and(|(own, _)| own == name);
                self.text(LISTENERS)?.lines().any(is_wanted)
            }
            Expected::FilterChain(name) => {
                self.text(LISTENER_DUMP)?.contains(&format!("\"name\": \"{name}\""))
            }
            Expected::TcpRoute(cluster) => {
                self.text(LISTENER_DUMP)?.contains(&format!("\"cluster\": \"{cluster}\""))
            }
            Expected::Domain(name) => self.text(ROUTE_DUMP)?.contains(&format!("\"{name}\"")),
            Expected::AmbientService { host, behind_waypoint } => {
                self.ztunnel()?.has_service(host, *behind_waypoint)
            }
            Expected::AmbientWorkload { namespace, name, by_hbone } => {
                self.ztunnel()?.has_workload(namespace, name, *by_hbone)
            }
            Expected::AmbientPolicy { namespace, name } => self.ztunnel()?.has_policy(namespace, name),
        })
    }

    fn text(&mut self, path: &'static str) -> Result<&str, AdminError> {
        Ok(match self.texts.entry(path) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let response = self.admin.get_long(path)?;
                unknown.insert(String::from_utf8_lossy(&response).into_owned())
            }
        })
    }

    fn ztunnel(&mut self) -> Result<&ztunnel::state::Dump, AdminError> {
        once(&mut self.ztunnel, || self.admin.ask_long_json("/config_dump"))
    }

    fn clusters(&mut self) -> Result<&HashSet<String>, AdminError> {
        let response = || self.admin.get_long(&self.clusters_path);
        once(&mut self.clusters, || Ok(clusters_and_endpoints(&String::from_utf8_lossy(&response()?))))
    }
}

fn once<T>(known: &mut Option<T>, request: impl FnOnce() -> Result<T, AdminError>) -> Result<&T, AdminError> {
    if known.is_none() {
        *known = Some(request()?);
    }
    Ok(known.as_ref().expect("it was just set"))
}

/// Path that lists only the expected clusters: printing all those of a large mesh takes CPU while the proxy
/// is being configured.
fn clusters_path(expected: &[Expected]) -> String {
    let names = expected.iter().filter_map(|expected| match expected {
        Expected::Cluster(name) | Expected::Endpoint(name, _) => Some(name),
        _ => None,
    });
    let names: BTreeSet<&String> = names.collect();
    if names.iter().map(|name| name.len()).sum::<usize>() > MAX_FILTER_BYTES {
        return CLUSTERS.to_owned();
    }
    format!("{CLUSTERS}?filter={}", percent_encode(&format!("^({})$", any_of(names))))
}

pub(crate) fn clusters_and_endpoints(response: &str) -> HashSet<String> {
    let names = response.lines().filter_map(|line| Some(line.split_once("::")?.0));
    let healthy = response.lines().filter_map(|line| line.strip_suffix(HEALTHY));
    names.chain(healthy).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddrV4};

    #[test]
    fn clusters_are_filtered_by_name() {
        let domain = Expected::Domain("a.mesh".to_owned());
        let cluster = Expected::Cluster("outbound|80||a-1.mesh".to_owned());
        let endpoint = Expected::Endpoint("b".to_owned(), SocketAddrV4::new(Ipv4Addr::LOCALHOST, 80));
        let path = clusters_path(&[domain, endpoint, cluster]);
        let names = "b%7Coutbound%5C%7C80%5C%7C%5C%7Ca%5C-1%5C.mesh";
        assert_eq!(path, format!("/clusters?filter=%5E%28{names}%29%24"));
        let many: Vec<Expected> = (0..1000).map(|n| Expected::Cluster(format!("cluster-{n}"))).collect();
        assert_eq!(clusters_path(&many), CLUSTERS);
    }

    #[test]
    fn only_addresses_eligible_for_requests_are_listed() {
        let response = "inbound|8080||::added_via_api::true\n\
                        outbound|80||a::default_priority::max_connections::1024\n\
                        outbound|80||a::10.77.0.4:8080::cx_active::0\n\
                        outbound|80||a::10.77.0.4:8080::health_flags::healthy\n\
                        outbound|80||a::10.77.0.5:8080::health_flags::/failed_eds_health\n";
        let expected = ["inbound|8080||", "outbound|80||a", "outbound|80||a::10.77.0.4:8080"];
        assert_eq!(clusters_and_endpoints(response), expected.map(str::to_owned).into());
        assert!(clusters_and_endpoints("").is_empty());
    }
}
