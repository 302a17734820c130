//! Propagation: when the configuration that istiod sends reaches the proxies, and how long that takes.
//! Proxies are polled in parallel. State that a proxy has shown is not requested again. Its dumps, which may
//! be large, are requested only once it shows everything else. Read [`super::expected`] first.

pub use super::expected::Expected;
use super::shown::ShownConfiguration;
use crate::Result;
use crate::admin::{Admin, AdminCause, AdminError};
use crate::concurrent::side_by_side;
use crate::wait::{Progress, wait_with_progress, with_last_state};
use experiment::environment::{ErrorContext, error_chain};
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

/// Timeout without any change at the proxies. istiod waits 100 ms for more changes, at most 10 s, and takes
/// some time to compute the configuration of a large mesh.
const PROPAGATION_TIMEOUT: Duration = Duration::from_secs(60);

pub trait Running: fmt::Debug {
    /// Returns an error that names `operation` if the proxy has ended, was stopped, or logged a rejection.
    fn check(&self, operation: &str) -> Result<()>;
}

#[derive(Debug)]
pub struct Awaited<'a> {
    pub name: &'a str,
    /// Its name at istiod; absent for a ztunnel, which shows all of its configuration, so that no acks are awaited.
    pub known_as: Option<&'a str>,
    pub admin: &'a Admin,
    pub running: &'a dyn Running,
    pub expected: Vec<Expected>,
}

/// Waits until every proxy shows everything expected. Returns each proxy's seconds since `written_at`, or an
/// error as soon as `check` does.
pub fn wait_until_propagated(
    awaited: &[Awaited<'_>],
    written_at: Instant,
    check: impl Fn() -> Result<()>,
) -> Result<BTreeMap<String, f64>> {
    let mut pending: Vec<Pending<'_>> = awaited.iter().map(Pending::new).collect();
    let mut propagated = BTreeMap::new();
    let mut lacking = String::new();
    let waited = wait_with_progress("the proxies have their configuration", PROPAGATION_TIMEOUT, || {
        check()?;
        let operation = |name: &str| format!("wait until {name} has its configuration");
        for proxy in awaited.iter().filter(|proxy| !propagated.contains_key(proxy.name)) {
            proxy.running.check(&operation(proxy.name))?;
        }
        let polled = side_by_side(std::mem::take(&mut pending), |mut proxy: Pending<'_>| {
            let polled = proxy.poll();
            (proxy, polled)
        });
        let mut progress = Vec::new();
        for (proxy, polled) in polled {
            match polled {
                Err(error) if !matches!(error.cause, AdminCause::TimedOut(_)) => {
                    return Err(error).context(operation(proxy.name));
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

struct Pending<'a> {
    name: &'a str,
    admin: &'a Admin,
    /// Not shown yet, in reverse order of requests.
    expected: Vec<&'a Expected>,
    /// Clusters received so far, as of the last poll.
    clusters: u64,
}

impl<'a> Pending<'a> {
    fn new(proxy: &'a Awaited<'_>) -> Self {
        let mut expected: Vec<&Expected> = proxy.expected.iter().rev().collect();
        expected.sort_by_key(|expected| {
            matches!(expected, Expected::Cluster(_) | Expected::Endpoint(..) | Expected::Listener(_))
        });
        Self { name: proxy.name, admin: proxy.admin, expected, clusters: 0 }
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

    #[derive(Debug)]
    struct GoesOn;

    impl Running for GoesOn {
        fn check(&self, _operation: &str) -> Result<()> {
            Ok(())
        }
    }

    /// A proxy whose listener appears on the third request for listeners. Returns the paths of `requests` requests.
    fn serve(listener: &UnixListener, requests: usize) -> Vec<String> {
        let mut paths: Vec<String> = Vec::new();
        for _ in 0..requests {
            let (mut stream, path) = accept(listener);
            let seen = paths.iter().filter(|known| **known == path).count();
            let body = match path.as_str() {
                "/clusters?format=json&filter=^(a)$" => r#"{"cluster_statuses":[{"name":"a"}]}"#,
                _ if path.starts_with("/stats") => r#"{"stats":[]}"#,
                "/listeners?format=json" if seen < 2 => "{}",
                "/listeners?format=json" => r#"{"listener_statuses":[{"name":"0.0.0.0_80"}]}"#,
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
        let awaited = [Awaited { name: "client-proxy", known_as: None, admin, running: &GoesOn, expected }];
        wait_until_propagated(&awaited, Instant::now(), || Ok(())).unwrap()
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
            first.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
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
