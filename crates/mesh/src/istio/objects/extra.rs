//! Objects of the experiment itself (`istio.extra`).

use experiment::mesh_settings::ExtraObjects;
use serde_json::{Value, json};

/// Cluster-scoped kinds, in addition to those whose names begin with `Cluster`.
const CLUSTER_SCOPED: &str = "APIService CSIDriver CSINode CertificateSigningRequest CustomResourceDefinition DeviceClass FlowSchema \
    GatewayClass IPAddress IngressClass MutatingAdmissionPolicy MutatingAdmissionPolicyBinding \
    MutatingWebhookConfiguration Namespace Node PersistentVolume PriorityClass PriorityLevelConfiguration \
    ResourceSlice RuntimeClass ServiceCIDR StorageClass ValidatingAdmissionPolicy \
    ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration VolumeAttachment VolumeAttributesClass";

/// The objects, each in `namespace` unless it has another namespace or is cluster-scoped.
pub fn objects(extra: Option<&ExtraObjects>, namespace: &str) -> Vec<Value> {
    let mut objects = extra.map_or_else(Vec::new, |extra| extra.objects.clone());
    let defined: Vec<(String, String)> = objects.iter().filter_map(defined_cluster_scoped).collect();
    for object in &mut objects {
        let kind = object["kind"].as_str().unwrap_or_default();
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let is_defined = defined.iter().any(|(group, cluster_scoped)| {
            cluster_scoped == kind && version.split_once('/').is_some_and(|(of, _)| of == group)
        });
        let is_cluster_scoped =
            kind.starts_with("Cluster") || CLUSTER_SCOPED.split(' ').any(|known| known == kind) || is_defined;
        if !is_cluster_scoped && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!(namespace);
        }
    }
    objects
}

/// Namespace and name of the policies among them that every ztunnel gets: all that allow or deny, except
/// those of waypoints.
pub fn ztunnel_policies(extra: Option<&ExtraObjects>, namespace: &str) -> Vec<(String, String)> {
    let is_one = |object: &Value| {
        let spec = &object["spec"];
        let is_istios =
            object["apiVersion"].as_str().is_some_and(|version| version.starts_with(POLICY_GROUP));
        let acts = spec["action"].as_str().is_none_or(|action| action == "ALLOW" || action == "DENY");
        let is_enforced = object["metadata"]["annotations"][DRY_RUN].is_null();
        let is_for_pods = spec["targetRef"].is_null() && spec["targetRefs"].is_null();
        is_istios && object["kind"] == "AuthorizationPolicy" && acts && is_enforced && is_for_pods
    };
    let objects = objects(extra, namespace).into_iter().filter(is_one);
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    objects
        .filter_map(|object| {
            Some((text(&object["metadata"]["namespace"])?, text(&object["metadata"]["name"])?))
        })
        .collect()
}

const POLICY_GROUP: &str = "security.istio.io/";
/// Annotation of a policy that is not enforced.
const DRY_RUN: &str = "istio.io/dry-run";

fn defined_cluster_scoped(object: &Value) -> Option<(String, String)> {
    let spec = &object["spec"];
    let is_one = object["kind"] == "CustomResourceDefinition" && spec["scope"] == "Cluster";
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    is_one.then_some((text(&spec["group"])?, text(&spec["names"]["kind"])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_cluster_scoped_kinds_have_no_namespace() {
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
    fn ztunnel_policies_are_those_for_pods() {
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
        let told = ztunnel_policies(Some(&extra), "mesh-1");
        let expected = [("mesh-1", "denies"), ("istio-system", "elsewhere")];
        assert_eq!(told, expected.map(|(namespace, name)| (namespace.to_owned(), name.to_owned())));
    }
}
