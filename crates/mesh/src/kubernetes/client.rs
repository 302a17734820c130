//! Client of the Kubernetes API, for callers that are not asynchronous.
//!
//! kube's client lives on a thread of its own, which keeps the network namespace of the thread that creates it. Every
//! request is bounded in time and every response in size, and every error names the object. An object is namespaced
//! exactly if it names a namespace.

use super::documents::{documents, name_in};
use super::object_ref::ObjectRef;
use super::request::{ApiError, ApiRequest, MAX_RESPONSE_BYTES, send};
use super::rest_mapper::RestMapper;
use experiment::environment::{EnvironmentError, in_one_line};
use futures_util::stream::{self, Stream, StreamExt as _};
use http::Response;
use http_body_util::Limited;
use kube::Client;
use kube::client::{ClientBuilder, DynBody};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::Request;
use kube::core::params::{
    DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::borrow::Borrow;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tower::util::MapResponseLayer;

/// Of many requests, time until the next response. There is no bound for all of them: ten thousand Services take minutes
/// on a busy machine.
const NEXT_RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Time until a single response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Time until the response to a probe: an API that is starting may drop one request and answer the next.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Time between two checks whether a response can still come.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Requests in flight at once.
const MAX_IN_FLIGHT: usize = 16;

/// Owner of the fields that are written.
const FIELD_MANAGER: &str = "meshmeter";

/// What happens to further requests after an error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum OnError {
    Stop,
    Continue,
}

/// Fails once it is pointless to wait for a response.
type StopCheck = Box<dyn Fn() -> Result<(), EnvironmentError> + Send + Sync>;

/// Client of the API. Dropping it ends its thread.
pub struct ApiClient {
    client: Client,
    mapper: Mutex<RestMapper>,
    runtime: Handle,
    stop_check: StopCheck,
    /// Dropping it ends the thread.
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
            // It panics only if tokio does, and then there is nothing left to do for it.
            let _ = thread.join();
        }
    }
}

