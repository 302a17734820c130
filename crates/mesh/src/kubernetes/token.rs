//! Tokens of service accounts, which authenticate proxies to istiod.

use super::client::{ApiClient, parse};
use super::object_ref::ObjectRef;
use super::request::ApiRequest;
use crate::Result;
use experiment::environment::{EnvironmentError, ErrorContext};
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use kube::core::Request;
use kube::core::params::PostParams;
use std::time::Duration;

/// Longer than a lab stays open, which may be weeks: nothing renews these tokens.
const VALIDITY: Duration = Duration::from_secs(90 * 24 * 3600);

impl ApiClient {
    pub fn token(&self, namespace: &str, account: &str, audience: &str) -> Result<String> {
        Ok(self.tokens(&[(namespace, account)], audience)?.remove(0))
    }

    /// Tokens of service accounts, given by namespace and name, in the same order.
    pub fn tokens(&self, accounts: &[(&str, &str)], audience: &str) -> Result<Vec<String>> {
        let requests =
            accounts.iter().map(|(namespace, account)| self.request(namespace, account, audience, None));
        let responses = self.send_all(requests)?;
        responses
            .iter()
            .zip(accounts)
            .map(|(response, (namespace, name))| read(response, namespace, name))
            .collect()
    }

    /// A service account token bound to a pod of the same namespace, from which a ztunnel's node can be derived.
    pub fn pod_token(&self, pod: &ObjectRef, account: &str, audience: &str) -> Result<String> {
        let bound = BoundObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(pod.name.clone()),
            uid: Some(self.uid(pod)?),
        };
        let namespace = pod.namespace.as_deref().unwrap_or_default();
        let request = self.request(namespace, account, audience, Some(bound))?;
        read(&self.send(request)?, namespace, account)
    }

    /// UID of an object, which differs from those of earlier objects of the same name.
    pub fn uid(&self, object: &ObjectRef) -> Result<String> {
        let found = self.get(object)?;
        let uid = found.as_ref().and_then(|found| found["metadata"]["uid"].as_str());
        uid.map(ToOwned::to_owned)
            .ok_or_else(|| EnvironmentError::new(format!("get {object}"), "there is no such object"))
    }

    fn request(
        &self,
        namespace: &str,
        account: &str,
        audience: &str,
        bound_object_ref: Option<BoundObjectReference>,
    ) -> Result<ApiRequest> {
        let operation = operation(namespace, account);
        let spec = TokenRequestSpec {
            audiences: Some(vec![audience.to_owned()]),
            bound_object_ref,
            expiration_seconds: i64::try_from(VALIDITY.as_secs()).ok(),
        };
        let body = serde_json::to_vec(&TokenRequest { spec: Some(spec), ..TokenRequest::default() })
            .context(operation.clone())?;
        let accounts = self.collection(&ObjectRef::new("v1", "ServiceAccount", Some(namespace), account));
        let request =
            Request::new(accounts).create_subresource("token", account, &PostParams::default(), body);
        ApiRequest::new(operation, request)
    }
}

fn operation(namespace: &str, account: &str) -> String {
    format!("request a token of service account {namespace}/{account}")
}

fn read(response: &str, namespace: &str, account: &str) -> Result<String> {
    let token = parse::<TokenRequest>(response)?.status.and_then(|status| status.token);
    token.ok_or_else(|| EnvironmentError::new(operation(namespace, account), "the response has no token"))
}
