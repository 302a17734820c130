//! Istio's sidecars, injected by istiod's webhook.

use super::istio::{self, ENVOY, control_plane};
use super::{Labels, MeshPlug, Need, PlugContext, ProxyKind, SharedComponent, Stands, labels};
use crate::Result;
use crate::settings::{ClusterSettings, SERVICE_PORT};
use experiment::topology::{Call, WorkloadId};
use mesh::envoy::hop::{Hop, Layer, Peer};
use mesh::names::service_host;
use mesh::proof::{Accepts, Evidence};
use results::HopProtocol;
use results::units::format_cores;
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(super) struct Sidecars {
    pub settings: ClusterSettings,
}

impl MeshPlug for Sidecars {
    fn namespace_labels(&self) -> Labels {
        match &self.settings.revision {
            Some(revision) => labels([("istio.io/rev", revision)]),
            None => labels([("istio-injection", "enabled")]),
        }
    }

    fn pod_labels(&self) -> Labels {
        let mut all = labels([("sidecar.istio.io/inject", "true")]);
        all.extend(
            self.settings.revision.iter().map(|revision| ("istio.io/rev".to_owned(), revision.clone())),
        );
        all
    }

    fn pod_annotations(&self, context: &PlugContext<'_>, workload: WorkloadId) -> Labels {
        let (spec, statistics) = (context.spec, statistics(context, workload));
        let mut config = istio::proxy_config(spec, spec.proxy.workers, statistics);
        config["holdApplicationUntilProxyStarts"] = json!(true);
        let mut all = labels([("proxy.istio.io/config", &config.to_string())]);
        all.extend(resources(context));
        all
    }

    fn objects(&self, context: &PlugContext<'_>) -> Vec<Value> {
        istio::objects(context)
    }

    fn check_settings(&self, context: &PlugContext<'_>) -> Result<()> {
        istio::check_settings(context.spec)
    }

    fn pod_proxy(&self) -> Option<ProxyKind> {
        Some(ENVOY)
    }

    fn shared(&self) -> Vec<SharedComponent> {
        vec![control_plane(&self.settings)]
    }

    fn end_of_proxy(&self) -> Option<&'static str> {
        Some("http://127.0.0.1:15020/quitquitquit")
    }

    fn needs(&self) -> Vec<Need> {
        vec![istio::need(&self.settings)]
    }

    fn evidence(&self, context: &PlugContext<'_>, call: Call) -> Vec<(Stands, Evidence)> {
        let mtls = context.spec.proxy.mtls.is_spoken();
        let [from, to] = [call.from, call.to].map(|id| context.is_member(id));
        // A gateway speaks mutual TLS as a sidecar does.
        let is_encrypted = mtls && (from || context.has_gateway(call));
        let caller =
            from.then(|| (Stands::InPodsOf(call.from), outbound(context, call).evidence(mtls && to)));
        let callee = to.then(|| {
            let accepts = Some(Accepts::new(SERVICE_PORT, context.spec.proxy.mtls));
            let inbound = inbound(context, call.to).evidence(is_encrypted);
            (Stands::InPodsOf(call.to), Evidence { accepts, ..inbound })
        });
        caller.into_iter().chain(callee).collect()
    }
}

/// CPU limit of each sidecar, if the experiment sets it.
fn resources(context: &PlugContext<'_>) -> Labels {
    let Some(cores) = context.spec.proxy.cpu_limit_cores else { return Labels::new() };
    let cores = format_cores(cores);
    labels([("sidecar.istio.io/proxyCPU", &cores), ("sidecar.istio.io/proxyCPULimit", &cores)])
}

/// Prefixes of the statistics that prove the paths of a workload's calls and of calls to it.
fn statistics(context: &PlugContext<'_>, id: WorkloadId) -> Vec<String> {
    let calls = &context.spec.topology.calls;
    let mut prefixes: Vec<String> = calls
        .iter()
        .filter(|call| call.from == id)
        .flat_map(|call| outbound(context, *call).statistics())
        .collect();
    if calls.iter().any(|call| call.to == id) {
        prefixes.extend(inbound(context, id).statistics());
    }
    prefixes.sort();
    prefixes.dedup();
    prefixes
}

fn outbound(context: &PlugContext<'_>, call: Call) -> Hop {
    hop_to(context, call.to, SERVICE_PORT)
}

/// How a caller's sidecar or a gateway handles requests on this port that are for a service.
pub(crate) fn hop_to(context: &PlugContext<'_>, callee: WorkloadId, port: u16) -> Hop {
    let peer = if context.is_member(callee) { Peer::Next } else { Peer::Nobody };
    let namespace = context.namespace_of(callee);
    let callee = &context.spec.topology.workloads[callee];
    let layer = Layer::for_protocol(callee.protocol).between(None, between_proxies(context));
    let host = service_host(&callee.name, &namespace);
    Hop { peer, ..Hop::outbound(layer, port, format!("outbound|{SERVICE_PORT}||{host}")) }
}

fn inbound(context: &PlugContext<'_>, id: WorkloadId) -> Hop {
    let layer = Layer::for_protocol(context.spec.topology.workloads[id].protocol);
    Hop::inbound(layer.between(between_proxies(context), None), SERVICE_PORT)
}

/// Protocol that proxies speak with each other, if it is not the client's.
fn between_proxies(context: &PlugContext<'_>) -> Option<HopProtocol> {
    context.spec.istio.http2_upgrade.then_some(HopProtocol::Http2)
}
