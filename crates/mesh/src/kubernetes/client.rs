//! Client of the Kubernetes API for blocking callers.
//! kube's client runs on its own thread, which keeps the network namespace of the thread that creates it.
//! Every request has a timeout, every response a maximum size, and every error names the object. An object is
//! namespaced exactly if it has a namespace.

use super::kubeconfig;
use super::object_ref::ObjectRef;
use super::request::{ApiError, ApiRequest, MAX_RESPONSE_BYTES, send};
use super::rest_mapper::RestMapper;
use crate::Result;
use experiment::environment::{EnvironmentError, ErrorContext, error_chain};
use futures_util::stream::{self, Stream, StreamExt as _};
use http::{Response, Uri};
use http_body_util::Limited;
use hyper_util::client::proxy::matcher::Matcher;
use kube::Client;
use kube::client::{ClientBuilder, DynBody};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::env;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tower::util::MapResponseLayer;

/// Time until the next response to a batch of requests. The total is not bounded: ten thousand Services take minutes.
const NEXT_RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);
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

pub(super) trait Requests: Iterator<Item = Result<ApiRequest>> {}

impl<I: Iterator<Item = Result<ApiRequest>>> Requests for I {}

/// Returns an error once waiting for a response is pointless.
type StopCheck = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// Client of the Kubernetes API. Dropping it ends its thread.
pub struct ApiClient {
    client: Client,
    mapper: Mutex<RestMapper>,
    runtime: Handle,
    stop_check: StopCheck,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiClient").finish_non_exhaustive()
    }
}

