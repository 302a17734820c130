//! Operations on objects: apply, create, get, delete, finalize.

use super::client::{ApiClient, OnError, PROBE_TIMEOUT, parse};
use super::documents::{documents, name_in};
use super::object_ref::ObjectRef;
use super::request::ApiRequest;
use crate::Result;
use experiment::environment::error_chain;
use kube::core::Request;
use kube::core::params::{
    DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy,
};
use kube::core::request::Error as BuildError;
use serde_json::{Value, json};
use std::borrow::Borrow;

const FIELD_MANAGER: &str = "meshmeter";
const NOT_FOUND: &[u16] = &[404];

impl ApiClient {
    /// Creates cluster-scoped objects of one kind from a file of YAML documents. They must not exist yet.
    pub fn create_documents(&self, api_version: &str, kind: &str, yaml: &str) -> Result<usize> {
        let path = self.collection((api_version, kind), None);
        let requests = documents(yaml).map(|document| {
            let request = http::Request::post(&path)
                .header(http::header::CONTENT_TYPE, "application/yaml")
                .body(document.as_bytes().to_vec());
            ApiRequest::new(format!("create the {kind} {}", name_in(document)), request)
        });
        self.send_all(requests).map(|responses| responses.len())
    }

    /// Server-side apply. Returns the objects as stored by the API, in the same order. Unknown fields are errors.
    pub fn apply(&self, objects: &[impl Borrow<Value>]) -> Result<Vec<Value>> {
        objects.iter().for_each(|object| self.mapper().learn(object.borrow()));
        let params = apply_params().validation_strict();
        let requests = objects.iter().map(|object| self.apply_request(object.borrow(), &params));
        self.send_all(requests)?.iter().map(|response| parse(response)).collect()
    }

    /// Checks whether the API would accept an object, without writing it. The error is the API's own message.
    pub fn dry_run(&self, object: &Value) -> Result<(), String> {
        let request = self.apply_request(object, &apply_params().validation_strict().dry_run());
        let request = request.map_err(|error| error_chain(&error))?;
        self.send(PROBE_TIMEOUT, request).map(drop).map_err(|error| error.reason)
    }

    /// True if the kind defined by `definition` is served by now, in every version that the definition serves.
    pub(super) fn serves_defined_kind(&self, definition: &Value) -> bool {
        let spec = &definition["spec"];
        let (group, kind) = (spec["group"].as_str(), spec["names"]["kind"].as_str());
        let versions = spec["versions"].as_array().into_iter().flatten();
        let served = versions.filter(|version| version["served"] == true);
        served.filter_map(|version| version["name"].as_str()).all(|version| {
            let version = format!("{}/{version}", group.unwrap_or_default());
            let collection = self.collection((&version, kind.unwrap_or_default()), None);
            let request = Request::new(collection).list(&ListParams::default().limit(1));
            self.probe(ApiRequest::new("list objects of a kind", request)) == Some(true)
        })
    }

    /// Creates objects that are expected not to exist yet, and applies those that do. This is cheaper for the
    /// API than [`Self::apply`], which looks up existing objects. `on_progress` receives the number written so far.
    pub fn create(&self, objects: &[Value], on_progress: &dyn Fn(usize)) -> Result<()> {
        let requests = objects.iter().map(|object| {
            let on_already_exists = Some(Box::new(self.apply_request(object, &apply_params())?));
            Ok(ApiRequest { on_already_exists, ..self.create_request(object)? })
        });
        self.send_each(requests, OnError::Stop, on_progress).map(drop)
    }

    /// Creates objects that must not exist yet.
    pub fn create_new(&self, objects: &[Value], on_progress: &dyn Fn(usize)) -> Result<()> {
        let requests = objects.iter().map(|object| self.create_request(object));
        self.send_each(requests, OnError::Stop, on_progress).map(drop)
    }

    /// Sets the `status` of existing objects. Each value names its object and has a field `status`.
    pub fn set_status(&self, objects: &[Value], on_progress: &dyn Fn(usize)) -> Result<()> {
        let requests = objects.iter().map(|object| self.status_request(object));
        self.send_each(requests, OnError::Stop, on_progress).map(drop)
    }

    pub fn get(&self, object: &ObjectRef) -> Result<Option<Value>> {
        Ok(self.get_all(std::slice::from_ref(object))?.pop().flatten())
    }

