//! Linkerd's sidecars, injected by its webhook.

use super::{Labels, MeshPlug, Need, PlugContext, SharedComponent, labels};
use experiment::schema::Role;
use experiment::topology::WorkloadId;
use mesh::kubernetes::object_ref::ObjectRef;

const NAMESPACE: &str = "linkerd";
const INJECT: (&str, &str) = ("linkerd.io/inject", "enabled");

#[derive(Clone, Copy, Debug)]
pub(super) struct Linkerd;

impl MeshPlug for Linkerd {
    fn pod_annotations(&self, _context: &PlugContext<'_>, _workload: WorkloadId) -> Labels {
        labels([INJECT])
    }

    fn proxy_container(&self) -> Option<&'static str> {
        Some("linkerd-proxy")
    }

    fn shared(&self) -> Vec<SharedComponent> {
        vec![SharedComponent {
            name: "linkerd",
            role: Role::ControlPlane,
            namespace: Some(NAMESPACE),
            selector: "linkerd.io/control-plane-component".to_owned(),
            proxy: None,
        }]
    }

    fn end_of_proxy(&self) -> Option<&'static str> {
        Some("http://127.0.0.1:4191/shutdown")
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need {
            object: ObjectRef::new(
                "admissionregistration.k8s.io/v1",
                "MutatingWebhookConfiguration",
                None,
                "linkerd-proxy-injector-webhook-config",
            ),
            otherwise: "Linkerd injects no proxies into this cluster",
            hint: "install Linkerd: `linkerd install`",
        }]
    }

    fn refusal(&self) -> Option<&'static str> {
        Some("Linkerd's counters are not read on clusters yet, so nothing would prove the path")
    }
}
