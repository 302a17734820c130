//! `pair`: one client with a load generator, one server; or that in each of several namespaces.

use super::script::DEFAULT_ENDPOINT;
use super::{Call, DriverPlacement, Resources, Runs, Topology, Workload};
use crate::protocol::Protocol;
use crate::settings::service::ServerSettings;

/// Name of the client of a pair.
pub const PAIR_CLIENT: &str = "client";

/// Name of the server of a pair.
pub const PAIR_SERVER: &str = "server";

/// Name of the driver of a single pair.
pub const PAIR_DRIVER: &str = "generator";

/// A pair in each of `namespaces` namespaces, each server with `replicas` pods. With one namespace all names are
/// unqualified. `external` places the servers outside the mesh.
#[must_use]
pub fn pair(
    namespaces: usize,
    replicas: usize,
    protocol: Protocol,
    server: &ServerSettings,
    external: bool,
    client_cpu_limit_cores: Option<f64>,
) -> Topology {
    let mut topology = Topology { name: "pair".to_owned(), ..Topology::default() };
    let limit = |cpu_limit_cores| Resources { cpu_limit_cores, ..Resources::default() };
    for number in 1..=namespaces {
        let namespace = if namespaces == 1 { String::new() } else { format!("pair-{number}") };
        let (client, to) = (topology.workloads.len(), topology.workloads.len() + 1);
        let runs =
            if external { Runs::ExternalService(server.clone()) } else { Runs::Service(server.clone()) };
        topology.workloads.extend([
            Workload {
                name: PAIR_CLIENT.to_owned(),
                namespace: namespace.clone(),
                replicas: 1,
                protocol,
                resources: limit(client_cpu_limit_cores),
                runs: Runs::Drivers,
                in_mesh: true,
            },
            Workload {
                name: PAIR_SERVER.to_owned(),
                namespace: namespace.clone(),
                replicas,
                protocol,
                resources: limit(server.cpu_limit_cores),
                runs,
                in_mesh: !external,
            },
        ]);
        topology.calls.push(Call { from: client, to });
        let name =
            if namespace.is_empty() { PAIR_DRIVER.to_owned() } else { format!("{namespace}/{PAIR_DRIVER}") };
        topology.drivers.push(DriverPlacement {
            name,
            at: client,
            target: to,
            endpoint: DEFAULT_ENDPOINT.to_owned(),
        });
    }
    topology
}

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
