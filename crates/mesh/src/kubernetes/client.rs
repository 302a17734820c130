//! Client of the Kubernetes API for blocking callers.
//! kube's client runs on its own thread, which keeps the network namespace of the thread that creates it.
//! Every request has a timeout, every response a maximum size, and every error names the object. An object is
//! namespaced exactly if it has a namespace.

use super::kubeconfig;
use super::request::{ApiError, ApiRequest, MAX_RESPONSE_BYTES, Response, send};
use super::rest_mapper::RestMapper;
use crate::Result;
use experiment::environment::{ErrorContext, error_chain};
use futures_util::stream::{self, StreamExt as _};
use http::Uri;
use http_body_util::Limited;
use hyper_util::client::proxy::matcher::Matcher;
use kube::Client;
use kube::client::{ClientBuilder, DynBody};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::env;
use std::fmt;
use std::future;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tokio::runtime::{self, Handle, Runtime};
use tokio::task::JoinSet;
use tower::util::MapResponseLayer;

/// Time until the next response to a batch of requests. The total is not bounded: ten thousand Services take minutes.
const NEXT_RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a response to a single request.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout of a probe: an API that is starting may drop one request and respond to the next.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval of checks whether a response can still arrive.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_IN_FLIGHT: usize = 16;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum OnError {
    Stop,
    Continue,
}

/// Client of the Kubernetes API. Dropping it ends its thread.
pub struct ApiClient {
    client: Client,
    mapper: Mutex<RestMapper>,
    /// Has one thread.
    runtime: Runtime,
    /// Returns an error once waiting for a response is pointless.
    stop_check: Box<dyn Fn() -> Result<()> + Send + Sync>,
}

impl fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiClient").finish_non_exhaustive()
    }
}

impl ApiClient {
    /// Creates a client with the credentials of a kubeconfig, without sending anything. Requests fail once
    /// `stop_check` does. They go through the proxy of the kubeconfig, else through that of the environment
    /// (`HTTPS_PROXY`, `NO_PROXY`) unless the server is on a loopback address.
    pub fn new(
        kubeconfig: &Value,
        stop_check: impl Fn() -> Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        let has_own_proxy = kubeconfig::proxy(kubeconfig).is_some();
        let no_proxy = ["NO_PROXY", "no_proxy"].into_iter().find_map(|name| env::var(name).ok());
        let is_proxied = |server: &Uri| has_own_proxy || uses_environment_proxy(server, no_proxy.as_deref());
        Self::open(kubeconfig, is_proxied, stop_check)
    }

    /// As [`Self::new`], but never through a proxy.
    pub fn direct(
        kubeconfig: &Value,
        stop_check: impl Fn() -> Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        Self::open(kubeconfig, |_| false, stop_check)
    }

