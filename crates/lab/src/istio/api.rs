//! The Kubernetes API of the lab, asked synchronously: objects in, objects out, as [`serde_json::Value`]s.
//!
//! The only file that knows the `kube` crate. Its client lives on a thread of its own, which is in the network of the
//! lab's bridge and so reaches the control plane's pod. Every question is bounded in time, and every error names the
//! object. Kinds are not looked up: their plurals follow the rule that all kinds of Kubernetes, Istio and the Gateway API
//! keep to, and an object is namespaced exactly where it names a namespace.

use super::object::Reference;
use experiment::environment::{EnvironmentError, in_one_line};
use futures_util::stream::{self, StreamExt as _};
use http::{Method, Request};
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use std::fmt;
use std::future::Future;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// How long all answers to one question may take. A thousand objects take seconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// How long the API may take for a single answer.
const SINGLE_ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// How long a look at whether the API is there may take: one that is starting may leave a question lie, and answer the
/// next.
const LOOK_LIMIT: Duration = Duration::from_secs(1);

/// Time between two looks at whether an answer can still come.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Questions that are under way at once.
const AT_ONCE: usize = 8;

/// Under this name the API notes who wrote a field.
const FIELD_MANAGER: &str = "meshmeter";

/// Whether it is of use to wait for an answer any longer.
type GoesOn = Box<dyn Fn() -> Result<(), EnvironmentError>>;

/// A client of the API. Dropping it ends its thread.
pub struct Api {
    client: Client,
    runtime: Handle,
    goes_on: GoesOn,
    /// Dropped, it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It panics only where tokio does, and then there is nothing left to do for it.
            let _ = thread.join();
        }
    }
}

