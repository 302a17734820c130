//! Linkerd's sidecars, injected by its webhook.

use super::{Labels, MeshPlug, Need, PlugContext, ProxyKind, SharedComponent, Stands, labels};
use experiment::environment::MutualTls;
use experiment::topology::{Call, WorkloadId};
use mesh::admin::LONG_RESPONSE_TIMEOUT;
use mesh::dataplane::{MeshView, linkerd};
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::linkerd::{ADMIN_PORT, LinkerdProxy, NAMESPACE};
use mesh::proof::Evidence;
use results::Role;
use results::units::format_cores;

const INJECT: (&str, &str) = ("linkerd.io/inject", "enabled");
/// Each component has a pod of its own.
const CONTROL_PLANE: [(&str, &str); 3] = [
    ("linkerd-destination", "destination"),
    ("linkerd-identity", "identity"),
    ("linkerd-proxy-injector", "proxy-injector"),
];

#[derive(Clone, Copy, Debug)]
pub(super) struct Linkerd;

impl MeshPlug for Linkerd {
    fn pod_annotations(&self, context: &PlugContext<'_>, _workload: WorkloadId) -> Labels {
        let inbound = match context.spec.proxy.mtls {
            MutualTls::Strict => "all-authenticated",
            MutualTls::Permissive | MutualTls::Off => "all-unauthenticated",
        };
        let mut all = labels([
            INJECT,
            ("config.linkerd.io/default-inbound-policy", inbound),
            ("config.linkerd.io/proxy-admin-shutdown", "enabled"),
        ]);
        if let Some(cores) = context.spec.proxy.cpu_limit_cores {
            let cores = format_cores(cores);
            all.extend(labels([
                ("config.linkerd.io/proxy-cpu-request", &cores),
                ("config.linkerd.io/proxy-cpu-limit", &cores),
            ]));
        }
        all
    }

    fn pod_proxy(&self) -> Option<ProxyKind> {
        Some(ProxyKind {
            container: "linkerd-proxy",
            ports: &[ADMIN_PORT],
            source: |ports| Box::new(LinkerdProxy(ports[0].within(LONG_RESPONSE_TIMEOUT))),
        })
    }

    fn shared(&self) -> Vec<SharedComponent> {
        let component = |(name, component): (&'static str, &str)| SharedComponent {
            name,
            role: Role::ControlPlane,
            namespace: Some(NAMESPACE),
            selector: format!("linkerd.io/control-plane-component={component}"),
            is_per_node: false,
            proxy: None,
        };
        CONTROL_PLANE.map(component).into()
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

    fn evidence(&self, context: &PlugContext<'_>, call: Call) -> Vec<(Stands, Evidence)> {
        let [from, to] = [call.from, call.to].map(|id| context.is_member(id));
        let caller = from.then(|| (Stands::InPodsOf(call.from), linkerd::at_caller(context, call)));
        let callee = to.then(|| (Stands::InPodsOf(call.to), linkerd::at_callee(context, call)));
        caller.into_iter().chain(callee).collect()
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "Linkerd sets the worker threads of its proxies, one by default: `proxy.workers` has no effect on them"
                .to_owned(),
            "not verified: whether Linkerd's proxies refuse plaintext, as `proxy.mtls` may require; their counters prove \
             that the requests came over mutual TLS"
                .to_owned(),
        ]
    }
}
