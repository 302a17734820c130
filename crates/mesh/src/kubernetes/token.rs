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
    /// Tokens of service accounts, given by namespace and name, in the same order.
    pub fn tokens(&self, accounts: &[(&str, &str)], audience: &str) -> Result<Vec<String>> {
        self.bound_tokens(accounts, audience, None)
    }

    /// A service account token bound to a pod of the same namespace, from which a ztunnel's node can be derived.
    pub fn pod_token(&self, pod: &ObjectRef, account: &str, audience: &str) -> Result<String> {
        let bound = BoundObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(pod.name.clone()),
            uid: Some(self.uid(pod)?),
        };
        let account = (pod.namespace.as_deref().unwrap_or_default(), account);
        Ok(self.bound_tokens(&[account], audience, Some(&bound))?.remove(0))
    }

    /// UID of an object, which differs from those of earlier objects of the same name.
    pub fn uid(&self, object: &ObjectRef) -> Result<String> {
        let found = self.get(object)?;
        let uid = found.as_ref().and_then(|found| found["metadata"]["uid"].as_str());
        uid.map(ToOwned::to_owned)
            .ok_or_else(|| EnvironmentError::new(format!("get {object}"), "there is no such object"))
    }

    fn bound_tokens(
        &self,
        accounts: &[(&str, &str)],
        audience: &str,
        bound: Option<&BoundObjectReference>,
    ) -> Result<Vec<String>> {
        let operation = |(namespace, name): &(&str, &str)| {
            format!("request a token of service account {namespace}/{name}")
        };
        let spec = TokenRequestSpec {
            audiences: Some(vec![audience.to_owned()]),
            bound_object_ref: bound.cloned(),
            expiration_seconds: i64::try_from(VALIDITY.as_secs()).ok(),
        };
        let body = serde_json::to_vec(&TokenRequest { spec: Some(spec), ..TokenRequest::default() })
            .context("request tokens of service accounts")?;
        let requests = accounts.iter().map(|account| {
            let collection = self.collection(("v1", "ServiceAccount"), Some(account.0));
            let params = PostParams::default();
            let request =
                Request::new(collection).create_subresource("token", account.1, &params, body.clone());
            ApiRequest::new(operation(account), request)
        });
        let read = |(response, account): (&String, _)| {
            let token = parse::<TokenRequest>(response)?.status.and_then(|status| status.token);
            token.ok_or_else(|| EnvironmentError::new(operation(account), "the response has no token"))
        };
        self.send_all(requests)?.iter().zip(accounts).map(read).collect()
    }
}
