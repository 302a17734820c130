//! The Kubernetes API of the lab, asked synchronously: objects in, objects out, as [`serde_json::Value`]s.
//!
//! Only this and what is under it knows the `kube` crate. Its client lives on a thread of its own, which is in the network of the
//! lab's bridge and so reaches the control plane's pod. Every question is bounded in time, every answer in size
//! (`question.rs`), and every error names the object. Where objects are is `path.rs`; an object is namespaced exactly where it
//! names a namespace. Tokens are `token.rs`.

mod documents;
mod path;
mod question;
mod token;

use self::documents::{documents, name_in};
pub(super) use self::path::DEFINITION;
use self::path::Plurals;
use self::question::{Question, Refusal, answer};
use super::object::Reference;
use experiment::environment::{EnvironmentError, in_one_line};
use futures_util::stream::{self, Stream, StreamExt as _};
use http::Method;
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fmt;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Where many questions are asked, how long it may take until the next of them is answered. All of them may take as long as
/// they do: ten thousand Services take minutes on a machine that is busy with other things.
const NEXT_ANSWER_LIMIT: Duration = Duration::from_secs(60);

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

/// What becomes of the other questions where one is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Refused {
    /// They are not asked.
    Stop,
    /// They are.
    GoOn,
}

/// Whether it is of use to wait for an answer any longer.
type GoesOn = Box<dyn Fn() -> Result<(), EnvironmentError>>;

/// A client of the API. Dropping it ends its thread.
pub struct Api {
    client: Client,
    plurals: RefCell<Plurals>,
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
        Ok(Self {
            client,
            plurals: RefCell::default(),
            runtime,
            goes_on,
            stop: Some(stop),
            thread: Some(thread),
        })
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

    /// Whether the API answers anything at all in this time, whatever that is.
    pub(crate) fn answers_within(&self, at_most: Duration) -> bool {
        let give_up_at = Instant::now() + at_most;
        while Instant::now() < give_up_at && self.check_goes_on().is_ok() {
            let asked_at = Instant::now();
            let question = Question::new("ask the lab's API for a sign of life", Method::GET, "/livez/ping");
            match self.ask_within(LOOK_LIMIT, question) {
                Ok(_) | Err(Refusal { code: Some(_), .. }) => return true,
                // A connection that broke.
                Err(_) => std::thread::sleep(LOOK_EVERY.saturating_sub(asked_at.elapsed())),
            }
        }
        // It was not asked to the end where nobody wants to know any longer.
        self.check_goes_on().is_err()
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
        let path = self.plurals.borrow().collection(&reference);
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
        objects.iter().for_each(|object| self.plurals.borrow_mut().learn(object));
        let questions = objects.iter().map(|object| self.applied(object, ""));
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
        let question = self.applied(object, "&dryRun=All").map_err(|error| in_one_line(&error))?;
        self.ask_within(LOOK_LIMIT, question).map(drop).map_err(|refusal| refusal.reason)
    }

    /// Whether the kind that this object defines is served by now, in every version that it is to be.
    #[must_use]
    pub(super) fn serves_what_is_defined(&self, definition: &Value) -> bool {
        let versions = definition["spec"]["versions"].as_array();
        let served = versions.into_iter().flatten().filter(|version| version["served"] == true);
        served.filter_map(|version| version["name"].as_str()).all(|version| {
            let spec = &definition["spec"];
            let (group, kind) = (spec["group"].as_str(), spec["names"]["kind"].as_str());
            let version = format!("{}/{version}", group.unwrap_or_default());
            let reference = Reference::new(&version, kind.unwrap_or_default(), None, "");
            let path = format!("{}?limit=1", self.plurals.borrow().collection(&reference));
            self.ask_within(LOOK_LIMIT, Question::new("look for a kind", Method::GET, path)).is_ok()
        })
    }

