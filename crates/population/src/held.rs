//! Finds objects: those with the label of a run, and everything that namespaces hold.

use super::FLEET_LABEL;
use crate::Result;
use kube::core::Request;
use kube::core::discovery::v2::APIGroupDiscoveryList;
use kube::core::params::ListParams;
use mesh::kubernetes::client::{ApiClient, RESPONSE_TIMEOUT, parse};
use mesh::kubernetes::lists::{Listed, PAGE, PAGE_TIMEOUT, Shown};
use mesh::kubernetes::object_ref::{Kind, ObjectRef};
use mesh::kubernetes::request::ApiRequest;
use serde_json::Value;

const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// True if Kubernetes' controllers are running: they put the API's certificate into every namespace.
pub fn has_controllers(api: &ApiClient) -> Result<bool> {
    let map = ObjectRef::new("v1", "ConfigMap", Some("default"), "kube-root-ca.crt");
    Ok(api.get(&map)?.is_some())
}

/// Objects of a kind with the label of a run, in all namespaces. Empty if the API lacks the kind or denies access to it.
pub(crate) fn list_labelled(api: &ApiClient, kind: Kind, run_id: &str, shown: Shown) -> Result<Vec<Value>> {
    let operation = format!("list objects of kind {} with the label {FLEET_LABEL}", kind.1);
    let selector = format!("{FLEET_LABEL}={run_id}");
    let listed = Listed { kind, namespace: None, selector: &selector, fields: "", shown };
    Ok(api.list(&operation, &listed, &[403, 404])?.unwrap_or_default())
}

/// Objects in these namespaces, of every kind that the API serves, each with its namespace. Skips events.
pub(crate) fn list_held(api: &ApiClient, namespaces: &[String]) -> Result<Vec<(String, ObjectRef)>> {
    let mut held = Vec::new();
    for Served { root, plural, kind } in served_kinds(api)? {
        let first = page(api, format!("{root}/{plural}"), &kind)?;
        let is_all = first["metadata"]["continue"].as_str().is_none_or(str::is_empty);
        let pages = if is_all {
            vec![first]
        } else {
            let path = |namespace| format!("{root}/namespaces/{namespace}/{plural}");
            namespaces.iter().map(|namespace| page(api, path(namespace), &kind)).collect::<Result<_>>()?
        };
        for object in pages.iter().flat_map(|page| page["items"].as_array()).flatten() {
            let (name, namespace) = (&object["metadata"]["name"], &object["metadata"]["namespace"]);
            let (Some(name), Some(namespace)) = (name.as_str(), namespace.as_str()) else { continue };
            if namespaces.iter().any(|one| one == namespace) {
                let reference = ObjectRef::new(&kind.api_version, &kind.kind, Some(namespace), name);
                held.push((namespace.to_owned(), reference));
            }
        }
    }
    Ok(held)
}

/// A page of metadata; empty if the kind is served but cannot be listed.
fn page(api: &ApiClient, path: String, kind: &ObjectRef) -> Result<Value> {
    let request = Request::new(path).list_metadata(&ListParams::default().limit(PAGE));
    let request = ApiRequest::new(format!("list objects of kind {}", kind.kind), request)?;
    match api.send(PAGE_TIMEOUT, request.absent_on(&[404, 405, 503]))?.as_str() {
        "" => Ok(Value::Null),
        page => parse(page),
    }
}

/// A namespaced kind that can be listed.
struct Served {
    /// Path of the API version.
    root: String,
    plural: String,
    /// A reference without a name.
    kind: ObjectRef,
}

/// All namespaced kinds that can be listed, in the API's preferred version.
fn served_kinds(api: &ApiClient) -> Result<Vec<Served>> {
    let mut kinds = Vec::new();
    for root in ["/api", "/apis"] {
        let request = http::Request::get(root).header(http::header::ACCEPT, DISCOVERY).body(Vec::new());
        let request = ApiRequest::new("list the kinds of the Kubernetes API", request)?;
        let groups: APIGroupDiscoveryList = parse(&api.send(RESPONSE_TIMEOUT, request)?)?;
        for group in groups.items {
            let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
            let Some(preferred) = group.versions.into_iter().next() else { continue };
            let version = preferred.version.unwrap_or_default();
            let api_version = if name.is_empty() { version } else { format!("{name}/{version}") };
            for resource in preferred.resources {
                let can_list = resource.verbs.iter().any(|verb| verb == "list");
                let kind = resource.response_kind.and_then(|kind| kind.kind).unwrap_or_default();
                if resource.scope.as_deref() == Some("Namespaced") && can_list && kind != "Event" {
                    let plural = resource.resource.unwrap_or_default();
                    let kind = ObjectRef::new(&api_version, &kind, None, "");
                    kinds.push(Served { root: format!("{root}/{api_version}"), plural, kind });
                }
            }
        }
    }
    Ok(kinds)
}