    fn open(
        kubeconfig: &Value,
        is_proxied: impl Fn(&Uri) -> bool,
        stop_check: impl Fn() -> Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        let operation = "create a client of the Kubernetes API";
        let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig.clone()).context(operation)?;
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("Kubernetes API")
            .enable_all()
            .build()
            .context(operation)?;
        let client = runtime.block_on(client(kubeconfig, is_proxied)).context(operation)?;
        Ok(Self { client, mapper: Mutex::default(), runtime, stop_check: Box::new(stop_check) })
    }

    pub fn check_not_stopped(&self) -> Result<()> {
        (self.stop_check)()
    }

    pub fn is_ready(&self) -> bool {
        self.probe(ApiRequest::get("probe readiness of the Kubernetes API", "/readyz")) == Some(true)
    }

    /// True if the API handles requests, though parts of it may still be starting.
    pub fn is_alive(&self) -> bool {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?limit=1";
        self.probe(ApiRequest::get("probe the Kubernetes API", path)) == Some(true)
    }

    /// True if the API responds within `timeout`, even with an error.
    pub fn responds_within(&self, timeout: Duration) -> bool {
        let give_up_at = Instant::now() + timeout;
        while Instant::now() < give_up_at && self.check_not_stopped().is_ok() {
            let sent_at = Instant::now();
            let request = ApiRequest::get("probe liveness of the Kubernetes API", "/livez/ping");
            if self.probe(request).is_some() {
                return true;
            }
            // The connection may have broken at once.
            std::thread::sleep(POLL_INTERVAL.saturating_sub(sent_at.elapsed()));
        }
        // Unknown if the probe was stopped.
        self.check_not_stopped().is_err()
    }

    /// True if the API accepts a request; absent if it does not respond.
    pub(super) fn probe(&self, request: Result<ApiRequest>) -> Option<bool> {
        match self.send(PROBE_TIMEOUT, request.ok()?) {
            Ok(_) => Some(true),
            Err(error) => error.code.map(|_| false),
        }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Runs tasks on the client's thread.
    pub fn runtime(&self) -> &Handle {
        self.runtime.handle()
    }

    pub(super) fn mapper(&self) -> MutexGuard<'_, RestMapper> {
        self.mapper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn send(&self, timeout: Duration, request: ApiRequest) -> Result<String, ApiError> {
        let mut responses = self.send_in_order(timeout, vec![request])?;
        Ok(responses.pop().map(|response| response.text).unwrap_or_default())
    }

    /// Sends requests, each once the previous one has its response. Stops at the first error.
    pub fn send_in_order(
        &self,
        timeout: Duration,
        requests: Vec<ApiRequest>,
    ) -> Result<Vec<Response>, ApiError> {
        self.send_some(timeout, 1, requests, OnError::Stop, &|_| ())
    }

    pub(super) fn send_all(&self, requests: impl Iterator<Item = Result<ApiRequest>>) -> Result<Vec<String>> {
        self.send_each(requests, OnError::Stop, &|_| ())
    }

    /// Sends requests, several at a time, and returns the response bodies in order, or the first error. Sends
    /// nothing if one of them cannot be built.
    pub(super) fn send_each(
        &self,
        requests: impl Iterator<Item = Result<ApiRequest>>,
        on_error: OnError,
        on_progress: &dyn Fn(usize),
    ) -> Result<Vec<String>> {
        let requests = requests.collect::<Result<_, _>>()?;
        let responses =
            self.send_some(NEXT_RESPONSE_TIMEOUT, MAX_IN_FLIGHT, requests, on_error, on_progress)?;
        Ok(responses.into_iter().map(|response| response.text).collect())
    }

    /// Sends requests, `in_flight` at a time. `timeout` is that of the next response.
    fn send_some(
        &self,
        timeout: Duration,
        in_flight: usize,
        requests: Vec<ApiRequest>,
        on_error: OnError,
        on_progress: &dyn Fn(usize),
    ) -> Result<Vec<Response>, ApiError> {
        let operations: Vec<String> = requests.iter().map(|request| request.operation.clone()).collect();
        let (sender, received) = mpsc::channel();
        let client = self.client.clone();
        let work = stream::iter(requests).map(move |request| {
            let client = client.clone();
            async move { send(&client, request).await }
        });
        let work = work.buffered(in_flight).for_each(move |response| {
            // Nobody receives it after a cancellation.
            let _ = sender.send(response);
            future::ready(())
        });
        // Cancels its task when it is dropped.
        let mut tasks = JoinSet::new();
        tasks.spawn_on(work, self.runtime.handle());
        let (mut responses, mut first_error) = (Vec::with_capacity(operations.len()), None);
        let mut checked_at = Instant::now();
        for (number, operation) in operations.into_iter().enumerate() {
            match self.next_response(&received, timeout, &mut checked_at) {
                Ok(Ok(response)) => responses.push(response),
                Ok(Err(error)) => {
                    first_error.get_or_insert(error);
                    if on_error == OnError::Stop {
                        break;
                    }
                }
                Err(reason) => {
                    first_error.get_or_insert(ApiError { operation, code: None, reason });
                    break;
                }
            }
            on_progress(number + 1);
        }
        match first_error {
            None => Ok(responses),
            // A failed stop check explains more than a connection that cannot be opened.
            Some(error) => Err(match (error.code, self.check_not_stopped()) {
                (None, Err(cause)) => ApiError { reason: error_chain(&cause), ..error },
                _ => error,
            }),
        }
    }

    /// Waits for an item. Returns an error after `timeout`, or if the stop check fails.
    fn next_response<T>(
        &self,
        items: &mpsc::Receiver<T>,
        timeout: Duration,
        checked_at: &mut Instant,
    ) -> Result<T, String> {
        let give_up_at = Instant::now() + timeout;
        loop {
            // Checked while items arrive too: thousands may come without a pause.
            if checked_at.elapsed() >= POLL_INTERVAL {
                self.check_not_stopped().map_err(|error| error_chain(&error))?;
                *checked_at = Instant::now();
            }
            match items.recv_timeout(POLL_INTERVAL.min(timeout)) {
                Ok(item) => return Ok(item),
                Err(mpsc::RecvTimeoutError::Timeout) if Instant::now() < give_up_at => {}
                Err(_) => return Err(format!("no response within {} s", timeout.as_secs())),
            }
        }
    }
}

