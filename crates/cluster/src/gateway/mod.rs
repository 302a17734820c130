//! Ingress gateways of a deployment: an Istio Envoy in a pod of its own in front of each workload that
//! drivers load.
//!
//! With Istio's API the run creates a Deployment for that pod, and istiod's webhook turns it into a gateway.
//! With the Gateway API istiod deploys it. `objects.rs` has the objects for both, `certificates.rs` the
//! certificates of gateways and their clients.

mod certificates;
mod objects;
#[cfg(test)]
mod tests;

pub(crate) use self::certificates::GatewayCertificates;
pub(crate) use self::objects::objects;

use crate::Result;
use crate::plug::{Need, PlugContext};
use crate::worker::protocol::StartArgument;
use experiment::Protocol;
use experiment::dataplane::Entry;
use experiment::environment::{DeploymentSpec, EnvironmentError};
use experiment::mesh_settings::{IngressApi, IngressTls};
use experiment::topology::{Call, DriverPlacement, WorkloadId};
use mesh::dataplane::{MeshView, has_gateway, istio_sidecar};
use mesh::envoy::domains::listener_statistics;
use mesh::envoy::hop::Hop;
use mesh::istio::objects::ingress::{self, NAME, PORT};
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::proof::Evidence;
use mesh::proof::client_tls::with_client_tls;
use std::collections::BTreeSet;

/// Name of a gateway in results. If the topology has several namespaces, the namespace precedes it.
const PROXY: &str = "ingress-gateway";
/// Statuses of a gateway that has no route to the service yet, or no endpoint for it.
pub(crate) const NOT_SERVED: [&str; 2] = ["404", "503"];

/// A gateway in front of a workload, in the workload's namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Gateway {
    pub target: WorkloadId,
    /// Name in results.
    pub name: String,
    /// Namespace in the cluster.
    pub namespace: String,
    /// Public name of the target.
    pub host: String,
}

/// Destination of a driver's requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Destination {
    pub url: String,
    /// URL for the first probe request. Its protocol is HTTP, also for gRPC, which runs on top of it.
    pub probe_url: String,
    /// Further arguments of `meshmeter load`.
    pub arguments: Vec<StartArgument>,
    pub is_gateway: bool,
}

/// The gateways of a deployment; none in modes without an entry.
pub(crate) fn gateways(context: &PlugContext<'_>) -> Vec<Gateway> {
    let PlugContext { spec, .. } = context;
    if spec.parts().entry != Entry::Ingress {
        return Vec::new();
    }
    let targets: BTreeSet<WorkloadId> = spec.topology.drivers.iter().map(|driver| driver.target).collect();
    let gateway = |target: WorkloadId| {
        let in_topology = &spec.topology.workloads[target].namespace;
        let name = if in_topology.is_empty() { PROXY.to_owned() } else { format!("{in_topology}/{PROXY}") };
        Gateway { target, name, namespace: context.namespace_of(target), host: ingress::host(in_topology) }
    };
    targets.into_iter().map(gateway).collect()
}

/// True if gateways of this deployment read certificates from Secrets.
pub(crate) fn has_secrets(spec: &DeploymentSpec) -> bool {
    spec.parts().entry == Entry::Ingress && spec.ingress_tls() != IngressTls::Off
}

/// Object that must be installed for the gateways of a deployment.
pub(crate) fn need(spec: &DeploymentSpec) -> Option<Need> {
    let is_deployed_by_istiod =
        spec.parts().entry == Entry::Ingress && spec.istio.ingress.api == IngressApi::Kubernetes;
    is_deployed_by_istiod.then(|| Need {
        object: ObjectRef::new("gateway.networking.k8s.io/v1", "GatewayClass", None, "istio"),
        otherwise: "Istio deploys no gateways of the Gateway API in this cluster",
        hint: "install the Gateway API's definitions before Istio, or leave out `istio.ingress.api`",
    })
}

