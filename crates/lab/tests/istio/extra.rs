//! The experiment's own objects: what they may not do to others, and that they are removed with their trial.

use crate::cases::LogFolder;
use crate::modes::{settings, spec};
use crate::trial::trial;
use experiment::MeshSettings;
use experiment::environment::{DeploymentSpec, EnvironmentError, error_chain};
use experiment::mesh_settings::ExtraObjects;
use lab::Lab;
use lab::environment::LocalLab;
use mesh::kubernetes::object_ref::ObjectRef;
use results::Mode;
use serde_json::{Value, json};
use std::sync::Arc;

fn with_extra(mode: Mode, objects: &[Value]) -> DeploymentSpec {
    let extra = ExtraObjects { text: String::new(), objects: objects.to_vec() };
    let settings = MeshSettings { extra: Some(extra), ..settings() };
    DeploymentSpec { istio: Arc::new(settings), ..spec(mode) }
}

fn object(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Value {
    let metadata = namespace
        .map_or_else(|| json!({"name": name}), |namespace| json!({"name": name, "namespace": namespace}));
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
}

/// Objects in a namespace of their own, in that of the control plane, and in none. Nothing in the lab would
/// ever remove a finalizer or empty the namespace.
fn objects_elsewhere() -> Vec<Value> {
    let mut kept = object("v1", "ConfigMap", Some("team-a"), "kept");
    kept["metadata"]["finalizers"] = json!(["example.com/kept"]);
    let mut volume = object("v1", "PersistentVolume", None, "volume-a");
    volume["spec"] =
        json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}});
    let mut filter =
        object("networking.istio.io/v1alpha3", "EnvoyFilter", Some("istio-system"), "for-the-whole-mesh");
    filter["spec"] = json!({"configPatches": []});
    let mut definition =
        object("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "things.example.com");
    definition["spec"] = json!({
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    });
    // An object may be listed before its namespace.
    vec![
        kept,
        object("v1", "Namespace", None, "team-a"),
        filter,
        volume,
        definition,
        object("rbac.authorization.k8s.io/v1", "ClusterRole", None, "system:a"),
    ]
}

pub fn extra_objects_elsewhere_are_removed_with_trial(_lab: &Lab, local_lab: &LocalLab) {
    let objects = objects_elsewhere();
    // One mode after the other, each with the same objects.
    for mode in [Mode::Sidecar, Mode::None] {
        let trial = trial(local_lab, &with_extra(mode, &objects), |_| {
            let control_plane = local_lab.running_control_plane().expect("it configured the proxies");
            for object in &objects {
                let reference = ObjectRef::from_object(object).expect("it names itself");
                assert!(
                    control_plane.api().get(&reference).expect("the API answers").is_some(),
                    "{reference}"
                );
            }
        });
        assert!(
            trial.observation.evidence.path.proven,
            "{mode}: {:?}",
            trial.observation.evidence.path.reasons
        );
        let control_plane = local_lab.running_control_plane().expect("it lives on");
        for object in &objects {
            let reference = ObjectRef::from_object(object).expect("it names itself");
            let left = control_plane.api().get(&reference).expect("the API answers");
            assert_eq!(left, None, "{mode} left {reference}");
        }
    }
}

fn refused(local_lab: &LocalLab, object: &Value) -> Box<EnvironmentError> {
    let logs = LogFolder::create();
    let brought_up =
        local_lab.bring_up(&with_extra(Mode::Sidecar, std::slice::from_ref(object)), logs.path());
    Box::new(brought_up.err().unwrap_or_else(|| panic!("{object} was taken")))
}

pub fn extra_objects_cannot_replace_existing_ones(_lab: &Lab, local_lab: &LocalLab) {
    // An older version of the policy, which claims mutual TLS.
    let mut policy = object("security.istio.io/v1beta1", "PeerAuthentication", None, "default");
    policy["spec"] = json!({"mtls": {"mode": "DISABLE"}});
    let mut service = object("v1", "Service", None, "server");
    service["spec"] = json!({"ports": [{"port": 8080}]});
    for object in [policy, service, object("v1", "ServiceAccount", None, "client")] {
        let error = refused(local_lab, &object);
        assert!(
            error_chain(&error).contains("the trial has such an object already"),
            "{}",
            error_chain(&error)
        );
        assert!(error.hint.is_some());
    }
    for object in [
        object("v1", "Namespace", None, "istio-system"),
        object("v1", "Node", None, "meshmeter"),
        object(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            None,
            "envoyfilters.networking.istio.io",
        ),
    ] {
        let error = refused(local_lab, &object);
        assert!(
            error_chain(&error).contains("the control plane has such an object already"),
            "{object}: {}",
            error_chain(&error)
        );
    }
    let next = trial(local_lab, &spec(Mode::Sidecar), |_| ());
    assert!(next.observation.evidence.path.proven, "{:?}", next.observation.evidence.path.reasons);
}
