//! Ingress gateways of a deployment: an Envoy of Istio's in a pod of its own before each workload that drivers offer load to.
//! With Istio's API that pod is of a Deployment of the run, which istiod's webhook makes a gateway; with the Gateway API istiod
//! deploys it. `objects.rs` has what is written for both, `certificates.rs` what gateways and their clients show.

mod certificates;
mod objects;
#[cfg(test)]
mod tests;

pub(crate) use self::certificates::GatewayCertificates;
pub(crate) use self::objects::objects;

use crate::Result;
use crate::plug::{Need, PlugContext, hop_to};
use crate::worker::protocol::StartArgument;
use experiment::Protocol;
use experiment::dataplane::Entry;
use experiment::environment::{DeploymentSpec, EnvironmentError};
use experiment::mesh_settings::{IngressApi, IngressTls};
use experiment::topology::{Call, DriverPlacement, WorkloadId};
use mesh::envoy::domains::listener_statistics;
use mesh::envoy::hop::Hop;
use mesh::istio::objects::ingress::{self, NAME, PORT};
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::proof::Evidence;
use mesh::proof::client_tls::with_client_tls;
use std::collections::BTreeSet;

/// Name of a gateway in results, after its namespace in a topology of several.
const PROXY: &str = "ingress-gateway";
/// Statuses of a gateway that has no route to the service yet, or no address of it.
pub(crate) const NOT_SERVED: [&str; 2] = ["404", "503"];

/// A gateway before a workload, in its namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Gateway {
    pub target: WorkloadId,
    /// Its name in results.
    pub name: String,
    /// In the cluster.
    pub namespace: String,
    /// Public name of the target.
    pub host: String,
}

/// Where a driver sends its requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Destination {
    pub url: String,
    /// URL of a request by which a first response is awaited; its protocol is HTTP, as of gRPC beneath its calls.
    pub probe_url: String,
    /// Further arguments of `meshmeter load`.
    pub arguments: Vec<StartArgument>,
    pub is_gateway: bool,
}

/// Those of a deployment; none in modes without an entry.
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

/// Whether gateways of this deployment read certificates from Secrets.
pub(crate) fn has_secrets(spec: &DeploymentSpec) -> bool {
    spec.parts().entry == Entry::Ingress && spec.ingress_tls() != IngressTls::Off
}

/// What must be installed for the gateways of a deployment.
pub(crate) fn need(spec: &DeploymentSpec) -> Option<Need> {
    let is_deployed_by_istiod =
        spec.parts().entry == Entry::Ingress && spec.istio.ingress.api == IngressApi::Kubernetes;
    is_deployed_by_istiod.then(|| Need {
        object: ObjectRef::new("gateway.networking.k8s.io/v1", "GatewayClass", None, "istio"),
        otherwise: "Istio deploys no gateways of the Gateway API in this cluster",
        hint: "install the Gateway API's definitions before Istio, or leave out `istio.ingress.api`",
    })
}

/// Fails where a cluster cannot have the gateways of a deployment.
pub(crate) fn check(context: &PlugContext<'_>) -> Result<()> {
    let PlugContext { spec, .. } = context;
    // The direct path of a scenario has no gateway, and is one of the scenarios.
    if spec.mode.parts(spec.mesh).entry == Entry::Direct {
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
    /// What it does with the load.
    fn hop(&self, context: &PlugContext<'_>) -> Hop {
        hop_to(context, self.target, PORT)
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

/// The gateway that a call goes through: drivers' calls alone have one.
pub(crate) fn of_call(context: &PlugContext<'_>, call: Call) -> Option<Gateway> {
    let mut gateways = gateways(context).into_iter().filter(|_| context.has_gateway(call));
    gateways.find(|gateway| gateway.target == call.to)
}

/// Where a driver sends its requests, if that is a gateway: the public name, whose address a client's DNS would have.
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
