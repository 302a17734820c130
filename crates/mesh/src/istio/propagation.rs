//! Propagation: when the configuration that istiod sends reaches the proxies, and how long that takes.
//! Proxies are polled in parallel. State that a proxy has shown is not requested again. Its dumps, which may
//! be large, are requested only once it shows everything else. Read [`Expected`] first.

use super::shown::ShownConfiguration;
use crate::Result;
use crate::admin::{Admin, AdminCause, AdminError};
use crate::concurrent::side_by_side;
use crate::envoy::hop::{Hop, Layer};
use crate::wait::{Progress, wait_with_progress, with_last_state};
use experiment::environment::{ErrorContext, error_chain};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

/// Timeout without any change at the proxies. istiod waits 100 ms for more changes, at most 10 s, and takes
/// some time to compute the configuration of a large mesh.
const PROPAGATION_TIMEOUT: Duration = Duration::from_secs(60);

/// State that a proxy shows once it has its configuration.
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
    /// At a ztunnel: a pod, and whether it is reached over HBONE.
    AmbientWorkload {
        namespace: String,
        name: String,
        by_hbone: bool,
    },
    AmbientPolicy {
        namespace: String,
        name: String,
    },
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
            Self::AmbientWorkload { namespace, name, by_hbone } => {
                write!(f, "the pod {namespace}/{name} {} HBONE", if *by_hbone { "by" } else { "without" })
            }
            Self::AmbientPolicy { namespace, name } => write!(f, "the policy {namespace}/{name}"),
        }
    }
}

/// A proxy that has yet to show its configuration.
#[derive(Debug)]
pub struct Awaited<'a> {
    name: &'a str,
    admin: &'a Admin,
    /// Not shown yet, in reverse order of requests.
    expected: Vec<Expected>,
    /// Clusters received so far, as of the last poll.
    clusters: u64,
}

/// Waits until every proxy shows everything expected. Returns each proxy's seconds since `written_at`, or an
/// error as soon as `check` does: if a proxy has ended, was stopped, or rejected its configuration.
pub fn wait_until_propagated(
    awaited: Vec<Awaited<'_>>,
    written_at: Instant,
    check: impl Fn() -> Result<()>,
) -> Result<BTreeMap<String, f64>> {
    let mut pending = awaited;
    let mut propagated = BTreeMap::new();
    let mut lacking = String::new();
    let waited = wait_with_progress("the proxies have their configuration", PROPAGATION_TIMEOUT, || {
        check()?;
        let polled = side_by_side(std::mem::take(&mut pending), |mut proxy: Awaited<'_>| {
            let polled = proxy.poll();
            (proxy, polled)
        });
        let mut progress = Vec::new();
        for (proxy, polled) in polled {
            match polled {
                Err(error) if !matches!(error.cause, AdminCause::TimedOut(_)) => {
                    return Err(error).context(format!("wait until {} has its configuration", proxy.name));
                }
                // A proxy may be unresponsive for seconds while it processes a large configuration; the
                // timeout ends longer silences.
                Err(error) => lacking = error_chain(&error),
                Ok(()) => match proxy.expected.last() {
                    None => {
                        propagated.insert(proxy.name.to_owned(), written_at.elapsed().as_secs_f64());
                        continue;
                    }
                    Some(expected) => lacking = format!("{} does not show {expected}", proxy.name),
                },
            }
            progress.push((proxy.name, proxy.expected.len(), proxy.clusters));
            pending.push(proxy);
        }
        Ok(if pending.is_empty() { Progress::Done(()) } else { Progress::At(progress) })
    });
    waited.map(|()| propagated).map_err(|error| with_last_state(error, &lacking))
}

impl<'a> Awaited<'a> {
    pub fn new(name: &'a str, admin: &'a Admin, mut expected: Vec<Expected>) -> Self {
        expected.reverse();
        expected.sort_by_key(|expected| {
            matches!(expected, Expected::Cluster(_) | Expected::Endpoint(..) | Expected::Listener(_))
        });
        Self { name, admin, expected, clusters: 0 }
    }

