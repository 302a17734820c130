//! A cluster whose network is Cilium: pods have no mesh of their own, and the kernels of their nodes carry
//! their traffic. No counter there distinguishes the run's connections from others.

use super::none::NoMesh;
use super::{Labels, MeshPlug, Need, PlugContext, SharedComponent};
use crate::rights::CILIUM_NAMESPACE;
use experiment::topology::WorkloadId;
use mesh::kubernetes::object_ref::ObjectRef;
use results::Role;

#[derive(Clone, Copy, Debug)]
pub(super) struct Cilium;

impl MeshPlug for Cilium {
    fn pod_labels(&self) -> Labels {
        NoMesh.pod_labels()
    }

    fn pod_annotations(&self, context: &PlugContext<'_>, workload: WorkloadId) -> Labels {
        NoMesh.pod_annotations(context, workload)
    }

    /// Envoy is present if policies inspect requests.
    fn shared(&self) -> Vec<SharedComponent> {
        let component = |name, role, label: &str, is_per_node| SharedComponent {
            name,
            role,
            namespace: Some(CILIUM_NAMESPACE),
            selector: label.to_owned(),
            is_per_node,
            proxy: None,
        };
        vec![
            component("cilium-agent", Role::Proxy, "k8s-app=cilium", true),
            component("cilium-envoy", Role::Proxy, "k8s-app=cilium-envoy", true),
            component("cilium-operator", Role::ControlPlane, "io.cilium/app=operator", false),
        ]
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need {
            object: ObjectRef::new("apps/v1", "DaemonSet", Some(CILIUM_NAMESPACE), "cilium"),
            otherwise: "Cilium is not this cluster's network",
            hint: "leave out `mesh: cilium`",
        }]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "Cilium carries all pods of a node in its kernel, whose CPU is in that of the node and of the pods alone; no counter shows \
             which requests its Envoy read"
                .to_owned(),
        ]
    }
}
