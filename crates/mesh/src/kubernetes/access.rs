//! The API's version and kinds, and the permissions of the kubeconfig's user, checked before anything is written.

use super::client::{ApiClient, RESPONSE_TIMEOUT, parse};
use super::object_ref::Kind;
use super::request::{ApiError, ApiRequest};
use crate::Result;
use experiment::environment::EnvironmentError;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::core::Request;
use kube::core::params::PostParams;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

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

impl ApiClient {
    /// Version of the API server, such as `v1.36.3`. If it does not respond, the error has a hint.
    pub fn version(&self) -> Result<String> {
        let operation = "query the version of the Kubernetes API";
        let response = self.send(RESPONSE_TIMEOUT, ApiRequest::get(operation, "/version")?);
        let version: Value = parse(&response.map_err(with_hint)?)?;
        version["gitVersion"].as_str().map(ToOwned::to_owned).ok_or_else(|| {
            let reason = "the response has no gitVersion: another program responds there";
            EnvironmentError::new(operation, reason)
        })
    }

    /// Those of these actions that the user may not perform in a namespace, or in all if there is none.
    pub fn denied(&self, namespace: Option<&str>, actions: &[Action]) -> Result<Vec<Action>> {
        let reviews = actions.iter().map(|action| {
            let Action { verb, group, resource, subresource } = action;
            let attributes = json!({
                "verb": verb, "group": group, "resource": resource, "subresource": subresource,
                "namespace": namespace.unwrap_or_default(),
            });
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            });
            let review = Request::new(REVIEWS).create(&PostParams::default(), review.to_string().into());
            ApiRequest::new("query the rights of this user from the Kubernetes API", review)
        });
        let responses = self.send_all(reviews)?;
        let reviews: Vec<Value> = responses.iter().map(|response| parse(response)).collect::<Result<_>>()?;
        let reviewed = reviews.iter().zip(actions);
        let denied = reviewed.filter(|(review, _)| review["status"]["allowed"] != true);
        Ok(denied.map(|(_, action)| action.clone()).collect())
    }

    /// Plural names of kinds. Kinds that the API does not serve are missing.
    pub fn served(&self, kinds: &[Kind]) -> Result<BTreeMap<Kind, String>> {
        let versions: BTreeSet<&str> = kinds.iter().map(|(version, _)| *version).collect();
        let lists = versions.iter().map(|version| {
            let root = if version.contains('/') { "/apis" } else { "/api" };
            let operation = format!("query the kinds of {version} from the Kubernetes API");
            Ok(ApiRequest::get(operation, &format!("{root}/{version}"))?.absent_on(&[404]))
        });
        let mut served = BTreeMap::new();
        for (list, version) in
            self.send_all(lists)?.iter().zip(&versions).filter(|(list, _)| !list.is_empty())
        {
            // A subresource follows after a slash.
            let resources = parse::<APIResourceList>(list)?.resources.into_iter();
            for resource in resources.filter(|resource| !resource.name.contains('/')) {
                let kind = kinds.iter().find(|kind| **kind == (*version, resource.kind.as_str()));
                served.extend(kind.map(|kind| (*kind, resource.name)));
            }
        }
        Ok(served)
    }
}

fn with_hint(error: ApiError) -> EnvironmentError {
    let hint = match error.code {
        None => "is the API server of the kubeconfig up, and can it be reached from here?",
        Some(401 | 403) => "the API server does not accept the kubeconfig's credentials: have they expired?",
        Some(_) => "does the kubeconfig name an API server of Kubernetes?",
    };
    EnvironmentError::from(error).with_hint(hint)
}
