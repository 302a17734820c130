//! Istio's sidecars, injected by istiod's webhook.

use super::istio::{self, ENVOY, control_plane};
use super::{Labels, MeshPlug, Need, PlugContext, ProxyKind, SharedComponent, Stands, labels};
use crate::Result;
use crate::settings::{ClusterSettings, SERVICE_PORT};
use experiment::topology::{Call, WorkloadId};
use mesh::dataplane::{MeshView, istio_sidecar};
use mesh::envoy::hop::Hop;
use mesh::proof::Evidence;
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
        let [from, to] = [call.from, call.to].map(|id| context.is_member(id));
        let caller = from.then(|| (Stands::InPodsOf(call.from), istio_sidecar::at_caller(context, call)));
        let callee = to.then(|| (Stands::InPodsOf(call.to), istio_sidecar::at_callee(context, call)));
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
    let calls = || context.spec.topology.calls.iter();
    let outbound = calls().filter(|call| call.from == id);
    let outbound = outbound.map(|call| istio_sidecar::outbound(context, call.to, SERVICE_PORT));
    let inbound = calls().any(|call| call.to == id).then(|| istio_sidecar::inbound(context, id));
    Hop::all_statistics(outbound.chain(inbound), [])
}
