//! Lists of the objects of a kind, and other text behind the API.

use super::client::{ApiClient, RESPONSE_TIMEOUT, parse};
use super::request::ApiRequest;
use crate::Result;
use kube::core::Request;
use kube::core::params::ListParams;
use serde_json::{Value, json};
use std::time::Duration;

/// Page size of lists; a pod takes about 3 kB.
pub const PAGE: u32 = 500;
pub const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shown {
    /// Complete objects.
    Whole,
    /// Only metadata.
    Metadata,
}

/// Objects to list.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    /// API version and kind.
    pub kind: (&'a str, &'a str),
    /// If absent: all namespaces.
    pub namespace: Option<&'a str>,
    /// Label selector; empty: all objects.
    pub selector: &'a str,
    /// Field selector; empty: all objects.
    pub fields: &'a str,
    pub shown: Shown,
}

impl ApiClient {
    /// Objects with their API version and kind; absent if the API responds with one of the statuses `absent_on`.
    /// `operation` is used in errors.
    pub fn list(
        &self,
        operation: &str,
        listed: &Listed<'_>,
        absent_on: &'static [u16],
    ) -> Result<Option<Vec<Value>>> {
        let resource = Request::new(self.collection(listed.kind, listed.namespace));
        let mut params = ListParams::default().labels(listed.selector).fields(listed.fields).limit(PAGE);
        let mut objects = Vec::new();
        loop {
            let request = match listed.shown {
                Shown::Whole => resource.list(&params),
                Shown::Metadata => resource.list_metadata(&params),
            };
            let request = ApiRequest::new(operation, request)?.absent_on(absent_on);
            let page = self.send(PAGE_TIMEOUT, request)?;
            if page.is_empty() {
                return Ok(None);
            }
            let mut page: Value = parse(&page)?;
            for object in page["items"].as_array_mut().into_iter().flatten() {
                object["apiVersion"] = json!(listed.kind.0);
                object["kind"] = json!(listed.kind.1);
                objects.push(object.take());
            }
            match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(token),
                None => return Ok(Some(objects)),
            }
        }
    }

    /// Text at a path of the API, or behind it. `operation` is used in errors.
    pub fn get_text(&self, operation: &str, path: &str) -> Result<String> {
        Ok(self.send(RESPONSE_TIMEOUT, ApiRequest::get(operation, path)?)?)
    }
}
