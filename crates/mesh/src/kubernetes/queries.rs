//! Queries that clusters support and labs do not: objects of a namespace by label, logs, kubelets, and
//! permissions in a namespace.

use super::client::{ApiClient, parse};
use super::labelled::all_pages;
use super::object_ref::ObjectRef;
use super::request::{ApiError, ApiRequest};
use crate::Result;
use kube::core::Request;
use kube::core::request::Error as BuildError;
use serde_json::Value;
use std::time::Duration;

/// Timeout of a kubelet that reads hundreds of containers.
const LONG_TIMEOUT: Duration = Duration::from_secs(15);

impl ApiClient {
    /// Text at a path of the API, or behind it. `operation` is used in errors.
    pub fn get_text(&self, operation: &str, path: &str) -> Result<String> {
        let request = http::Request::get(path).body(Vec::new()).map_err(BuildError::BuildRequest);
        let request = ApiRequest::new(operation.to_owned(), request)?;
        Ok(self.send_within(LONG_TIMEOUT, request)?)
    }

    pub fn get_json(&self, operation: &str, path: &str) -> Result<Value> {
        parse(&self.get_text(operation, path)?)
    }

    /// Objects of a kind, in one or all namespaces, that match this label selector (empty: all).
    pub fn list(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Value>> {
        let objects = self.pages((api_version, kind), namespace, selector, &[])?;
        Ok(objects.unwrap_or_default())
    }

    /// As [`Self::list`]; absent if this user may not list the objects.
    pub fn list_allowed(
        &self,
        kind: (&str, &str),
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Option<Vec<Value>>> {
        self.pages(kind, namespace, selector, &[403])
    }

    /// Absent if the API responds with one of the codes `absent`.
    fn pages(
        &self,
        (api_version, kind): (&str, &str),
        namespace: Option<&str>,
        selector: &str,
        absent: &[u16],
    ) -> Result<Option<Vec<Value>>> {
        let path = self.collection(&ObjectRef::new(api_version, kind, namespace, ""));
        let place = namespace.map(|name| format!(" in namespace {name}")).unwrap_or_default();
        all_pages((api_version, kind), selector, |params| {
            let request =
                ApiRequest::new(format!("list {kind} objects{place}"), Request::new(&path).list(params))?;
            match self.send_within(LONG_TIMEOUT, request) {
                Err(ApiError { code: Some(code), .. }) if absent.contains(&code) => Ok(None),
                response => Ok(Some(response?)),
            }
        })
    }

    /// The last lines of a container's log.
    pub fn log_tail(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        lines: usize,
        of_previous: bool,
    ) -> Result<Vec<String>> {
        let path = format!(
            "/api/v1/namespaces/{namespace}/pods/{pod}/log?container={container}&tailLines={lines}&previous={of_previous}"
        );
        let text = self.get_text(&format!("read the log of {container} in pod {namespace}/{pod}"), &path)?;
        Ok(text.lines().map(ToOwned::to_owned).collect())
    }
}