impl Drop for ApiClient {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread panics only if tokio does, and then there is nothing left to do.
            let _ = thread.join();
        }
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
        let is_proxied =
            move |server: &Uri| has_own_proxy || uses_environment_proxy(server, no_proxy().as_deref());
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
        is_proxied: impl Fn(&Uri) -> bool + Send + 'static,
        stop_check: impl Fn() -> Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        let operation = "create a client of the Kubernetes API";
        let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig.clone()).context(operation)?;
        let (stop, stopped) = oneshot::channel();
        let (created, is_created) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("Kubernetes API".to_owned())
            .spawn(move || {
                let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                    Ok(runtime) => runtime,
                    Err(error) => {
                        let _ = created.send(Err(EnvironmentError::new(operation, error)));
                        return;
                    }
                };
                let client = runtime.block_on(client(kubeconfig, is_proxied));
                let client = client.context(operation);
                if created.send(client.map(|client| (client, runtime.handle().clone()))).is_ok() {
                    // Returns an error when the other end is dropped.
                    let _ = runtime.block_on(stopped);
                }
            })
            .context(operation)?;
        let (client, runtime) = is_created.recv().context(operation)??;
        Ok(Self {
            client,
            mapper: Mutex::default(),
            runtime,
            stop_check: Box::new(stop_check),
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    pub fn check_not_stopped(&self) -> Result<()> {
        (self.stop_check)()
    }

    pub fn is_ready(&self) -> bool {
        self.probe(ApiRequest::get("probe readiness of the Kubernetes API", "/readyz"))
    }

    /// True if the API handles requests, though parts of it may still be starting.
    pub fn is_alive(&self) -> bool {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?limit=1";
        self.probe(ApiRequest::get("probe the Kubernetes API", path))
    }

    /// True if the API responds within `timeout`, even with an error.
    pub fn responds_within(&self, timeout: Duration) -> bool {
        let give_up_at = Instant::now() + timeout;
        while Instant::now() < give_up_at && self.check_not_stopped().is_ok() {
            let sent_at = Instant::now();
            let request = ApiRequest::get("probe liveness of the Kubernetes API", "/livez/ping");
            match self.send_within(PROBE_TIMEOUT, request) {
                Ok(_) | Err(ApiError { code: Some(_), .. }) => return true,
                // The connection broke.
                Err(_) => std::thread::sleep(POLL_INTERVAL.saturating_sub(sent_at.elapsed())),
            }
        }
        // Unknown if the probe was stopped.
        self.check_not_stopped().is_err()
    }

    pub(super) fn collection(&self, object: &ObjectRef) -> String {
        self.mapper().collection(object)
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(super) fn mapper(&self) -> MutexGuard<'_, RestMapper> {
        self.mapper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn probe(&self, request: ApiRequest) -> bool {
        self.send_within(PROBE_TIMEOUT, request).is_ok()
    }

    pub(super) fn send(&self, request: ApiRequest) -> Result<String> {
        Ok(self.send_within(RESPONSE_TIMEOUT, request)?)
    }

    pub(super) fn send_within(&self, timeout: Duration, request: ApiRequest) -> Result<String, ApiError> {
        let responses = self.send_some(timeout, vec![request], OnError::Stop, &|_| ())?;
        Ok(responses.into_iter().next().unwrap_or_default())
    }

    /// Replaces the reason by a failed stop check, which explains more than a connection that cannot be opened.
    pub(super) fn explain(&self, error: ApiError) -> ApiError {
        match (error.code, self.check_not_stopped()) {
            (None, Err(cause)) => ApiError { reason: error_chain(&cause), ..error },
            _ => error,
        }
    }

    pub(super) fn send_all(&self, requests: impl Requests) -> Result<Vec<String>> {
        self.send_each(requests, OnError::Stop, &|_| ())
    }

    /// Sends requests, several at a time, and returns the response bodies in order, or the first error. Sends
    /// nothing if one of them cannot be built.
    pub(super) fn send_each(
        &self,
        requests: impl Requests,
        on_error: OnError,
        on_progress: &dyn Fn(usize),
    ) -> Result<Vec<String>> {
        let requests: Vec<ApiRequest> = requests.collect::<Result<_, _>>()?;
        Ok(self.send_some(NEXT_RESPONSE_TIMEOUT, requests, on_error, on_progress)?)
    }

    fn send_some(
        &self,
        timeout: Duration,
        requests: Vec<ApiRequest>,
        on_error: OnError,
        on_progress: &dyn Fn(usize),
    ) -> Result<Vec<String>, ApiError> {
        let operations: Vec<String> = requests.iter().map(|request| request.operation.clone()).collect();
        let client = self.client.clone();
        let work = stream::iter(requests).map(move |request| {
            let client = client.clone();
            async move { send(&client, request).await }
        });
        let (mut responses, mut first_error, mut received) = (Vec::with_capacity(operations.len()), None, 0);
        let waited = self.wait(timeout, work.buffered(MAX_IN_FLIGHT), |response| {
            received += 1;
            match response {
                Ok(response) => responses.push(response),
                Err(error) => {
                    first_error.get_or_insert(error);
                    if on_error == OnError::Stop {
                        return Err(String::new());
                    }
                }
            }
            on_progress(received);
            Ok(())
        });
        match (first_error, waited) {
            (Some(error), _) => Err(self.explain(error)),
            (None, Ok(())) => Ok(responses),
            // The operation is that of the first request without a response.
            (None, Err(reason)) => {
                let operation = operations.into_iter().nth(received).unwrap_or_default();
                Err(self.explain(ApiError { operation, code: None, reason }))
            }
        }
    }

    /// Runs `work` on the client's thread and passes its items to `on_item` until it ends. Cancels `work` and
    /// returns an error if `on_item` or the stop check fails, or if the next item takes longer than `timeout`.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        timeout: Duration,
        work: impl Stream<Item = T> + Send + 'static,
        mut on_item: impl FnMut(T) -> Result<(), String>,
    ) -> Result<(), String> {
        let (result, items) = mpsc::channel();
        let task = self.runtime.spawn(async move {
            futures_util::pin_mut!(work);
            while let Some(item) = work.next().await {
                if result.send(item).is_err() {
                    break;
                }
            }
        });
        let _cancelled = CancelOnDrop(task.abort_handle());
        let (mut received_at, mut checked_at) = (Instant::now(), Instant::now());
        loop {
            match items.recv_timeout(POLL_INTERVAL.min(timeout)) {
                Ok(item) => {
                    on_item(item)?;
                    received_at = Instant::now();
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
                Err(mpsc::RecvTimeoutError::Timeout) if received_at.elapsed() >= timeout => {
                    return Err(format!("no response within {} s", timeout.as_secs()));
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            // Checked while items arrive too: thousands may come without a pause.
            if checked_at.elapsed() >= POLL_INTERVAL {
                self.check_not_stopped().map_err(|error| error_chain(&error))?;
                checked_at = Instant::now();
            }
        }
    }
}

struct CancelOnDrop(tokio::task::AbortHandle);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.abort();
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
    let bounded = MapResponseLayer::new(|response: Response<Box<DynBody>>| response.map(bounded));
    let builder = ClientBuilder::try_from(config).map_err(|error| error.to_string())?;
    Ok(builder.with_layer(&bounded).build())
}

fn no_proxy() -> Option<String> {
    ["NO_PROXY", "no_proxy"].into_iter().find_map(|name| env::var(name).ok())
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

pub(super) fn parse<T: DeserializeOwned>(response: &str) -> Result<T> {
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
        let cluster = json!({
            "server": "https://127.0.0.1:1",
            "proxy-url": format!("http://{}", proxy.local_addr().unwrap()),
        });
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": cluster}],
            "users": [{"name": "a", "user": {}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
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
