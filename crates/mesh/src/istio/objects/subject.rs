//! The subject of policies and routes: a Service, its callers, and how it is called.

use crate::names::service_host;
use experiment::Protocol;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Subject<'a> {
    pub namespace: &'a str,
    /// Name of the Service, and value of its pods' label `app`.
    pub service: &'a str,
    pub port: u16,
    pub callers: &'a [ServiceAccount<'a>],
    pub protocol: Protocol,
    /// Paths of its endpoints.
    pub endpoints: &'a [&'a str],
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServiceAccount<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
}

impl Subject<'_> {
    pub fn host(&self) -> String {
        service_host(self.service, self.namespace)
    }
}

pub fn object(api_version: &str, kind: &str, (namespace, name): (&str, &str), spec: &Value) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    })
}
