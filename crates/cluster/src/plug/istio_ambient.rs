//! Istio's ambient mode: ztunnel on every node, with or without a waypoint per namespace.

use super::istio::{self, control_plane};
use super::{
    KnownPod, Labels, MeshPlug, Need, PlugContext, ProxyKind, SharedComponent, SharedProxy, Stands,
    WITHOUT_SIDECAR, labels,
};
use crate::Result;
use crate::settings::{ClusterSettings, RUN_LABEL, SERVICE_PORT};
use experiment::dataplane::DataPlane;
use experiment::environment::EnvironmentError;
use experiment::mesh_settings::ZtunnelPlacement;
use experiment::topology::Call;
use mesh::admin::LONG_RESPONSE_TIMEOUT;
use mesh::dataplane::istio_ambient::{self, waypoint_hop};
use mesh::dataplane::{MeshView, check_calls_from_outside};
use mesh::istio::objects::waypoint;
use mesh::istio::propagation::Expected;
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::names::{ADMIN_PORT, STATUS_PORT, SYSTEM_NAMESPACE};
use mesh::proof::Evidence;
use mesh::ztunnel::admin::ZtunnelAdmin;
use results::Role;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) const ZTUNNEL: ProxyKind = ProxyKind {
    container: "istio-proxy",
    ports: &[ADMIN_PORT, STATUS_PORT],
    source: |ports| {
        let (admin, statistics) = (ports[0].clone(), ports[1].clone());
        // It serves all pods of its node, and the way is that of the API server.
        let statistics = statistics.within(LONG_RESPONSE_TIMEOUT);
        Box::new(ZtunnelAdmin { admin, statistics, readiness: None })
    },
};

#[derive(Clone, Debug)]
pub(super) struct Ambient {
    pub settings: ClusterSettings,
    pub data_plane: DataPlane,
}

impl Ambient {
    fn labels(&self) -> Labels {
        let labels = waypoint::namespace_labels(self.data_plane);
        labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn has_waypoint(&self) -> bool {
        self.data_plane.proxies().namespace.is_some()
    }

    /// A Gateway for which istiod deploys a waypoint. Its pods carry the run's label.
    fn gateway(&self, context: &PlugContext<'_>, namespace: &str) -> Value {
        let mut gateway = waypoint::gateway(namespace);
        if let Some(revision) = &self.settings.revision {
            gateway["metadata"]["labels"]["istio.io/rev"] = json!(revision);
        }
        let (spec, statistics) = (context.spec, statistics(context, namespace));
        let config = istio::proxy_config(spec, spec.proxy.workers, statistics);
        gateway["spec"]["infrastructure"] = json!({
            "labels": {RUN_LABEL: context.settings.run},
            "annotations": {"proxy.istio.io/config": config.to_string()},
        });
        gateway
    }
}

impl MeshPlug for Ambient {
    fn namespace_labels(&self) -> Labels {
        self.labels()
    }

    /// Excludes sidecars, since the namespace may have injection.
    fn pod_labels(&self) -> Labels {
        let mut all = self.labels();
        all.extend(labels([WITHOUT_SIDECAR]));
        all
    }

