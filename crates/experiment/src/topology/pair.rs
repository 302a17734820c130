//! `pair`: one client with a load generator and one server, or one such pair per namespace.

use super::script::DEFAULT_ENDPOINT;
use super::shapes::Shape;
use super::{Call, DriverPlacement, Resources, Runs, Topology, Workload};
use crate::protocol::Protocol;
use crate::settings::service::ServerSettings;

/// Name of the client of a pair.
pub const PAIR_CLIENT: &str = "client";

/// Name of the server of a pair.
pub const PAIR_SERVER: &str = "server";

/// Name of the driver of a single pair.
pub const PAIR_DRIVER: &str = "generator";

/// One pair in each of `namespaces` namespaces. Each server has `replicas` pods. With one namespace, all
/// names are unqualified. `external` places the servers outside the mesh.
#[must_use]
pub fn pair(
    namespaces: usize,
    replicas: usize,
    protocol: Protocol,
    server: &ServerSettings,
    external: bool,
    client_cpu_limit_cores: Option<f64>,
) -> Topology {
    let workload = |name: &str, replicas, runs, in_mesh, cpu_limit_cores| Workload {
        name: name.to_owned(),
        namespace: String::new(),
        replicas,
        protocol,
        resources: Resources::cpu_limit(cpu_limit_cores),
        runs,
        in_mesh,
    };
    let runs = if external { Runs::ExternalService(server.clone()) } else { Runs::Service(server.clone()) };
    let pair = Topology {
        name: PAIR.name.to_owned(),
        workloads: vec![
            workload(PAIR_CLIENT, 1, Runs::Drivers, true, client_cpu_limit_cores),
            workload(PAIR_SERVER, replicas, runs, !external, server.cpu_limit_cores),
        ],
        calls: vec![Call { from: 0, to: 1 }],
        drivers: vec![DriverPlacement {
            name: PAIR_DRIVER.to_owned(),
            at: 0,
            target: 1,
            endpoint: DEFAULT_ENDPOINT.to_owned(),
        }],
    };
    pair.copies(namespaces)
}

pub(super) static PAIR: Shape = Shape {
    name: "pair",
    summary: "one client and one server",
    parameters: &[],
    is_plain: true,
    make: |settings| {
        Ok(pair(
            1,
            settings.replicas,
            settings.protocol,
            settings.server,
            settings.external,
            settings.client_cpu_limit_cores,
        ))
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_pair_has_plain_names() {
        let topology = pair(1, 1, Protocol::default(), &ServerSettings::default(), false, None);
        let names: Vec<String> = topology.workloads.iter().flat_map(Workload::pod_names).collect();
        assert_eq!(names, ["client", "server"]);
        assert_eq!(topology.drivers[0].name, "generator");
        assert_eq!(topology.calls, [Call { from: 0, to: 1 }]);
    }

    #[test]
    fn pairs_in_several_namespaces_have_qualified_names() {
        let topology = pair(2, 2, Protocol::default(), &ServerSettings::default(), false, None);
        assert_eq!(topology.namespaces(), ["pair-1", "pair-2"]);
        assert_eq!(topology.pods(), 6);
        let server: Vec<String> = topology.workloads[3].pod_names().collect();
        assert_eq!(server, ["pair-2/server-1", "pair-2/server-2"]);
        assert_eq!(topology.driver("pair-2/generator").map(|driver| driver.target), Some(3));
    }
}
