//! The API's version, metrics and kinds, and the permissions of the kubeconfig's user, checked before
//! anything is written.

use super::client::{ApiClient, parse};
use super::object_ref::ObjectRef;
use super::request::{ApiError, ApiRequest};
use crate::Result;
use experiment::environment::EnvironmentError;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);
const ISTIO_GROUPS: &str = ".istio.io";
const GATEWAY_API_GROUP: &str = "gateway.networking.k8s.io/";

/// An operation on objects of one kind.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Action {
    /// Such as `create`.
    pub verb: String,
    /// Empty for the core group.
    pub group: String,
    /// Such as `services`.
    pub resource: String,
    /// Such as `token`; usually empty.
    pub subresource: String,
}

impl Action {
    pub fn new(verb: &str, group: &str, resource: &str, subresource: &str) -> Self {
        let [verb, group, resource, subresource] =
            [verb, group, resource, subresource].map(ToOwned::to_owned);
        Self { verb, group, resource, subresource }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, group, resource, subresource } = self;
        write!(f, "{verb} {resource}")?;
        if !group.is_empty() {
            write!(f, ".{group}")?;
        }
        if !subresource.is_empty() {
            write!(f, "/{subresource}")?;
        }
        Ok(())
    }
}

/// A kind served by the API.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
struct ServedKind {
    /// Plural name; a subresource follows after a slash.
    name: String,
    kind: String,
}

#[derive(Debug, Default, Deserialize)]
struct ServedKinds {
    #[serde(default)]
    resources: Vec<ServedKind>,
}

impl ApiClient {
    /// Version of the API server, such as `v1.36.3`. If it does not respond, the error has a hint.
    pub fn version(&self) -> Result<String> {
        let response = self.send_within(
            RESPONSE_TIMEOUT,
            ApiRequest::get("ask the Kubernetes API for its version", "/version"),
        );
        let version: Value = parse(&response.map_err(with_hint)?)?;
        version["gitVersion"].as_str().map(ToOwned::to_owned).ok_or_else(|| {
            let reason = "the response has no gitVersion: another program responds there";
            EnvironmentError::new("ask the Kubernetes API for its version", reason)
        })
    }

    /// Prometheus metrics of the API server.
    pub fn metrics(&self) -> Result<String> {
        self.send(ApiRequest::get("ask the Kubernetes API for its metrics", "/metrics"))
    }

    /// Returns an error unless the API serves the kinds of these objects.
    pub fn check_kinds(&self, objects: &[ObjectRef]) -> Result<()> {
        let served = self.served(objects)?;
        let missing = objects.iter().find(|object| !served.contains_key(&kind_of(object)));
        let Some(ObjectRef { api_version, kind, .. }) = missing else { return Ok(()) };
        let reason = format!("the Kubernetes API has no kind {kind} in {api_version}");
        let error = EnvironmentError::new("check the kinds of the mesh", reason);
        Err(if api_version.contains(ISTIO_GROUPS) {
            error
                .with_hint("Istio's definitions (CRDs) are not installed there: its chart `base` brings them")
        } else if api_version.starts_with(GATEWAY_API_GROUP) {
            error.with_hint("the Gateway API's definitions (CRDs) are not installed there")
        } else {
            error
        })
    }

    /// Actions with these verbs on the kinds of these objects that the user lacks permission for. Skips kinds
    /// that are not served.
    pub fn denied_verbs(&self, objects: &[ObjectRef], verbs: &[&str]) -> Result<Vec<Action>> {
        let served = self.served(objects)?;
        let of_kind = |((api_version, _), resource): (&(String, String), &String)| {
            let group = api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
            verbs.iter().map(|verb| Action::new(verb, &group, resource, "")).collect::<Vec<_>>()
        };
        self.denied(&served.iter().flat_map(of_kind).collect::<Vec<_>>())
    }

    /// Those of these actions that the user may not perform in all namespaces.
    pub fn denied(&self, actions: &[Action]) -> Result<Vec<Action>> {
        self.denied_in(None, actions)
    }

    /// Those of these actions that the user may not perform in this namespace.
    pub fn denied_in(&self, namespace: Option<&str>, actions: &[Action]) -> Result<Vec<Action>> {
        let reviews = actions.iter().map(|action| {
            let Action { verb, group, resource, subresource } = action;
            let mut attributes =
                json!({"verb": verb, "group": group, "resource": resource, "subresource": subresource});
            if let Some(namespace) = namespace {
                attributes["namespace"] = json!(namespace);
            }
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            });
            let request = http::Request::post(REVIEWS)
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(review.to_string().into_bytes());
            let request = request.map_err(kube::core::request::Error::BuildRequest);
            ApiRequest::new("ask the Kubernetes API what this user may do".to_owned(), request)
        });
        let responses = self.send_all(reviews)?;
        let mut denied = Vec::new();
        for (response, action) in responses.iter().zip(actions) {
            let review: Value = parse(response)?;
            if review["status"]["allowed"] != true {
                denied.push(action.clone());
            }
        }
        Ok(denied)
    }

    /// Plural names of the objects' kinds, by API version and kind. Kinds that the API does not serve are missing.
    pub fn served(&self, objects: &[ObjectRef]) -> Result<BTreeMap<(String, String), String>> {
        let versions: BTreeSet<&str> = objects.iter().map(|object| object.api_version.as_str()).collect();
        let lists = versions.iter().map(|version| {
            let path =
                if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
            let request = http::Request::get(path).body(Vec::new());
            let request = request.map_err(kube::core::request::Error::BuildRequest);
            let operation = format!("ask the Kubernetes API for the kinds of {version}");
            Ok(ApiRequest::new(operation, request)?.ignoring_not_found())
        });
        let mut served = BTreeMap::new();
        for (list, version) in self.send_all(lists)?.iter().zip(&versions) {
            let kinds: ServedKinds = if list.is_empty() { ServedKinds::default() } else { parse(list)? };
            let kinds = kinds.resources.into_iter().filter(|kind| !kind.name.contains('/'));
            served.extend(kinds.map(|kind| (((*version).to_owned(), kind.kind), kind.name)));
        }
        let asked: BTreeSet<(String, String)> = objects.iter().map(kind_of).collect();
        served.retain(|kind, _| asked.contains(kind));
        Ok(served)
    }
}

fn kind_of(object: &ObjectRef) -> (String, String) {
    (object.api_version.clone(), object.kind.clone())
}

fn with_hint(error: ApiError) -> EnvironmentError {
    let hint = match error.code {
        None => "is the API server of the kubeconfig up, and can it be reached from here?",
        Some(401 | 403) => "the API server does not accept the kubeconfig's credentials: have they expired?",
        Some(_) => "does the kubeconfig name an API server of Kubernetes?",
    };
    EnvironmentError::from(error).with_hint(hint)
}
