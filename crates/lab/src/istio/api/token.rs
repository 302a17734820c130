//! Tokens of service accounts, by which proxies and ztunnels show who they are.

use super::question::Question;
use super::{Api, read};
use crate::certificates::VALIDITY;
use crate::istio::object::Reference;
use experiment::environment::EnvironmentError;
use http::Method;
use serde_json::{Value, json};

impl Api {
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
        spec["expirationSeconds"] = json!(VALIDITY.as_secs());
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
        let answer =
            self.ask(Question::new(operation.clone(), Method::POST, path).with("application/json", &body))?;
        let answer = read(&answer)?;
        let token = answer["status"]["token"].as_str();
        token.map(ToOwned::to_owned).ok_or_else(|| EnvironmentError::new(operation, "the answer has none"))
    }
}
