//! Data planes that labs and clusters both run: where their proxies receive and forward requests, the counters that
//! prove it, the statistics that they must keep for that, and the configuration that they must show. Pure, one file
//! each; [`MeshView`] is what they know of a deployment.

pub mod istio_ambient;
pub mod istio_sidecar;
pub mod linkerd;

use crate::envoy::hop::Layer;
use crate::istio::objects::ingress;
use crate::istio::objects::subject::{ServiceAccount, Subject};
use crate::names::service_host;
use experiment::dataplane::Entry;
use experiment::environment::DeploymentSpec;
use experiment::topology::script::DEFAULT_ENDPOINT;
use experiment::topology::{Call, Workload, WorkloadId};

/// Port of services.
pub const SERVICE_PORT: u16 = 8080;

/// A deployment in a mesh.
pub trait MeshView {
    fn spec(&self) -> &DeploymentSpec;

    /// Name in the mesh of a namespace of the topology.
    fn namespace(&self, in_topology: &str) -> String;

    fn workload(&self, id: WorkloadId) -> &Workload {
        &self.spec().topology.workloads[id]
    }

    fn is_member(&self, id: WorkloadId) -> bool {
        self.spec().is_member(id)
    }

    fn namespace_of(&self, id: WorkloadId) -> String {
        self.namespace(&self.workload(id).namespace)
    }

    fn host_of(&self, id: WorkloadId) -> String {
        service_host(&self.workload(id).name, &self.namespace_of(id))
    }

    /// Protocol as which a proxy reads requests to a workload.
    fn layer(&self, id: WorkloadId) -> Layer {
        Layer::for_protocol(self.workload(id).protocol)
    }
}

/// True if a call passes an ingress gateway: drivers' calls do, in modes that have one.
pub fn has_gateway(mesh: &dyn MeshView, call: Call) -> bool {
    !mesh.workload(call.from).serves() && mesh.spec().parts().entry == Entry::Ingress
}

/// True for a call to a member from outside the mesh without a gateway. It arrives as plaintext.
pub fn comes_from_outside(mesh: &dyn MeshView, call: Call) -> bool {
    mesh.is_member(call.to) && !mesh.is_member(call.from) && !has_gateway(mesh, call)
}

/// Calls back with a Service and its callers. If there is a gateway in front of it, the gateway replaces the
/// drivers.
pub fn with_subject<T>(mesh: &dyn MeshView, id: WorkloadId, use_it: impl FnOnce(&Subject<'_>) -> T) -> T {
    let (workload, namespace) = (mesh.workload(id), mesh.namespace_of(id));
    let calls = mesh.spec().topology.calls.iter().filter(|call| call.to == id);
    let mut callers: Vec<(String, &str)> = calls
        .map(|call| match has_gateway(mesh, *call) {
            true => (namespace.clone(), ingress::NAME),
            false => (mesh.namespace_of(call.from), mesh.workload(call.from).name.as_str()),
        })
        .collect();
    callers.dedup();
    let callers: Vec<ServiceAccount<'_>> =
        callers.iter().map(|(namespace, name)| ServiceAccount { namespace, name }).collect();
    let endpoints = workload.script().map(|script| script.endpoints.iter().map(|one| one.path.as_str()));
    use_it(&Subject {
        namespace: &namespace,
        service: &workload.name,
        port: SERVICE_PORT,
        callers: &callers,
        protocol: workload.protocol,
        endpoints: &endpoints.map_or_else(|| vec![DEFAULT_ENDPOINT], Iterator::collect),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::{Experiment, Plan};
    use std::sync::Arc;

    struct View(DeploymentSpec);

    impl MeshView for View {
        fn spec(&self) -> &DeploymentSpec {
            &self.0
        }

        fn namespace(&self, _in_topology: &str) -> String {
            "perf".to_owned()
        }
    }

    /// `emojivoto` behind an ingress gateway, with its first service, `web`, outside the mesh.
    fn with_web_outside() -> View {
        let text = "name: x\ntopology: emojivoto\nmesh: istio\nmodes: [ingress]\nload: {rate: 100}\n";
        let mut spec = Plan::new(&Experiment::parse(text, "x.yaml").unwrap(), 1).trials[0].spec.clone();
        let workloads = &mut Arc::make_mut(&mut spec.topology).workloads;
        workloads.iter_mut().filter(|workload| workload.name == "web").for_each(|web| web.in_mesh = false);
        View(spec)
    }

    fn call(mesh: &View, from: &str, to: &str) -> Call {
        let workloads = &mesh.0.topology.workloads;
        let id = |name: &str| workloads.iter().position(|workload| workload.name == name).unwrap();
        Call { from: id(from), to: id(to) }
    }

    #[test]
    fn service_outside_the_mesh_calls_in_plaintext_also_behind_a_gateway() {
        let mesh = with_web_outside();
        let to_web =
            mesh.0.topology.drivers.first().map(|driver| Call { from: driver.at, to: driver.target });
        assert!(has_gateway(&mesh, to_web.unwrap()));
        let from_web = call(&mesh, "web", "emoji");
        assert!(!has_gateway(&mesh, from_web) && comes_from_outside(&mesh, from_web));
        assert!(!istio_sidecar::at_callee(&mesh, from_web).tls_expected);
        let inside = call(&mesh, "emoji", "voting");
        assert!(istio_sidecar::at_callee(&mesh, inside).tls_expected);
    }

    #[test]
    fn callers_of_a_subject_are_its_gateway_and_services() {
        let mesh = with_web_outside();
        let callers = |name: &str| {
            let id = call(&mesh, name, name).to;
            with_subject(&mesh, id, |subject| {
                subject.callers.iter().map(|caller| caller.name.to_owned()).collect::<Vec<_>>()
            })
        };
        assert_eq!(callers("web"), [ingress::NAME]);
        assert_eq!(callers("emoji"), ["web"]);
    }
}