impl ApiClient {
    /// A client with the credentials of a kubeconfig. It sends nothing yet. Requests fail once `stop_check` does.
    ///
    /// # Errors
    /// The kubeconfig is invalid, or no thread can be started.
    pub fn new(
        kubeconfig: &Value,
        stop_check: impl Fn() -> Result<(), EnvironmentError> + Send + Sync + 'static,
    ) -> Result<Self, EnvironmentError> {
        let operation = "create a client of the Kubernetes API";
        let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig.clone())
            .map_err(|error| EnvironmentError::new(operation, error))?;
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
                let client = runtime.block_on(client(kubeconfig));
                let client = client.map_err(|reason| EnvironmentError::new(operation, reason));
                if created.send(client.map(|client| (client, runtime.handle().clone()))).is_ok() {
                    // Ends with an error when the other end is dropped.
                    let _ = runtime.block_on(stopped);
                }
            })
            .map_err(|error| EnvironmentError::new(operation, error))?;
        let (client, runtime) =
            is_created.recv().map_err(|error| EnvironmentError::new(operation, error))??;
        Ok(Self {
            client,
            mapper: Mutex::default(),
            runtime,
            stop_check: Box::new(stop_check),
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Fails once it is pointless to wait for a response.
    ///
    /// # Errors
    /// Those of the stop check.
    pub fn check_not_stopped(&self) -> Result<(), EnvironmentError> {
        (self.stop_check)()
    }

    /// Whether all of the API has started.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.probe(ApiRequest::get("probe readiness of the Kubernetes API", "/readyz"))
    }

    /// Whether the API handles requests, though parts of it may still be starting.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?limit=1";
        self.probe(ApiRequest::get("probe the Kubernetes API", path))
    }

    /// Whether the API responds at all within `timeout`, be it with an error.
    #[must_use]
    pub fn responds_within(&self, timeout: Duration) -> bool {
        let give_up_at = Instant::now() + timeout;
        while Instant::now() < give_up_at && self.check_not_stopped().is_ok() {
            let sent_at = Instant::now();
            let request = ApiRequest::get("probe liveness of the Kubernetes API", "/livez/ping");
            match self.send_within(PROBE_TIMEOUT, request) {
                Ok(_) | Err(ApiError { code: Some(_), .. }) => return true,
                // A connection that broke.
                Err(_) => std::thread::sleep(POLL_INTERVAL.saturating_sub(sent_at.elapsed())),
            }
        }
        // Unknown if the probe was stopped.
        self.check_not_stopped().is_err()
    }

    /// Creates the cluster-scoped objects of one kind from a file of YAML documents. They must not exist yet.
    ///
    /// # Errors
    /// The API refuses one.
    pub fn create_documents(
        &self,
        api_version: &str,
        kind: &str,
        yaml: &str,
    ) -> Result<usize, EnvironmentError> {
        let path = self.collection(&ObjectRef::new(api_version, kind, None, ""));
        let requests = documents(yaml).map(|document| {
            let request = http::Request::post(&path)
                .header(http::header::CONTENT_TYPE, "application/yaml")
                .body(document.as_bytes().to_vec());
            let operation = format!("create the {kind} {}", name_in(document));
            ApiRequest::new(operation, request.map_err(kube::core::request::Error::BuildRequest))
        });
        self.send_all(requests.collect::<Result<_, _>>()?).map(|responses| responses.len())
    }

    /// Makes objects what is given (server-side apply) and returns them as the API has them, in the same order. Unknown
    /// fields are errors.
    ///
    /// # Errors
    /// One is invalid or the API refuses it; others may have been written.
    pub fn apply(&self, objects: &[impl Borrow<Value>]) -> Result<Vec<Value>, EnvironmentError> {
        objects.iter().for_each(|object| self.mapper().learn(object.borrow()));
        let params = PatchParams::apply(FIELD_MANAGER).force().validation_strict();
        let requests = objects.iter().map(|object| self.apply_request(object.borrow(), &params));
        self.send_all(requests.collect::<Result<_, _>>()?)?.iter().map(|response| parse(response)).collect()
    }

    /// Whether the API would accept an object, which is not written.
    ///
    /// # Errors
    /// Why not, in the API's words.
    pub fn dry_run(&self, object: &Value) -> Result<(), String> {
        let params = PatchParams::apply(FIELD_MANAGER).force().validation_strict().dry_run();
        let request = self.apply_request(object, &params).map_err(|error| in_one_line(&error))?;
        self.send_within(PROBE_TIMEOUT, request).map(drop).map_err(|error| error.reason)
    }

    /// Whether the kind that `definition` defines is served by now, in every version that shall be.
    #[must_use]
    pub(super) fn serves_defined_kind(&self, definition: &Value) -> bool {
        let spec = &definition["spec"];
        let (group, kind) = (spec["group"].as_str(), spec["names"]["kind"].as_str());
        let versions = spec["versions"].as_array().into_iter().flatten();
        let served = versions.filter(|version| version["served"] == true);
        served.filter_map(|version| version["name"].as_str()).all(|version| {
            let version = format!("{}/{version}", group.unwrap_or_default());
            let kind = ObjectRef::new(&version, kind.unwrap_or_default(), None, "");
            let request = Request::new(self.collection(&kind)).list(&ListParams::default().limit(1));
            ApiRequest::new("list objects of a kind".to_owned(), request)
                .is_ok_and(|request| self.probe(request))
        })
    }

    /// Creates objects that most likely do not exist yet, and applies those that do. Cheaper for the API than
    /// [`Self::apply`], which looks for existing objects. `on_progress` gets the number written so far.
    ///
    /// # Errors
    /// One is invalid or the API refuses it; others may have been written.
    pub fn create(
        &self,
        objects: &[Value],
        on_progress: &dyn Fn(usize),
    ) -> Result<Vec<Value>, EnvironmentError> {
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let create = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let requests = objects.iter().map(|object| {
            let reference = ObjectRef::from_object(object)?;
            let request =
                Request::new(self.collection(&reference)).create(&create, object.to_string().into_bytes());
            let on_already_exists = Some(Box::new(self.apply_request(object, &params)?));
            Ok(ApiRequest { on_already_exists, ..ApiRequest::new(format!("create {reference}"), request)? })
        });
        let requests = requests.collect::<Result<_, EnvironmentError>>()?;
        let responses = self.send_each(requests, OnError::Stop, on_progress)?;
        responses.iter().map(|response| parse(response)).collect()
    }

    /// Sets the `status` of existing objects: each value names its object and has a field `status`.
    ///
    /// # Errors
    /// The API refuses one.
    pub fn apply_status(&self, objects: &[Value]) -> Result<(), EnvironmentError> {
        let requests = objects.iter().map(|object| {
            let reference = ObjectRef::from_object(object)?;
            let patch = Patch::Merge(json!({"status": object["status"]}));
            let request = Request::new(self.collection(&reference)).patch_subresource(
                "status",
                &reference.name,
                &PatchParams::default(),
                &patch,
            );
            ApiRequest::new(format!("set the status of {reference}"), request)
        });
        self.send_all(requests.collect::<Result<_, _>>()?).map(drop)
    }

    /// An object; absent if it does not exist.
    ///
    /// # Errors
    /// The API does not respond.
    pub fn get(&self, object: &ObjectRef) -> Result<Option<Value>, EnvironmentError> {
        Ok(self.get_all(std::slice::from_ref(object))?.pop().flatten())
    }

    /// Objects, in the order of `objects`; absent are those that do not exist.
    ///
    /// # Errors
    /// The API does not respond.
    pub fn get_all(&self, objects: &[ObjectRef]) -> Result<Vec<Option<Value>>, EnvironmentError> {
        let requests = objects.iter().map(|object| {
            let request = Request::new(self.collection(object)).get(&object.name, &GetParams::default());
            let request = ApiRequest::new(format!("get {object}"), request)?;
            Ok(ApiRequest { ignore_not_found: true, ..request })
        });
        let responses = self.send_all(requests.collect::<Result<_, EnvironmentError>>()?)?;
        let found = responses.iter().map(|text| (!text.is_empty()).then(|| parse(text)).transpose());
        found.collect()
    }

    /// Deletes objects without grace period; absent ones are ignored. `on_progress` gets the number deleted so far.
    ///
    /// # Errors
    /// The first object that the API refuses to delete; the others are deleted all the same.
    pub fn delete(&self, objects: &[ObjectRef], on_progress: &dyn Fn(usize)) -> Result<(), EnvironmentError> {
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        let requests = objects.iter().map(|object| {
            let request = Request::new(self.collection(object)).delete(&object.name, &params);
            let request = ApiRequest::new(format!("delete {object}"), request)?;
            Ok(ApiRequest { ignore_not_found: true, ..request })
        });
        let requests = requests.collect::<Result<_, EnvironmentError>>()?;
        self.send_each(requests, OnError::Continue, on_progress).map(drop)
    }

    /// Finishes the deletion of namespaces. In a cluster, a controller does this once they are empty.
    ///
    /// # Errors
    /// The first that the API refuses.
    pub fn finalize_namespaces(&self, names: &[&str]) -> Result<(), EnvironmentError> {
        let requests = names.iter().map(|name| {
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}});
            let namespaces = self.collection(&ObjectRef::new("v1", "Namespace", None, name));
            let body = body.to_string().into_bytes();
            let request =
                Request::new(namespaces).replace_subresource("finalize", name, &PostParams::default(), body);
            let request = ApiRequest::new(format!("finalize namespace {name}"), request)?;
            Ok(ApiRequest { ignore_not_found: true, ..request })
        });
        let requests = requests.collect::<Result<_, EnvironmentError>>()?;
        self.send_each(requests, OnError::Continue, &|_| ()).map(drop)
    }

    /// Removes the finalizers of deleted objects, which no controller of a lab would. Absent objects are ignored.
    ///
    /// # Errors
    /// The first that the API refuses.
    pub fn remove_finalizers(&self, objects: &[ObjectRef]) -> Result<(), EnvironmentError> {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let requests = objects.iter().map(|object| {
            let request =
                Request::new(self.collection(object)).patch(&object.name, &PatchParams::default(), &patch);
            let request = ApiRequest::new(format!("remove the finalizers of {object}"), request)?;
            Ok(ApiRequest { ignore_not_found: true, ..request })
        });
        let requests = requests.collect::<Result<_, EnvironmentError>>()?;
        self.send_each(requests, OnError::Continue, &|_| ()).map(drop)
    }

    /// Path of all objects of a kind.
    pub(super) fn collection(&self, object: &ObjectRef) -> String {
        self.mapper().collection(object)
    }

    fn mapper(&self) -> MutexGuard<'_, RestMapper> {
        self.mapper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply_request(&self, object: &Value, params: &PatchParams) -> Result<ApiRequest, EnvironmentError> {
        let reference = ObjectRef::from_object(object)?;
        let request =
            Request::new(self.collection(&reference)).patch(&reference.name, params, &Patch::Apply(object));
        let ObjectRef { api_version, kind, .. } = &reference;
        let unknown_path = Some(format!("the Kubernetes API has no kind {kind} in {api_version}"));
        Ok(ApiRequest { unknown_path, ..ApiRequest::new(format!("apply {reference}"), request)? })
    }

    fn probe(&self, request: ApiRequest) -> bool {
        self.send_within(PROBE_TIMEOUT, request).is_ok()
    }

    /// Sends a request and returns the text of the response.
    pub(super) fn send(&self, request: ApiRequest) -> Result<String, EnvironmentError> {
        Ok(self.send_within(RESPONSE_TIMEOUT, request)?)
    }

    fn send_within(&self, timeout: Duration, request: ApiRequest) -> Result<String, ApiError> {
        let operation = request.operation.clone();
        let client = self.client.clone();
        let mut response = None;
        let work = stream::once(async move { send(&client, request).await });
        let waited = self.wait(timeout, work, |received| {
            response = Some(received);
            Ok(())
        });
        let failed = |reason: String| Err(ApiError { operation, code: None, reason });
        let response = match (waited, response) {
            (Ok(()), Some(response)) => response,
            (Ok(()), None) => failed("its client has ended".to_owned()),
            (Err(reason), _) => failed(reason),
        };
        response.map_err(|error| self.explain(error))
    }

    /// A failed stop check explains more than a connection that cannot be opened.
    fn explain(&self, error: ApiError) -> ApiError {
        match (error.code, self.check_not_stopped()) {
            (None, Err(cause)) => ApiError { reason: in_one_line(&cause), ..error },
            _ => error,
        }
    }

    /// Sends all requests, some at once, until the first error.
    pub(super) fn send_all(&self, requests: Vec<ApiRequest>) -> Result<Vec<String>, EnvironmentError> {
        self.send_each(requests, OnError::Stop, &|_| ())
    }

    /// Sends requests, some at once, and returns the texts of the responses in their order, or the first error.
    fn send_each(
        &self,
        requests: Vec<ApiRequest>,
        on_error: OnError,
        on_progress: &dyn Fn(usize),
    ) -> Result<Vec<String>, EnvironmentError> {
        let operations: Vec<String> = requests.iter().map(|request| request.operation.clone()).collect();
        let client = self.client.clone();
        let work = stream::iter(requests).map(move |request| {
            let client = client.clone();
            async move { send(&client, request).await }
        });
        let (mut responses, mut first_error, mut received) = (Vec::with_capacity(operations.len()), None, 0);
        let waited = self.wait(NEXT_RESPONSE_TIMEOUT, work.buffered(MAX_IN_FLIGHT), |response| {
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
            (Some(error), _) => Err(self.explain(error).into()),
            (None, Ok(())) => Ok(responses),
            // Names the first request without a response.
            (None, Err(reason)) => {
                let operation = operations.into_iter().nth(received).unwrap_or_default();
                Err(EnvironmentError::new(operation, reason))
            }
        }
    }

    /// Runs `work` on the client's thread and passes its items to `on_item`, until its end or an error of `on_item`. What
    /// has not ended by then is cancelled.
    ///
    /// # Errors
    /// That of `on_item`; the next item takes longer than `timeout`; or the stop check fails.
    fn wait<T: Send + 'static>(
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
            // Also while items arrive: thousands may without a pause.
            if checked_at.elapsed() >= POLL_INTERVAL {
                self.check_not_stopped().map_err(|error| in_one_line(&error))?;
                checked_at = Instant::now();
            }
        }
    }
}

/// Cancels a task of the client's thread when dropped.
struct CancelOnDrop(tokio::task::AbortHandle);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn client(kubeconfig: Kubeconfig) -> Result<Client, String> {
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| error.to_string())?;
    config.connect_timeout = Some(RESPONSE_TIMEOUT);
    config.read_timeout = Some(RESPONSE_TIMEOUT);
    config.reset_reader_on_write = true;
    // Callers that wait for a state poll it; the client's own retries would delay them.
    config.default_retry = false;
    let bounded = MapResponseLayer::new(|response: Response<Box<DynBody>>| response.map(bounded));
    let builder = ClientBuilder::try_from(config).map_err(|error| error.to_string())?;
    Ok(builder.with_layer(&bounded).build())
}

/// A body that fails once it is longer than a response may be.
pub(super) fn bounded<B>(body: B) -> Limited<B> {
    Limited::new(body, MAX_RESPONSE_BYTES)
}

/// Parses the text of a response.
pub(super) fn parse<T: DeserializeOwned>(response: &str) -> Result<T, EnvironmentError> {
    serde_json::from_str(response)
        .map_err(|error| EnvironmentError::new("read a response of the Kubernetes API", error))
}