    /// Drops the expected state that the proxy shows, up to the first that is missing. If any is missing,
    /// counts the clusters received.
    fn poll(&mut self) -> Result<(), AdminError> {
        let mut shown = ShownConfiguration::new(self.admin, &self.expected);
        while let Some(expected) = self.expected.last() {
            if !shown.has(expected)? {
                break;
            }
            self.expected.pop();
        }
        if !self.expected.is_empty() {
            self.clusters = shown.received_clusters()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::dial::UnixSocket;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::{UnixListener, UnixStream};

    /// A proxy whose listener appears on the third request for listeners. Returns the paths of `requests` requests.
    fn serve(listener: &UnixListener, requests: usize) -> Vec<String> {
        let mut paths: Vec<String> = Vec::new();
        for _ in 0..requests {
            let (mut stream, path) = accept(listener);
            let seen = paths.iter().filter(|known| **known == path).count();
            let body = match path.as_str() {
                "/clusters?filter=%5E%28a%29%24" => "a::added_via_api::true\n",
                _ if path.starts_with("/stats") => r#"{"stats":[]}"#,
                "/listeners" if seen < 2 => "virtualOutbound::0.0.0.0:15001\n",
                "/listeners" => "virtualOutbound::0.0.0.0:15001\n0.0.0.0_80::0.0.0.0:80\n",
                _ => r#"{"configs":[{"domains":["a.mesh"]}]}"#,
            };
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").unwrap();
            stream.write_all(body.as_bytes()).unwrap();
            paths.push(path);
        }
        paths
    }

    /// Connection and path of one request.
    fn accept(listener: &UnixListener) -> (UnixStream, String) {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let length = stream.read(&mut request).unwrap();
        let path = String::from_utf8_lossy(&request[..length]).split(' ').nth(1).unwrap().to_owned();
        (stream, path)
    }

    fn wait(admin: &Admin, expected: Vec<Expected>) -> BTreeMap<String, f64> {
        let awaited = vec![Awaited::new("client-proxy", admin, expected)];
        wait_until_propagated(awaited, Instant::now(), || Ok(())).unwrap()
    }

    #[test]
    fn expected_state_is_described() {
        let endpoint = Expected::Endpoint("outbound|80||a".to_owned(), "10.77.0.4:8080".parse().unwrap());
        assert_eq!(endpoint.to_string(), "10.77.0.4:8080 as a healthy endpoint of outbound|80||a");
    }

    #[test]
    fn shown_state_is_not_requested_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("admin");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || serve(&listener, 6));
        let expected = vec![
            Expected::Domain("a.mesh".to_owned()),
            Expected::Cluster("a".to_owned()),
            Expected::Listener("0.0.0.0_80".to_owned()),
        ];
        let propagated = wait(&Admin::new("client-proxy", UnixSocket(path)), expected);
        assert!(propagated["client-proxy"] >= 0.0);
        let paths = server.join().unwrap();
        let resource = |path: &String| path[..path.find(['?', '&']).unwrap_or(path.len())].to_owned();
        let [clusters, listeners] = ["/clusters", "/listeners"].map(str::to_owned);
        let progress = "/stats".to_owned();
        let expected =
            [clusters, listeners.clone(), progress, listeners.clone(), listeners, "/config_dump".to_owned()];
        assert_eq!(paths.iter().map(resource).collect::<Vec<_>>(), expected);
        assert!(paths[5].starts_with("/config_dump?resource=dynamic_route_configs"), "{paths:?}");
    }

    #[test]
    fn silent_proxy_is_polled_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("admin");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let (mut first, clusters) = accept(&listener);
            first.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n\n").unwrap();
            let (_unanswered, silent) = accept(&listener);
            assert!(silent.starts_with("/stats"), "{silent}");
            (clusters, serve(&listener, 1).remove(0))
        });
        let admin = Admin::new("client-proxy", UnixSocket(path)).within(Duration::from_millis(300));
        wait(&admin, vec![Expected::Cluster("a".to_owned())]);
        let (before, after) = server.join().unwrap();
        assert_eq!(before, after);
    }
}
