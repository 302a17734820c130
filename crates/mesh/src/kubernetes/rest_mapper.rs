//! API paths of objects. Kinds are not discovered: their plurals follow the rule that all kinds of
//! Kubernetes, Istio and the Gateway API obey. Kinds that an experiment defines take their plurals from their
//! definitions.

use super::object_ref::group_version;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, Resource as _};
use serde_json::Value;
use std::collections::HashMap;

/// Plurals of kinds from CRDs, by group and kind.
#[derive(Clone, Debug, Default)]
pub(super) struct RestMapper(HashMap<(String, String), String>);

pub(super) const DEFINITION: &str = "CustomResourceDefinition";

impl RestMapper {
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

    /// Path of all objects of a kind (API version and kind), in a namespace or in the cluster.
    pub fn collection(&self, (api_version, kind): (&str, &str), namespace: Option<&str>) -> String {
        let (group, version) = group_version(api_version);
        let plural = self.0.get(&(group.to_owned(), kind.to_owned()));
        let kind = GroupVersionKind::gvk(group, version, kind);
        let resource = match plural {
            Some(plural) => ApiResource::from_gvk_with_plural(&kind, plural),
            None => ApiResource::from_gvk(&kind),
        };
        DynamicObject::url_path(&resource, namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(api_version: &str, kind: &str, namespace: Option<&str>) -> String {
        RestMapper::default().collection((api_version, kind), namespace)
    }

    #[test]
    fn collection_is_path_served_by_kubernetes() {
        assert_eq!(path("v1", "Service", Some("mesh")), "/api/v1/namespaces/mesh/services");
        assert_eq!(path("v1", "Namespace", None), "/api/v1/namespaces");
        for (kind, plural) in [
            ("AuthorizationPolicy", "authorizationpolicies"),
            ("Gateway", "gateways"),
            ("ProxyConfig", "proxyconfigs"),
            ("ServiceEntry", "serviceentries"),
            ("Telemetry", "telemetries"),
            ("Ingress", "ingresses"),
        ] {
            let expected = format!("/apis/networking.istio.io/v1/namespaces/m/{plural}");
            assert_eq!(path("networking.istio.io/v1", kind, Some("m")), expected);
        }
    }

    #[test]
    fn collection_of_defined_kind_uses_its_plural() {
        let mut mapper = RestMapper::default();
        let names = json!({"kind": "Goose", "plural": "geese"});
        mapper.learn(&json!({"kind": DEFINITION, "spec": {"group": "farm.example", "names": names}}));
        mapper.learn(&json!({"kind": "Goose", "spec": {"group": "farm.example"}}));
        let of = |api_version: &str| mapper.collection((api_version, "Goose"), Some("m"));
        assert_eq!(of("farm.example/v1"), "/apis/farm.example/v1/namespaces/m/geese");
        assert_eq!(of("other.example/v1"), "/apis/other.example/v1/namespaces/m/gooses");
    }
}