/// Returns an error if a cluster does not support the gateways of a deployment.
pub(crate) fn check(context: &PlugContext<'_>) -> Result<()> {
    let PlugContext { spec, .. } = context;
    // The direct path of a scenario has no gateway, but it is one of the scenarios.
    if spec.mesh.parts(spec.mode).entry == Entry::Direct {
        return Ok(());
    }
    let refused = |operation: String, reason: String| {
        Err(EnvironmentError::new(operation, reason).with_hint("the lab runs it: leave out `--on cluster`"))
    };
    if spec.ingress.declared {
        let reason = "gateways with domains, and scenarios such as filters, are not deployed on clusters yet";
        return refused("deploy the domains of `ingress`".to_owned(), reason.to_owned());
    }
    let mut namespaces = BTreeSet::new();
    for gateway in gateways(context) {
        let target = &spec.topology.workloads[gateway.target];
        let operation = || format!("start a gateway before {}", target.qualified_name());
        if !target.protocol.is_http() {
            let reason =
                format!("gateways on clusters take HTTP and gRPC, and it speaks {}", target.protocol);
            return refused(operation(), reason);
        }
        if !namespaces.insert(gateway.namespace.clone()) {
            let reason =
                "the public name of its namespace leads to another workload that drivers request, too";
            return Err(EnvironmentError::new(operation(), reason));
        }
        let mut workloads = spec.topology.workloads.iter();
        if workloads.any(|other| other.namespace == target.namespace && other.name == NAME) {
            let reason = format!("a workload of its namespace is called {NAME}, as the gateway is");
            return Err(EnvironmentError::new(operation(), reason));
        }
    }
    Ok(())
}

impl Gateway {
    /// Hop by which the gateway forwards the load.
    fn hop(&self, context: &PlugContext<'_>) -> Hop {
        istio_sidecar::outbound(context, self.target, PORT)
    }

    /// Prefixes of the statistics that prove its path, the client's TLS included.
    fn statistics(&self, context: &PlugContext<'_>) -> Vec<String> {
        let mut prefixes = self.hop(context).statistics();
        prefixes.push(listener_statistics(PORT));
        prefixes
    }

    /// Counters of the gateway that prove the path of requests to its target.
    pub fn evidence(&self, context: &PlugContext<'_>) -> Evidence {
        let spec = context.spec;
        let is_mtls = spec.proxy.mtls.is_spoken() && spec.is_member(self.target);
        with_client_tls(self.hop(context).evidence(is_mtls), spec.ingress_tls(), spec.ingress.scenario)
    }
}

/// The gateway that a call passes; only drivers' calls have one.
pub(crate) fn of_call(context: &PlugContext<'_>, call: Call) -> Option<Gateway> {
    let mut gateways = gateways(context).into_iter().filter(|_| has_gateway(context, call));
    gateways.find(|gateway| gateway.target == call.to)
}

/// Destination of a driver if it is a gateway: the public name, with the address that a client's DNS would
/// return.
pub(crate) fn destination(
    context: &PlugContext<'_>,
    driver: &DriverPlacement,
    certificates: Option<&GatewayCertificates>,
) -> Option<Destination> {
    let spec = context.spec;
    let Gateway { target, namespace, host, .. } =
        gateways(context).into_iter().find(|gateway| gateway.target == driver.target)?;
    let protocol = spec.topology.workloads[target].protocol;
    let url = |protocol: Protocol, path: &str| {
        let scheme = protocol.scheme(spec.ingress_tls() != IngressTls::Off);
        format!("{scheme}://{host}:{PORT}{path}")
    };
    let mut arguments = vec![StartArgument::Text(format!("--connect-to={NAME}.{namespace}:{PORT}"))];
    arguments.extend(certificates.into_iter().flat_map(GatewayCertificates::client_arguments));
    Some(Destination {
        url: url(protocol, &protocol.path(&driver.endpoint)),
        probe_url: url(Protocol::Http2, &driver.endpoint),
        arguments,
        is_gateway: true,
    })
}