    /// Makes objects that most likely do not exist yet; those that do become as they are given. It costs the API less than
    /// [`Self::apply`], which looks for what is there. `answered` is told how many are made, again and again.
    ///
    /// # Errors
    /// Where one is no object or the API refuses it; others may have been made.
    pub fn create(&self, objects: &[Value], answered: &dyn Fn(usize)) -> Result<(), EnvironmentError> {
        let questions = objects.iter().map(|object| {
            let reference = Reference::of(object)?;
            let path = format!(
                "{}?fieldManager={FIELD_MANAGER}&fieldValidation=Ignore",
                self.plurals.borrow().collection(&reference)
            );
            let instead = Some(Box::new(self.applied(object, "")?));
            let question = Question::new(format!("create {reference}"), Method::POST, path)
                .with("application/json", object);
            Ok(Question { instead, ..question })
        });
        let questions = questions.collect::<Result<_, EnvironmentError>>()?;
        self.ask_each(questions, Refused::Stop, answered).map(drop)
    }

    /// Sets the `status` of objects that exist: each value names its object and has a field `status`.
    ///
    /// # Errors
    /// Where the API refuses one.
    pub fn apply_status(&self, objects: &[Value]) -> Result<(), EnvironmentError> {
        let questions = objects.iter().map(|object| {
            let reference = Reference::of(object)?;
            let path = format!("{}/status", self.object_path(&reference));
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
        match self.ask(Question::new(operation, Method::GET, self.object_path(reference))) {
            Ok(answer) => read(&answer).map(Some),
            Err(Refusal { code: Some(404), .. }) => Ok(None),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Deletes objects, all at once and without grace. That one is gone already is fine.
    ///
    /// # Errors
    /// Where the API refuses one, the first such; the others are deleted all the same.
    pub fn delete(&self, references: &[Reference]) -> Result<(), EnvironmentError> {
        self.delete_many(references, &|_| ())
    }

    /// The same for many: `answered` is told how many are gone, again and again.
    ///
    /// # Errors
    /// As there.
    pub fn delete_many(
        &self,
        references: &[Reference],
        answered: &dyn Fn(usize),
    ) -> Result<(), EnvironmentError> {
        let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        let questions = references.iter().map(|reference| {
            let mut question =
                Question::new(format!("delete {reference}"), Method::DELETE, self.object_path(reference))
                    .with("application/json", &options);
            question.may_be_absent = true;
            question
        });
        self.ask_each(questions.collect(), Refused::GoOn, answered).map(drop)
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
            Question::new(format!("let go of {reference}"), Method::PATCH, self.object_path(reference))
                .with("application/merge-patch+json", &json!({"metadata": {"finalizers": null}}));
        question.may_be_absent = true;
        Ok(self.ask(question).map(drop)?)
    }

    /// Makes an object as it is given, with these parameters of the question besides.
    fn applied(&self, object: &Value, more: &str) -> Result<Question, EnvironmentError> {
        let reference = Reference::of(object)?;
        let path = format!(
            "{}?fieldManager={FIELD_MANAGER}&force=true&fieldValidation=Strict{more}",
            self.object_path(&reference)
        );
        let Reference { api_version, kind, .. } = &reference;
        let unknown_kind = format!("the lab's API has no kind {kind} in {api_version}");
        Ok(Question {
            unknown_path: Some(unknown_kind),
            ..Question::new(format!("apply {reference}"), Method::PATCH, path)
        }
        .with("application/apply-patch+yaml", object))
    }

    fn object_path(&self, reference: &Reference) -> String {
        self.plurals.borrow().object(reference)
    }

    fn ask(&self, question: Question) -> Result<String, Refusal> {
        self.ask_within(SINGLE_ANSWER_LIMIT, question)
    }

    fn ask_within(&self, at_most: Duration, question: Question) -> Result<String, Refusal> {
        let operation = question.operation.clone();
        let client = self.client.clone();
        let mut answered = None;
        let asked =
            self.wait(at_most, stream::once(async move { answer(&client, question).await }), |answer| {
                answered = Some(answer);
                Ok(())
            });
        let refused = |reason: String| Refusal { operation, code: None, reason };
        let answer = match (asked, answered) {
            (Ok(()), Some(answer)) => answer,
            (Ok(()), None) => Err(refused("its client has ended".to_owned())),
            (Err(reason), _) => Err(refused(reason)),
        };
        answer.map_err(|refusal| self.cause_of(refusal))
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
        self.ask_each(questions, Refused::Stop, &|_| ())
    }

    /// Asks questions, some at once. Gives the answers, or the first refusal. `answered` is told how many are answered, again
    /// and again.
    fn ask_each(
        &self,
        questions: Vec<Question>,
        when_refused: Refused,
        answered: &dyn Fn(usize),
    ) -> Result<Vec<String>, EnvironmentError> {
        let operations: Vec<String> = questions.iter().map(|question| question.operation.clone()).collect();
        let client = self.client.clone();
        let asked = stream::iter(questions).map(move |question| {
            let client = client.clone();
            async move { answer(&client, question).await }
        });
        let (mut answers, mut first_refusal, mut heard) = (Vec::with_capacity(operations.len()), None, 0);
        let waited = self.wait(NEXT_ANSWER_LIMIT, asked.buffered(AT_ONCE), |answer| {
            heard += 1;
            match answer {
                Ok(answer) => answers.push(answer),
                Err(refusal) => {
                    first_refusal.get_or_insert(refusal);
                    if when_refused == Refused::Stop {
                        return Err(String::new());
                    }
                }
            }
            answered(heard);
            Ok(())
        });
        match (first_refusal, waited) {
            (Some(refusal), _) => Err(self.cause_of(refusal).into()),
            (None, Ok(())) => Ok(answers),
            (None, Err(reason)) => {
                // The first that was not answered: had all been, nobody would have waited longer.
                let operation = operations.into_iter().nth(heard).unwrap_or_default();
                Err(EnvironmentError::new(operation, reason))
            }
        }
    }

    /// Runs something on the client's thread and hears what comes of it, item by item, until its end or an error of
    /// `hear`. What has not ended by then is ended.
    ///
    /// # Errors
    /// That one; where the next item takes longer than `at_most`; or where it is of no use to wait any longer.
    fn wait<T: Send + 'static>(
        &self,
        at_most: Duration,
        work: impl Stream<Item = T> + Send + 'static,
        mut hear: impl FnMut(T) -> Result<(), String>,
    ) -> Result<(), String> {
        let (result, is_there) = mpsc::channel();
        let task = self.runtime.spawn(async move {
            futures_util::pin_mut!(work);
            while let Some(item) = work.next().await {
                if result.send(item).is_err() {
                    break;
                }
            }
        });
        let _ended = EndedOnDrop(task.abort_handle());
        let (mut heard_at, mut looked_at) = (Instant::now(), Instant::now());
        loop {
            match is_there.recv_timeout(LOOK_EVERY.min(at_most)) {
                Ok(item) => {
                    hear(item)?;
                    heard_at = Instant::now();
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
                Err(mpsc::RecvTimeoutError::Timeout) if heard_at.elapsed() >= at_most => {
                    return Err(format!("no answer within {} s", at_most.as_secs()));
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            // Not only where nothing comes: thousands of answers may come without a pause.
            if looked_at.elapsed() >= LOOK_EVERY {
                (self.goes_on)().map_err(|error| in_one_line(&error))?;
                looked_at = Instant::now();
            }
        }
    }
}

/// Work on the client's thread that nobody waits for once this is dropped.
struct EndedOnDrop(tokio::task::AbortHandle);

impl Drop for EndedOnDrop {
    fn drop(&mut self) {
        self.0.abort();
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

fn read(answer: &str) -> Result<Value, EnvironmentError> {
    serde_json::from_str(answer)
        .map_err(|error| EnvironmentError::new("read an answer of the lab's API", error))
}