impl Api {
    /// A client with the credentials of this kubeconfig. Nothing is asked yet. The calling thread's network is used. An
    /// answer is no longer waited for once `goes_on` says that this is of no use.
    ///
    /// # Errors
    /// Where the kubeconfig makes no sense, or no thread can be started.
    pub fn new(
        kubeconfig: &Value,
        goes_on: impl Fn() -> Result<(), EnvironmentError> + 'static,
    ) -> Result<Self, EnvironmentError> {
        let operation = "make a client of the lab's API";
        let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig.clone())
            .map_err(|error| EnvironmentError::new(operation, error))?;
        let (stop, stopped) = oneshot::channel();
        let (made, is_made) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("lab's API".to_owned())
            .spawn(move || {
                let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                    Ok(runtime) => runtime,
                    Err(error) => {
                        let _ = made.send(Err(EnvironmentError::new(operation, error)));
                        return;
                    }
                };
                let client = runtime.block_on(client(kubeconfig));
                let client = client.map_err(|reason| EnvironmentError::new(operation, reason));
                if made.send(client.map(|client| (client, runtime.handle().clone()))).is_ok() {
                    // Ends with an error, when the other end is dropped.
                    let _ = runtime.block_on(stopped);
                }
            })
            .map_err(|error| EnvironmentError::new(operation, error))?;
        let (client, runtime) = is_made.recv().map_err(|error| EnvironmentError::new(operation, error))??;
        let goes_on = Box::new(goes_on);
        Ok(Self { client, runtime, goes_on, stop: Some(stop), thread: Some(thread) })
    }

    /// An error once it is of no use to wait for an answer.
    ///
    /// # Errors
    /// That one.
    pub(crate) fn check_goes_on(&self) -> Result<(), EnvironmentError> {
        (self.goes_on)()
    }

    /// Whether the API answers that all of it has started. It refuses connections before that.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let question = Question::new("ask the lab's API whether it is ready", Method::GET, "/readyz");
        self.ask_within(LOOK_LIMIT, question).is_ok()
    }

    /// Whether the API takes requests, though parts of it may still be starting.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?limit=1";
        let question = Question::new("ask the lab's API whether it answers", Method::GET, path);
        self.ask_within(LOOK_LIMIT, question).is_ok()
    }

    /// Creates the objects of a file of YAML documents, all cluster-wide and of this kind. They must not exist yet.
    ///
    /// # Errors
    /// Where the API refuses one.
    pub fn create_documents(
        &self,
        api_version: &str,
        kind: &str,
        yaml: &str,
    ) -> Result<usize, EnvironmentError> {
        let reference = Reference::new(api_version, kind, None, "");
        let path = collection_path(&reference);
        let questions: Vec<Question> = documents(yaml)
            .map(|document| {
                let mut question = Question::new(
                    format!("create the {kind} {}", name_in(document)),
                    Method::POST,
                    path.clone(),
                );
                question.body = document.as_bytes().to_vec();
                question.content_type = "application/yaml";
                question
            })
            .collect();
        self.ask_all(questions).map(|answers| answers.len())
    }

    /// Makes objects as they are given (server-side apply), all at once, and gives them as the API has them afterwards,
    /// in the same order. Unknown fields are refused.
    ///
    /// # Errors
    /// Where one is no object or the API refuses it; others may have been made.
    pub fn apply(&self, objects: &[Value]) -> Result<Vec<Value>, EnvironmentError> {
        let questions = objects.iter().map(|object| applied(object, ""));
        self.ask_all(questions.collect::<Result<_, EnvironmentError>>()?)?
            .iter()
            .map(|answer| read(answer))
            .collect()
    }

    /// Whether the API would take an object, which is not made; else why not, in its words.
    ///
    /// # Errors
    /// The reason.
    pub fn would_take(&self, object: &Value) -> Result<(), String> {
        let question = applied(object, "&dryRun=All").map_err(|error| in_one_line(&error))?;
        self.ask_within(LOOK_LIMIT, question).map(drop).map_err(|refusal| refusal.reason)
    }

    /// Sets the `status` of objects that exist: each value names its object and has a field `status`.
    ///
    /// # Errors
    /// Where the API refuses one.
    pub fn apply_status(&self, objects: &[Value]) -> Result<(), EnvironmentError> {
        let questions = objects.iter().map(|object| {
            let reference = Reference::of(object)?;
            let path = format!("{}/status", object_path(&reference));
            let status = json!({"status": object["status"]});
            Ok(Question::new(format!("set the status of {reference}"), Method::PATCH, path)
                .with("application/merge-patch+json", &status))
        });
        self.ask_all(questions.collect::<Result<_, EnvironmentError>>()?).map(drop)
    }

    /// An object; nothing where there is none.
    ///
    /// # Errors
    /// Where the API does not answer.
    pub fn get(&self, reference: &Reference) -> Result<Option<Value>, EnvironmentError> {
        let operation = format!("get {reference}");
        match self.ask(Question::new(operation, Method::GET, object_path(reference))) {
            Ok(answer) => read(&answer).map(Some),
            Err(Refusal { code: Some(404), .. }) => Ok(None),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Deletes objects, all at once and without grace. That one is gone already is fine.
    ///
    /// # Errors
    /// Where the API refuses one; others may have been deleted.
    pub fn delete(&self, references: &[Reference]) -> Result<(), EnvironmentError> {
        let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        let questions = references.iter().map(|reference| {
            let mut question =
                Question::new(format!("delete {reference}"), Method::DELETE, object_path(reference))
                    .with("application/json", &options);
            question.may_be_absent = true;
            question
        });
        self.ask_all(questions.collect()).map(drop)
    }

    /// Lets a namespace that was deleted go at once. A cluster has a controller for it, which first empties it.
    ///
    /// # Errors
    /// Where the API refuses.
    pub fn finalize_namespace(&self, name: &str) -> Result<(), EnvironmentError> {
        let path = format!("/api/v1/namespaces/{name}/finalize");
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}});
        let mut question = Question::new(format!("let go of namespace {name}"), Method::PUT, path)
            .with("application/json", &body);
        question.may_be_absent = true;
        Ok(self.ask(question).map(drop)?)
    }

    /// Lets an object that was deleted go at once, whatever it waits for: nobody here would ever let it. That it is gone
    /// already is fine.
    ///
    /// # Errors
    /// Where the API refuses.
    pub fn drop_finalizers(&self, reference: &Reference) -> Result<(), EnvironmentError> {
        let mut question =
            Question::new(format!("let go of {reference}"), Method::PATCH, object_path(reference))
                .with("application/merge-patch+json", &json!({"metadata": {"finalizers": null}}));
        question.may_be_absent = true;
        Ok(self.ask(question).map(drop)?)
    }

    /// A token of a service account for this audience.
    ///
    /// # Errors
    /// Where there is no such account or the API refuses.
    pub fn token(&self, namespace: &str, account: &str, audience: &str) -> Result<String, EnvironmentError> {
        self.request_token(namespace, account, json!({"audiences": [audience]}))
    }

    /// A token of a service account for this audience, which says that it is that pod's: with it a ztunnel shows which
    /// node it is on. The pod and the account are in one namespace.
    ///
    /// # Errors
    /// Where there is no such account or pod, or the API refuses.
    pub fn pod_token(
        &self,
        pod: &Reference,
        account: &str,
        audience: &str,
    ) -> Result<String, EnvironmentError> {
        let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": self.uid(pod)?});
        let namespace = pod.namespace.as_deref().unwrap_or_default();
        self.request_token(namespace, account, json!({"audiences": [audience], "boundObjectRef": bound}))
    }

    /// What tells an object from others that had its name before.
    ///
    /// # Errors
    /// Where there is no such object, or the API does not answer.
    pub fn uid(&self, reference: &Reference) -> Result<String, EnvironmentError> {
        let object = self.get(reference)?;
        let uid = object.as_ref().and_then(|object| object["metadata"]["uid"].as_str());
        uid.map(ToOwned::to_owned)
            .ok_or_else(|| EnvironmentError::new(format!("get {reference}"), "there is no such object"))
    }

    fn request_token(
        &self,
        namespace: &str,
        account: &str,
        mut spec: Value,
    ) -> Result<String, EnvironmentError> {
        let operation = format!("request a token of service account {namespace}/{account}");
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        spec["expirationSeconds"] = json!(24 * 3600);
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
        let answer =
            self.ask(Question::new(operation.clone(), Method::POST, path).with("application/json", &body))?;
        let answer = read(&answer)?;
        let token = answer["status"]["token"].as_str();
        token.map(ToOwned::to_owned).ok_or_else(|| EnvironmentError::new(operation, "the answer has none"))
    }

    fn ask(&self, question: Question) -> Result<String, Refusal> {
        self.ask_within(SINGLE_ANSWER_LIMIT, question)
    }

    fn ask_within(&self, at_most: Duration, question: Question) -> Result<String, Refusal> {
        let operation = question.operation.clone();
        let client = self.client.clone();
        self.wait(at_most, async move { answer(&client, question).await })
            .unwrap_or_else(|reason| Err(Refusal { operation, code: None, reason }))
            .map_err(|refusal| self.cause_of(refusal))
    }

    /// Why the API refused, or did not answer: that it is gone says more than a connection that cannot be opened.
    fn cause_of(&self, refusal: Refusal) -> Refusal {
        match (refusal.code, (self.goes_on)()) {
            (None, Err(error)) => Refusal { reason: in_one_line(&error), ..refusal },
            _ => refusal,
        }
    }

    /// Asks all questions, some at once, until the first refusal.
    fn ask_all(&self, questions: Vec<Question>) -> Result<Vec<String>, EnvironmentError> {
        let operation = match questions.as_slice() {
            [] => return Ok(Vec::new()),
            [first, ..] => first.operation.clone(),
        };
        let client = self.client.clone();
        let all = async move {
            let answers = stream::iter(questions).map(|question| answer(&client, question)).buffered(AT_ONCE);
            futures_util::pin_mut!(answers);
            let mut all = Vec::new();
            while let Some(answer) = answers.next().await {
                all.push(answer?);
            }
            Ok::<_, Refusal>(all)
        };
        match self.wait(ANSWER_LIMIT, all) {
            Ok(answers) => Ok(answers.map_err(|refusal| self.cause_of(refusal))?),
            Err(reason) => Err(EnvironmentError::new(operation, reason)),
        }
    }

    /// Runs something on the client's thread, for at most this long; what has not ended by then goes on unheard, and ends
    /// with the client.
    fn wait<T: Send + 'static>(
        &self,
        at_most: Duration,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, String> {
        let (result, is_there) = mpsc::channel();
        self.runtime.spawn(async move {
            // Nobody listens any longer where the time is up.
            let _ = result.send(work.await);
        });
        let give_up_at = Instant::now() + at_most;
        loop {
            match is_there.recv_timeout(LOOK_EVERY.min(at_most)) {
                Ok(result) => return Ok(result),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err("its client has ended".to_owned()),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    (self.goes_on)().map_err(|error| in_one_line(&error))?;
                }
            }
            if Instant::now() >= give_up_at {
                return Err(format!("no answer within {} s", at_most.as_secs()));
            }
        }
    }
}

