//! The experiment's own objects.

use experiment::mesh_settings::ExtraObjects;
use serde_json::{Value, json};

/// Kinds that belong to the whole cluster, besides those whose name begins with `Cluster`.
const CLUSTER_WIDE: [&str; 27] = [
    "APIService",
    "CSIDriver",
    "CSINode",
    "CertificateSigningRequest",
    "CustomResourceDefinition",
    "DeviceClass",
    "FlowSchema",
    "GatewayClass",
    "IPAddress",
    "IngressClass",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "PriorityLevelConfiguration",
    "ResourceSlice",
    "RuntimeClass",
    "ServiceCIDR",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "VolumeAttachment",
    "VolumeAttributesClass",
];

/// The objects, each in the namespace of the trial unless it names another or belongs to the whole cluster.
pub(super) fn objects(extra: Option<&ExtraObjects>, namespace: &str) -> Vec<Value> {
    let mut objects = extra.map_or_else(Vec::new, |extra| extra.objects.clone());
    let defined: Vec<(String, String)> = objects.iter().filter_map(defined_cluster_wide).collect();
    for object in &mut objects {
        let kind = object["kind"].as_str().unwrap_or_default();
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let is_defined = defined.iter().any(|(group, cluster_wide)| {
            cluster_wide == kind && version.split_once('/').is_some_and(|(of, _)| of == group)
        });
        let is_cluster_wide = kind.starts_with("Cluster") || CLUSTER_WIDE.contains(&kind) || is_defined;
        if !is_cluster_wide && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!(namespace);
        }
    }
    objects
}

/// The policies among them that every ztunnel is told of, by namespace and name: all that allow or deny, but those about a
/// waypoint.
#[must_use]
pub fn policies_of_ztunnels(extra: Option<&ExtraObjects>, namespace: &str) -> Vec<(String, String)> {
    let is_one = |object: &Value| {
        let spec = &object["spec"];
        let is_istios =
            object["apiVersion"].as_str().is_some_and(|version| version.starts_with(POLICY_GROUP));
        let acts = spec["action"].as_str().is_none_or(|action| action == "ALLOW" || action == "DENY");
        let is_in_earnest = object["metadata"]["annotations"][DRY_RUN].is_null();
        let is_about_pods = spec["targetRef"].is_null() && spec["targetRefs"].is_null();
        is_istios && object["kind"] == "AuthorizationPolicy" && acts && is_in_earnest && is_about_pods
    };
    let objects = objects(extra, namespace).into_iter().filter(is_one);
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    objects
        .filter_map(|object| {
            Some((text(&object["metadata"]["namespace"])?, text(&object["metadata"]["name"])?))
        })
        .collect()
}

/// The group of authorization policies.
const POLICY_GROUP: &str = "security.istio.io/";

/// With this annotation a policy is only tried.
const DRY_RUN: &str = "istio.io/dry-run";

/// The group and kind that an object defines to belong to the whole cluster.
fn defined_cluster_wide(object: &Value) -> Option<(String, String)> {
    let spec = &object["spec"];
    let is_one = object["kind"] == "CustomResourceDefinition" && spec["scope"] == "Cluster";
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    is_one.then_some((text(&spec["group"])?, text(&spec["names"]["kind"])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_the_whole_cluster_is_in_no_namespace() {
        let object = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}});
        let mut definition = object("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        definition["spec"] = json!({"group": "farm.example", "scope": "Cluster", "names": {"kind": "Goose"}});
        let all = vec![
            definition,
            object("farm.example/v1", "Goose"),
            object("other.example/v1", "Goose"),
            object("v1", "Service"),
            object("v1", "Namespace"),
        ];
        let extra = ExtraObjects { text: String::new(), objects: all };
        let objects = objects(Some(&extra), "mesh-1");
        let placed: Vec<bool> =
            objects.iter().map(|object| object["metadata"]["namespace"] == "mesh-1").collect();
        assert_eq!(placed, [false, false, true, true, false]);
    }

    #[test]
    fn ztunnels_are_told_of_policies_that_are_about_pods() {
        let policy = |name: &str, spec: Value| json!({"apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy", "metadata": {"name": name}, "spec": spec});
        let mut tried = policy("tried", json!({"action": "DENY"}));
        tried["metadata"]["annotations"] = json!({DRY_RUN: "true"});
        let mut elsewhere = policy("elsewhere", json!({"selector": {"matchLabels": {"app": "server"}}}));
        elsewhere["metadata"]["namespace"] = json!("istio-system");
        let objects = vec![
            policy("denies", json!({"action": "DENY"})),
            policy("audits", json!({"action": "AUDIT"})),
            policy("of-a-waypoint", json!({"targetRefs": [{"kind": "Gateway"}]})),
            tried,
            elsewhere,
            json!({"apiVersion": "security.istio.io/v1", "kind": "PeerAuthentication", "metadata": {"name": "a"}}),
        ];
        let extra = ExtraObjects { text: String::new(), objects };
        let told = policies_of_ztunnels(Some(&extra), "mesh-1");
        let expected = [("mesh-1", "denies"), ("istio-system", "elsewhere")];
        assert_eq!(told, expected.map(|(namespace, name)| (namespace.to_owned(), name.to_owned())));
    }
}