    /// The objects in the order of `objects`; absent if they do not exist.
    pub fn get_all(&self, objects: &[ObjectRef]) -> Result<Vec<Option<Value>>> {
        let responses = self.send_all(objects.iter().map(|object| self.get_request(object)))?;
        responses.iter().map(|text| (!text.is_empty()).then(|| parse(text)).transpose()).collect()
    }

    /// Deletes objects without a grace period, ignoring absent ones. Returns the first error after deleting
    /// the others.
    pub fn delete(&self, objects: &[ObjectRef], on_progress: &dyn Fn(usize)) -> Result<()> {
        let requests = objects.iter().map(|object| self.delete_request(object));
        self.send_each(requests, OnError::Continue, on_progress).map(drop)
    }

    /// Finishes the deletion of namespaces. In a cluster, a controller does this once they are empty.
    pub fn finalize_namespaces(&self, names: &[&str]) -> Result<()> {
        let requests = names.iter().map(|name| {
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}});
            let body = body.to_string().into_bytes();
            let resource = Request::new(self.collection(("v1", "Namespace"), None));
            let request = resource.replace_subresource("finalize", name, &PostParams::default(), body);
            Ok(ApiRequest::new(format!("finalize namespace {name}"), request)?.absent_on(NOT_FOUND))
        });
        self.send_each(requests, OnError::Continue, &|_| ()).map(drop)
    }

    /// Removes finalizers of deleted objects, since a lab has no controllers that would. Ignores absent objects.
    pub fn remove_finalizers(&self, objects: &[ObjectRef]) -> Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let requests = objects.iter().map(|object| {
            let request = self.request("remove the finalizers of", object, |resource| {
                resource.patch(&object.name, &PatchParams::default(), &patch)
            });
            Ok(request?.absent_on(NOT_FOUND))
        });
        self.send_each(requests, OnError::Continue, &|_| ()).map(drop)
    }

    pub fn status_request(&self, object: &Value) -> Result<ApiRequest> {
        let patch = Patch::Merge(json!({"status": object["status"]}));
        let object = ObjectRef::from_object(object)?;
        self.request("set the status of", &object, |resource| {
            resource.patch_subresource("status", &object.name, &PatchParams::default(), &patch)
        })
    }

    pub fn create_request(&self, object: &Value) -> Result<ApiRequest> {
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let body = object.to_string().into_bytes();
        self.request("create", &ObjectRef::from_object(object)?, |resource| resource.create(&params, body))
    }

    pub fn delete_request(&self, object: &ObjectRef) -> Result<ApiRequest> {
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        let request = self.request("delete", object, |resource| resource.delete(&object.name, &params));
        Ok(request?.absent_on(NOT_FOUND))
    }

    /// The response is empty if there is no such object.
    pub fn get_request(&self, object: &ObjectRef) -> Result<ApiRequest> {
        let params = GetParams::default();
        Ok(self.request("get", object, |resource| resource.get(&object.name, &params))?.absent_on(NOT_FOUND))
    }

    fn apply_request(&self, object: &Value, params: &PatchParams) -> Result<ApiRequest> {
        let reference = ObjectRef::from_object(object)?;
        let request = self.request("apply", &reference, |resource| {
            resource.patch(&reference.name, params, &Patch::Apply(object))
        })?;
        let ObjectRef { api_version, kind, .. } = &reference;
        let unknown_path = Some(format!("the Kubernetes API has no kind {kind} in {api_version}"));
        Ok(ApiRequest { unknown_path, ..request })
    }

    /// A request on the collection of an object.
    pub fn request(
        &self,
        operation: &str,
        object: &ObjectRef,
        build: impl FnOnce(&Request) -> Result<http::Request<Vec<u8>>, BuildError>,
    ) -> Result<ApiRequest> {
        let collection = self.collection(object.api_kind(), object.namespace.as_deref());
        ApiRequest::new(format!("{operation} {object}"), build(&Request::new(collection)))
    }

    /// Path of all objects of a kind (API version and kind), in a namespace or in the cluster.
    pub fn collection(&self, kind: (&str, &str), namespace: Option<&str>) -> String {
        self.mapper().collection(kind, namespace)
    }
}

/// Parameters of a server-side apply that takes over fields of other managers.
fn apply_params() -> PatchParams {
    PatchParams::apply(FIELD_MANAGER).force()
}
