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
    for object in &mut objects {
        let kind = object["kind"].as_str().unwrap_or_default();
        let is_cluster_wide = kind.starts_with("Cluster") || CLUSTER_WIDE.contains(&kind);
        if !is_cluster_wide && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!(namespace);
        }
    }
    objects
}
