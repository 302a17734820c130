//! Lists objects with a label, of any kind and in all namespaces, and other contents of namespaces.

use super::client::{ApiClient, OnError, parse};
use super::object_ref::ObjectRef;
use super::request::{ApiError, ApiRequest};
use crate::Result;
use experiment::environment::ErrorContext;
use kube::core::Request;
use kube::core::params::ListParams;
use serde_json::{Value, json};
use std::time::Duration;

/// Page size of lists; a pod takes about 3 kB.
const PAGE: u32 = 500;
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// API version and kind, such as `("v1", "Service")`.
pub type Kind = (&'static str, &'static str);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shown {
    /// Complete objects.
    Whole,
    /// Only metadata.
    Metadata,
}

impl ApiClient {
    /// True if Kubernetes' controllers are running: they put the API's certificate into every namespace.
    pub fn has_controllers(&self) -> Result<bool> {
        let map = ObjectRef::new("v1", "ConfigMap", Some("default"), "kube-root-ca.crt");
        Ok(self.get(&map)?.is_some())
    }

    /// Objects of a kind with this label in all namespaces; absent if the API lacks the kind or denies access to it.
    pub fn list_labelled(
        &self,
        (api_version, kind): Kind,
        label: (&str, &str),
        shown: Shown,
    ) -> Result<Option<Vec<Value>>> {
        let path = self.collection(&ObjectRef::new(api_version, kind, None, ""));
        let selector = format!("{}={}", label.0, label.1);
        all_pages((api_version, kind), &selector, |params| {
            let request = match shown {
                Shown::Whole => Request::new(&path).list(params),
                Shown::Metadata => Request::new(&path).list_metadata(params),
            };
            let request =
                ApiRequest::new(format!("list objects of kind {kind} with the label {}", label.0), request)?;
            match self.send_within(PAGE_TIMEOUT, request) {
                Err(ApiError { code: Some(403 | 404), .. }) => Ok(None),
                response => Ok(Some(response?)),
            }
        })
    }

    /// Objects in these namespaces, of every kind that the API serves, each with its namespace. Skips events.
    pub fn list_held(&self, namespaces: &[String]) -> Result<Vec<(String, ObjectRef)>> {
        let mut held = Vec::new();
        for (collection, kind) in self.served_kinds()? {
            let first = self.page(&format!("{collection}?limit={PAGE}"), &kind)?;
            let is_all = first["metadata"]["continue"].as_str().is_none_or(str::is_empty);
            let pages = if is_all {
                vec![first]
            } else {
                let (api, plural) = collection.rsplit_once('/').unwrap_or_default();
                let path = |namespace| format!("{api}/namespaces/{namespace}/{plural}?limit={PAGE}");
                namespaces
                    .iter()
                    .map(|namespace| self.page(&path(namespace), &kind))
                    .collect::<Result<_>>()?
            };
            for object in pages.iter().flat_map(|page| page["items"].as_array()).flatten() {
                let (name, namespace) = (&object["metadata"]["name"], &object["metadata"]["namespace"]);
                let (Some(name), Some(namespace)) = (name.as_str(), namespace.as_str()) else { continue };
                if namespaces.iter().any(|one| one == namespace) {
                    held.push((
                        namespace.to_owned(),
                        ObjectRef {
                            name: name.to_owned(),
                            namespace: Some(namespace.to_owned()),
                            ..kind.clone()
                        },
                    ));
                }
            }
        }
        Ok(held)
    }

    /// A page of metadata; empty if the kind is served but cannot be listed.
    fn page(&self, path: &str, kind: &ObjectRef) -> Result<Value> {
        let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        let request = http::Request::get(path).header(http::header::ACCEPT, accept).body(Vec::new());
        let operation = format!("list objects of kind {}", kind.kind);
        let request = ApiRequest::new(operation, request.map_err(kube::core::request::Error::BuildRequest))?;
        match self.send_within(PAGE_TIMEOUT, request) {
            Err(ApiError { code: Some(404 | 405 | 503), .. }) => Ok(Value::Null),
            response => parse(&response?),
        }
    }

    /// Collection paths and kinds of all namespaced kinds that can be listed, in the API's preferred version.
    fn served_kinds(&self) -> Result<Vec<(String, ObjectRef)>> {
        let mut kinds = Vec::new();
        for root in ["/api", "/apis"] {
            let operation = "list the kinds of the Kubernetes API";
            let request = http::Request::get(root)
                .header(http::header::ACCEPT, DISCOVERY)
                .body(Vec::new())
                .context(operation)?;
            let response = self.send(ApiRequest::new(operation.to_owned(), Ok(request))?)?;
            let groups: Value = parse(&response)?;
            for group in groups["items"].as_array().into_iter().flatten() {
                let name = group["metadata"]["name"].as_str().unwrap_or_default();
                let version = &group["versions"][0];
                let api_version = match (name, version["version"].as_str().unwrap_or_default()) {
                    ("", version) => version.to_owned(),
                    (name, version) => format!("{name}/{version}"),
                };
                for resource in version["resources"].as_array().into_iter().flatten() {
                    let can_list = resource["verbs"]
                        .as_array()
                        .is_some_and(|verbs| verbs.iter().any(|verb| verb == "list"));
                    let kind = resource["responseKind"]["kind"].as_str().unwrap_or_default();
                    if resource["scope"] != "Namespaced" || !can_list || kind == "Event" {
                        continue;
                    }
                    let plural = resource["resource"].as_str().unwrap_or_default();
                    let reference = ObjectRef::new(&api_version, kind, None, "");
                    kinds.push((format!("{root}/{api_version}/{plural}"), reference));
                }
            }
        }
        Ok(kinds)
    }

    /// Creates objects that must not exist yet. Does not read the responses.
    pub fn create_new(&self, objects: &[Value], on_progress: &dyn Fn(usize)) -> Result<()> {
        let requests = objects.iter().map(|object| self.create_request(object));
        self.send_each(requests, OnError::Stop, on_progress).map(drop)
    }
}

/// Objects of a list with their API version and kind, from the pages that `fetch` returns; absent if a page
/// is absent.
pub(super) fn all_pages(
    (api_version, kind): (&str, &str),
    selector: &str,
    fetch: impl Fn(&ListParams) -> Result<Option<String>>,
) -> Result<Option<Vec<Value>>> {
    let mut params = ListParams::default().labels(selector).limit(PAGE);
    let mut objects = Vec::new();
    while let Some(page) = fetch(&params)? {
        let mut page: Value = parse(&page)?;
        for object in page["items"].as_array_mut().into_iter().flatten() {
            object["apiVersion"] = json!(api_version);
            object["kind"] = json!(kind);
            objects.push(object.take());
        }
        match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(token),
            None => return Ok(Some(objects)),
        }
    }
    Ok(None)
}