async fn client(kubeconfig: Kubeconfig, is_proxied: impl Fn(&Uri) -> bool) -> Result<Client, String> {
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| error.to_string())?;
    config.proxy_url = config.proxy_url.take().filter(|_| is_proxied(&config.cluster_url));
    config.connect_timeout = Some(RESPONSE_TIMEOUT);
    // Each request has its own timeout.
    config.read_timeout = Some(NEXT_RESPONSE_TIMEOUT);
    config.reset_reader_on_write = true;
    // Callers poll while they wait for a state; the client's own retries would delay them.
    config.default_retry = false;
    let bounded = MapResponseLayer::new(|response: http::Response<Box<DynBody>>| response.map(bounded));
    let builder = ClientBuilder::try_from(config).map_err(|error| error.to_string())?;
    Ok(builder.with_layer(&bounded).build())
}

/// True if requests to a server go through the proxy of the environment. kube compares `NO_PROXY` with the proxy's
/// own address instead.
fn uses_environment_proxy(server: &Uri, no_proxy: Option<&str>) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback =
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let proxies = Matcher::builder().https("http://proxy").no(no_proxy.unwrap_or_default()).build();
    !is_loopback && proxies.intercept(server).is_some()
}

/// A body that fails once it exceeds the maximum size of a response.
pub(super) fn bounded<B>(body: B) -> Limited<B> {
    Limited::new(body, MAX_RESPONSE_BYTES)
}

pub fn parse<T: DeserializeOwned>(response: &str) -> Result<T> {
    serde_json::from_str(response).context("read a response of the Kubernetes API")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::{BufRead as _, BufReader};
    use std::net::TcpListener;

    /// Requests the version of a server behind a proxy of the kubeconfig. Returns the first line that the proxy
    /// received; absent if there was no connection.
    fn asked_of_proxy(open: impl FnOnce(&Value) -> ApiClient) -> Option<String> {
        let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut kubeconfig = kubeconfig::kubeconfig("a", "https://127.0.0.1:1", None, "", &json!({}));
        kubeconfig["clusters"][0]["cluster"] = json!({
            "server": "https://127.0.0.1:1",
            "proxy-url": format!("http://{}", proxy.local_addr().unwrap()),
        });
        let (sender, read) = mpsc::channel();
        std::thread::spawn(move || {
            let mut connection = BufReader::new(proxy.accept().unwrap().0);
            let mut line = String::new();
            connection.read_line(&mut line).unwrap();
            // Before the connection closes.
            sender.send(line)
        });
        assert!(open(&kubeconfig).version().is_err(), "nothing responds");
        read.try_recv().ok()
    }

    #[test]
    fn kubeconfig_proxy_is_used_unless_direct() {
        let line = asked_of_proxy(|kubeconfig| ApiClient::new(kubeconfig, || Ok(())).unwrap());
        assert_eq!(line.as_deref(), Some("CONNECT 127.0.0.1:1 HTTP/1.1\r\n"));
        assert_eq!(asked_of_proxy(|kubeconfig| ApiClient::direct(kubeconfig, || Ok(())).unwrap()), None);
    }

    #[test]
    fn environment_proxy_is_not_used_for_loopback_and_no_proxy() {
        let is_proxied = |server: &str| {
            let no_proxy = "10.0.0.0/8, .svc, cluster.example";
            uses_environment_proxy(&server.parse().unwrap(), Some(no_proxy))
        };
        assert!(is_proxied("https://203.0.113.1:6443") && is_proxied("https://api.example.com"));
        let direct = [
            "https://127.0.0.1:6443",
            "https://[::1]:6443",
            "https://localhost:6443",
            "https://10.96.0.1:443",
            "https://kubernetes.default.svc",
            "https://cluster.example:6443",
            "http://prometheus.example.com",
        ];
        for server in direct {
            assert!(!is_proxied(server), "{server}");
        }
        assert!(uses_environment_proxy(&"https://10.96.0.1".parse().unwrap(), None));
    }
}
