//! Where the API has its objects.
//!
//! Kinds are not looked up: their plurals follow the rule that all kinds of Kubernetes, Istio and the Gateway API keep to. A
//! kind that an experiment defines itself says its plural ([`Plurals`]).

use crate::istio::object::Reference;
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;
use std::collections::BTreeMap;

/// The plurals of kinds that objects have defined, by group and kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Plurals(BTreeMap<(String, String), String>);

/// The kind that defines kinds.
pub const DEFINITION: &str = "CustomResourceDefinition";

impl Plurals {
    /// Learns what an object defines; most define nothing.
    pub fn learn(&mut self, object: &Value) {
        let (names, group) = (&object["spec"]["names"], &object["spec"]["group"]);
        if object["kind"] != DEFINITION {
            return;
        }
        if let (Some(group), Some(kind), Some(plural)) =
            (group.as_str(), names["kind"].as_str(), names["plural"].as_str())
        {
            self.0.insert((group.to_owned(), kind.to_owned()), plural.to_owned());
        }
    }

    /// Where objects of a kind are, in a namespace or in all of the cluster.
    pub fn collection(&self, reference: &Reference) -> String {
        let Reference { api_version, kind, .. } = reference;
        // A version without a group is the core's.
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let root = if group.is_empty() { "/api" } else { "/apis" };
        let namespace =
            reference.namespace.as_deref().map_or_else(String::new, |name| format!("/namespaces/{name}"));
        let plural = match self.0.get(&(group.to_owned(), kind.clone())) {
            Some(plural) => plural.clone(),
            None => ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)).plural,
        };
        format!("{root}/{api_version}{namespace}/{plural}")
    }

    /// Where an object is.
    pub fn object(&self, reference: &Reference) -> String {
        format!("{}/{}", self.collection(reference), reference.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(api_version: &str, kind: &str, namespace: Option<&str>) -> String {
        Plurals::default().object(&Reference::new(api_version, kind, namespace, "a"))
    }

    #[test]
    fn objects_are_where_kubernetes_has_them() {
        assert_eq!(path("v1", "Service", Some("mesh")), "/api/v1/namespaces/mesh/services/a");
        assert_eq!(path("v1", "Namespace", None), "/api/v1/namespaces/a");
        for (kind, plural) in [
            ("AuthorizationPolicy", "authorizationpolicies"),
            ("Gateway", "gateways"),
            ("ProxyConfig", "proxyconfigs"),
            ("ServiceEntry", "serviceentries"),
            ("Telemetry", "telemetries"),
            ("Ingress", "ingresses"),
        ] {
            let expected = format!("/apis/networking.istio.io/v1/namespaces/m/{plural}/a");
            assert_eq!(path("networking.istio.io/v1", kind, Some("m")), expected);
        }
    }

    #[test]
    fn a_kind_that_an_object_defines_has_the_plural_that_it_says() {
        let mut plurals = Plurals::default();
        let names = json!({"kind": "Goose", "plural": "geese"});
        plurals.learn(&json!({"kind": DEFINITION, "spec": {"group": "farm.example", "names": names}}));
        plurals.learn(&json!({"kind": "Goose", "spec": {"group": "farm.example"}}));
        let of = |api_version: &str| plurals.object(&Reference::new(api_version, "Goose", Some("m"), "a"));
        assert_eq!(of("farm.example/v1"), "/apis/farm.example/v1/namespaces/m/geese/a");
        assert_eq!(of("other.example/v1"), "/apis/other.example/v1/namespaces/m/gooses/a");
    }
}