async fn client(kubeconfig: Kubeconfig) -> Result<Client, String> {
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| error.to_string())?;
    config.connect_timeout = Some(SINGLE_ANSWER_LIMIT);
    config.read_timeout = Some(SINGLE_ANSWER_LIMIT);
    config.reset_reader_on_write = true;
    // Whoever waits for a state asks again; nobody wants a delay of the client's own making.
    config.default_retry = false;
    Client::try_from(config).map_err(|error| error.to_string())
}

/// One request.
struct Question {
    operation: String,
    method: Method,
    path: String,
    content_type: &'static str,
    body: Vec<u8>,
    /// That the object does not exist is as good as success.
    may_be_absent: bool,
    /// What it means that nothing answers at this path at all; absent: what the API says itself.
    unknown_path: Option<String>,
}

impl Question {
    fn new(operation: impl Into<String>, method: Method, path: impl Into<String>) -> Self {
        Self {
            operation: operation.into(),
            method,
            path: path.into(),
            content_type: "application/json",
            body: Vec::new(),
            may_be_absent: false,
            unknown_path: None,
        }
    }

    fn with(self, content_type: &'static str, body: &Value) -> Self {
        Self { content_type, body: body.to_string().into_bytes(), ..self }
    }
}

/// Makes an object as it is given, with these parameters of the question besides.
fn applied(object: &Value, more: &str) -> Result<Question, EnvironmentError> {
    let reference = Reference::of(object)?;
    let path = format!(
        "{}?fieldManager={FIELD_MANAGER}&force=true&fieldValidation=Strict{more}",
        object_path(&reference)
    );
    let Reference { api_version, kind, .. } = &reference;
    let unknown_kind = format!("the lab's API has no kind {kind} in {api_version}");
    Ok(Question {
        unknown_path: Some(unknown_kind),
        ..Question::new(format!("apply {reference}"), Method::PATCH, path)
    }
    .with("application/apply-patch+yaml", object))
}

