//! What policies and routes are about: a Service, its callers, and how it is requested.

use crate::names::service_host;
use serde_json::{Value, json};

/// A Service of the mesh.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Subject<'a> {
    /// Namespace of the Service.
    pub namespace: &'a str,
    /// Name of the Service; its pods have the same value in their label `app`.
    pub service: &'a str,
    /// Port of the Service.
    pub port: u16,
    /// Who calls the Service: workloads, or the gateway before it.
    pub callers: &'a [ServiceAccount<'a>],
    /// Path that callers request.
    pub path: &'a str,
}

/// A service account.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServiceAccount<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

impl Subject<'_> {
    /// Fully qualified name of the Service.
    pub fn host(&self) -> String {
        service_host(self.service, self.namespace)
    }
}

/// An object with a name in a namespace.
pub(super) fn object(api_version: &str, kind: &str, (namespace, name): (&str, &str), spec: &Value) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    })
}