    /// Traffic to a Service goes through the waypoint if the Service or, unless that has another one, its namespace has the label.
    fn service_labels(&self, is_member: bool) -> Labels {
        let label = waypoint::service_label(self.data_plane, is_member);
        label.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    /// The run does not configure ztunnels.
    fn notes(&self) -> Vec<String> {
        let waypoints = if self.has_waypoint() { "; waypoints have those of `proxy.workers`" } else { "" };
        vec![format!(
            "the cluster's mesh sets the worker threads of ztunnels: `proxy.workers` has no effect on them{waypoints}"
        )]
    }

    fn objects(&self, context: &PlugContext<'_>) -> Vec<Value> {
        let namespaces = context.spec.topology.namespaces().into_iter().filter(|_| self.has_waypoint());
        let gateways =
            namespaces.map(|namespace| self.gateway(context, &context.settings.namespace(namespace)));
        gateways.chain(istio::objects(context)).collect()
    }

    fn check_settings(&self, context: &PlugContext<'_>) -> Result<()> {
        check_ambient(context)?;
        istio::check_settings(context.spec)
    }

    fn shared(&self) -> Vec<SharedComponent> {
        let ztunnel = SharedComponent {
            name: "ztunnel",
            role: Role::Proxy,
            namespace: Some(SYSTEM_NAMESPACE),
            selector: "app=ztunnel".to_owned(),
            is_per_node: true,
            proxy: Some(SharedProxy::Ztunnel),
        };
        let waypoint = SharedComponent {
            name: waypoint::NAME,
            role: Role::Proxy,
            namespace: None,
            selector: format!("{}={}", waypoint::GATEWAY_NAME_LABEL, waypoint::NAME),
            is_per_node: false,
            proxy: Some(SharedProxy::Waypoint),
        };
        let waypoint = self.has_waypoint().then_some(waypoint);
        [ztunnel].into_iter().chain(waypoint).chain([control_plane(&self.settings)]).collect()
    }

    fn needs(&self) -> Vec<Need> {
        let ztunnel = Need {
            object: ObjectRef::new("apps/v1", "DaemonSet", Some(SYSTEM_NAMESPACE), "ztunnel"),
            otherwise: "Istio's ambient mode is not installed in this cluster",
            hint: "install Istio with the profile `ambient`",
        };
        let gateway = Need {
            object: ObjectRef::new("gateway.networking.k8s.io/v1", "GatewayClass", None, "istio-waypoint"),
            otherwise: "Istio deploys no waypoints in this cluster",
            hint: "install the Gateway API's definitions before Istio",
        };
        [ztunnel].into_iter().chain(self.has_waypoint().then_some(gateway)).collect()
    }

    fn evidence(&self, context: &PlugContext<'_>, call: Call) -> Vec<(Stands, Evidence)> {
        let (source, destination) = istio_ambient::evidence(context, call, true);
        let waypoint = istio_ambient::passes_waypoint(context, call).then(|| {
            let evidence = waypoint_hop(context, call.to).waypoint_evidence();
            (Stands::WaypointOf(context.namespace_of(call.to)), evidence)
        });
        let source = source.map(|evidence| (Stands::OnNodesOf(call.from, "client"), evidence));
        let destination = destination.map(|evidence| (Stands::OnNodesOf(call.to, "server"), evidence));
        source.into_iter().chain(waypoint).chain(destination).collect()
    }

    fn expected(
        &self,
        context: &PlugContext<'_>,
        proxy: SharedProxy,
        namespace: &str,
        pods: &[KnownPod<'_>],
    ) -> Vec<Expected> {
        match proxy {
            SharedProxy::Ztunnel => {
                let pods = pods.iter().map(|pod| (pod.namespace, pod.name, pod.is_member));
                istio_ambient::expected_of_ztunnel(context, pods)
            }
            SharedProxy::Waypoint => istio_ambient::expected_of_waypoint(context, namespace),
        }
    }
}

/// Rejects settings of the mesh's own proxies, and calls that its members would refuse.
fn check_ambient(context: &PlugContext<'_>) -> Result<()> {
    let in_lab = "the lab runs it: leave out `--on cluster`";
    if context.spec.proxy.cpu_limit_cores.is_some() {
        let reason = "ztunnel and waypoints have the limits that the cluster's mesh gives them";
        return Err(EnvironmentError::new("set `proxy.cpu`", reason).with_hint(in_lab));
    }
    if context.spec.istio.ztunnel == ZtunnelPlacement::PerPod {
        let reason = "a cluster has one ztunnel per node";
        return Err(EnvironmentError::new("set `istio.ztunnel: per-pod`", reason).with_hint(in_lab));
    }
    check_calls_from_outside(context)
}

/// Prefixes of the statistics that prove paths through a namespace's waypoint. All its Services share one
/// prefix, since annotations of a Gateway may have at most 4096 bytes.
fn statistics(context: &PlugContext<'_>, namespace: &str) -> BTreeSet<String> {
    let of_services = format!("inbound-vip|{SERVICE_PORT}|");
    let prefixes = istio_ambient::waypoint_statistics(context, namespace).into_iter();
    prefixes
        .map(|prefix| match prefix.split_once(&of_services) {
            Some((kind, _)) => format!("{kind}{of_services}"),
            None => prefix,
        })
        .collect()
}