/// A question that was not answered as it must.
struct Refusal {
    operation: String,
    /// The status of the answer, where there was one.
    code: Option<u16>,
    reason: String,
}

impl From<Refusal> for EnvironmentError {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.operation, refusal.reason)
    }
}

async fn answer(client: &Client, question: Question) -> Result<String, Refusal> {
    let Question { operation, method, path, content_type, body, may_be_absent, unknown_path } = question;
    let refused = |code: Option<u16>, reason: String| Refusal { operation: operation.clone(), code, reason };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, content_type)
        .body(body)
        .map_err(|error| refused(None, error.to_string()))?;
    match client.request_text(request).await {
        Ok(answer) => Ok(answer),
        Err(kube::Error::Api(status)) if may_be_absent && status.code == 404 => Ok(String::new()),
        Err(kube::Error::Api(status)) => {
            let reason = unknown_path.filter(|_| is_unknown_path(&status)).unwrap_or(status.message);
            Err(refused(Some(status.code), reason))
        }
        // Its own text holds those of its causes.
        Err(error) => Err(refused(None, error.to_string())),
    }
}

/// Whether nothing is served at a path, of which the API speaks in one way where it knows the group, and in another where
/// it does not: that an object or its namespace is absent is said with its name.
fn is_unknown_path(status: &kube::core::Status) -> bool {
    let words = ["page not found", "could not find the requested resource"];
    status.code == 404 && words.iter().any(|words| status.message.contains(words))
}

fn read(answer: &str) -> Result<Value, EnvironmentError> {
    serde_json::from_str(answer)
        .map_err(|error| EnvironmentError::new("read an answer of the lab's API", error))
}

/// Where objects of a kind are, in a namespace or in all of the cluster.
fn collection_path(reference: &Reference) -> String {
    let Reference { api_version, kind, .. } = reference;
    // A version without a group is the core's.
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let root = if group.is_empty() { "/api" } else { "/apis" };
    let namespace =
        reference.namespace.as_deref().map_or_else(String::new, |name| format!("/namespaces/{name}"));
    format!("{root}/{api_version}{namespace}/{}", resource.plural)
}

fn object_path(reference: &Reference) -> String {
    format!("{}/{}", collection_path(reference), reference.name)
}

/// The documents of a YAML file, empty ones left out.
fn documents(yaml: &str) -> impl Iterator<Item = &str> {
    let separated = yaml.split("\n---");
    separated.filter(|document| {
        document
            .lines()
            .any(|line| !line.trim().is_empty() && !line.starts_with('#') && !line.starts_with("---"))
    })
}

/// What a document's `metadata.name` is, for messages.
fn name_in(document: &str) -> &str {
    document.lines().find_map(|line| line.strip_prefix("  name: ")).unwrap_or("without a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(api_version: &str, kind: &str, namespace: Option<&str>) -> String {
        object_path(&Reference::new(api_version, kind, namespace, "a"))
    }

    #[test]
    fn objects_are_where_kubernetes_has_them() {
        assert_eq!(path("v1", "Service", Some("mesh")), "/api/v1/namespaces/mesh/services/a");
        assert_eq!(path("v1", "Namespace", None), "/api/v1/namespaces/a");
        for (kind, plural) in [
            ("AuthorizationPolicy", "authorizationpolicies"),
            ("Gateway", "gateways"),
            ("ProxyConfig", "proxyconfigs"),
            ("ServiceEntry", "serviceentries"),
            ("Telemetry", "telemetries"),
            ("Ingress", "ingresses"),
        ] {
            let expected = format!("/apis/networking.istio.io/v1/namespaces/m/{plural}/a");
            assert_eq!(path("networking.istio.io/v1", kind, Some("m")), expected);
        }
    }

    #[test]
    fn documents_are_told_apart_and_empty_ones_left_out() {
        let yaml = "# DO NOT EDIT\n\n---\napiVersion: v1\nmetadata:\n  name: one\n---\nkind: B\nmetadata:\n  name: two\n---\n";
        let names: Vec<&str> = documents(yaml).map(name_in).collect();
        assert_eq!(names, ["one", "two"]);
    }
}
