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
use experiment::environment::{DeploymentSpec, EnvironmentError, MutualTls};
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

/// Rejects calls from outside the mesh to members that accept mutual TLS alone.
pub fn check_calls_from_outside(mesh: &dyn MeshView) -> Result<(), EnvironmentError> {
    let mut calls = mesh.spec().topology.calls.iter();
    let is_refused =
        |call: &&Call| mesh.spec().proxy.mtls == MutualTls::Strict && comes_from_outside(mesh, **call);
    calls.find(is_refused).map_or(Ok(()), |call| {
        let [from, to] = [call.from, call.to].map(|id| mesh.workload(id).qualified_name());
        let operation = format!("let {from}, which is outside the mesh, call {to}");
        Err(EnvironmentError::new(
            operation,
            "`proxy.mtls: strict` does not accept plaintext; `permissive` does",
        ))
    })
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
    use crate::istio::propagation::Expected;
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
        with_web_outside_in("ingress")
    }

    fn with_web_outside_in(mode: &str) -> View {
        let text =
            format!("name: x\ntopology: emojivoto\nmesh: istio\nmodes: [{mode}]\nload: {{rate: 100}}\n");
        let mut spec = Plan::new(&Experiment::parse(&text, "x.yaml").unwrap(), 1).trials[0].spec.clone();
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

    /// Its sidecar counts the handshakes of its callers in the mesh, and the connections of all.
    #[test]
    fn service_with_callers_inside_and_outside_claims_tls_of_those_inside() {
        let mut mesh = with_web_outside_in("sidecar");
        let (outside, inside) = (call(&mesh, "web", "emoji"), call(&mesh, "voting", "emoji"));
        let at_callee = |mesh: &View, call| istio_sidecar::at_callee(mesh, call);
        assert!(at_callee(&mesh, outside).handshakes.is_some(), "all callers are outside");
        let calls = &mut Arc::make_mut(&mut mesh.0.topology).calls;
        calls.push(inside);
        let [outside, inside] = [outside, inside].map(|call| at_callee(&mesh, call));
        assert_eq!((outside.handshakes.is_some(), outside.tls_expected), (false, false));
        assert_eq!((inside.handshakes.is_some(), inside.tls_expected), (true, true));
        assert_eq!([outside.encrypted, inside.encrypted], [None, None]);
    }

    #[test]
    fn ambient_calls_across_the_border_pass_one_ztunnel_and_no_waypoint() {
        let mut mesh = with_web_outside_in("ambient-waypoint");
        let driver = &mesh.0.topology.drivers[0];
        let to_web = Call { from: driver.at, to: driver.target };
        let (from_web, inside) = (call(&mesh, "web", "emoji"), call(&mesh, "emoji", "voting"));
        for (call, ends, passes_waypoint) in
            [(to_web, [true, false], false), (from_web, [false, true], false), (inside, [true, true], true)]
        {
            let (source, destination) = istio_ambient::evidence(&mesh, call, false);
            assert_eq!([source.is_some(), destination.is_some()], ends);
            assert_eq!(istio_ambient::passes_waypoint(&mesh, call), passes_waypoint);
            for evidence in [source, destination].into_iter().flatten() {
                assert_eq!(evidence.tls_expected, passes_waypoint, "{evidence:?}");
            }
        }
        let expected = istio_ambient::expected_of_ztunnel(&mesh, [("perf", "web", false)]);
        let [namespace, name] = ["perf", "web"].map(str::to_owned);
        assert_eq!(expected[0], Expected::AmbientWorkload { namespace, name, by_hbone: false });
        let service =
            |id| Expected::AmbientService { host: mesh.host_of(id), behind_waypoint: id != to_web.to };
        assert!(
            expected.contains(&service(to_web.to)) && expected.contains(&service(from_web.to)),
            "{expected:?}"
        );

        let refused = check_calls_from_outside(&mesh).unwrap_err();
        assert_eq!(refused.operation, "let web, which is outside the mesh, call emoji");
        mesh.0.proxy.mtls = MutualTls::Permissive;
        assert!(check_calls_from_outside(&mesh).is_ok());
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
