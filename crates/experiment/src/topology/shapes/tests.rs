//! Tests of services, calls and requests in built-in topologies.

use super::{Parameters, SHAPES, Shape, ShapeSettings};
use crate::protocol::Protocol;
use crate::settings::service::ServerSettings;
use crate::topology::{Topology, file};

fn made(
    name: &str,
    given: &[(&str, &str)],
    namespaces: usize,
    protocol: Protocol,
) -> Result<Topology, String> {
    let shape = Shape::find(name).unwrap();
    let mut parameters = Parameters::defaults(shape);
    for (name, value) in given {
        let parameter = shape.parameter(name).unwrap();
        parameters.set(parameter, parameter.parse(value).unwrap());
    }
    let server = ServerSettings::default();
    let settings = ShapeSettings {
        parameters: &parameters,
        replicas: 1,
        protocol,
        server: &server,
        client_cpu_limit_cores: None,
        external: false,
    };
    shape.topology(namespaces, &settings)
}

/// Expected requests by service of one copy, sorted by name.
fn requests(topology: &Topology) -> Vec<(String, f64)> {
    let expected = topology.expected_of_all().unwrap();
    let mut requests: Vec<(String, f64)> = expected
        .workloads
        .iter()
        .map(|(id, requests)| (topology.workloads[*id].qualified_name(), (requests * 1e6).round() / 1e6))
        .collect();
    requests.sort_by(|one, other| one.0.cmp(&other.0));
    requests
}

#[test]
fn every_shape_writes_a_file_that_reads_back() {
    for shape in SHAPES {
        for (namespaces, protocol) in [(1, Protocol::Http1), (2, Protocol::Grpc), (3, Protocol::Tcp)] {
            let topology = made(shape.name, &[], namespaces, protocol).unwrap();
            let again = file::read(&topology.to_yaml(), "again").unwrap_or_else(|error| {
                panic!("{}: {}\n{}", shape.name, error.render(false), topology.to_yaml())
            });
            if shape.name == "pair" {
                assert_eq!(again.calls, topology.calls);
            } else {
                assert_eq!(again, topology, "{}", shape.name);
            }
            assert_eq!(topology.drivers.len(), namespaces);
        }
    }
}

#[test]
fn defaults_of_parameters_are_values() {
    for parameter in SHAPES.iter().flat_map(|shape| shape.parameters) {
        assert_eq!(parameter.parse(&parameter.format(parameter.default)), Ok(parameter.default));
    }
    assert!(Shape::find("chain").unwrap().parameter("hops").unwrap().parse("0").is_err());
}

#[test]
fn chain_tree_and_star_call_as_documented() {
    let of = |name, given: &[(&str, &str)]| made(name, given, 1, Protocol::Http1).unwrap();
    let chain = of("chain", &[("hops", "8")]);
    assert_eq!((chain.workloads.len(), chain.calls.len()), (9, 8));
    assert!(requests(&chain).iter().all(|(_, requests)| *requests == 1.0));
    let tree = of("tree", &[("depth", "3"), ("fan-out", "10")]);
    assert_eq!((tree.workloads.len(), tree.calls.len()), (112, 111));
    assert_eq!(tree.workloads[111].name, "svc-0-9-9");
    let star = of("star", &[("width", "5")]);
    assert_eq!((star.workloads.len(), star.calls.len()), (7, 6));
    let error = made("tree", &[("depth", "12"), ("fan-out", "1000")], 1, Protocol::Http1).unwrap_err();
    assert_eq!(error, "a tree of depth 12 and fan-out 1000 has more than 5000 services");
}

#[test]
fn tiered_doubles_requests_to_last_tier() {
    let tenants = made("tiered", &[("client-in-mesh", "false")], 50, Protocol::Http1).unwrap();
    assert_eq!((tenants.namespaces().len(), tenants.pods(), tenants.calls.len()), (50, 250, 250));
    assert_eq!(
        requests(&tenants)[..4],
        [("a", 1.0), ("b1", 1.0), ("b2", 1.0), ("c", 2.0)]
            .map(|(name, count)| (format!("tiered-1/{name}"), count))
    );
    assert!(tenants.workloads.iter().all(|workload| workload.in_mesh == workload.serves()));
    let cores = |workload: usize| tenants.workloads[workload].resources.cpu_request_cores;
    assert_eq!((cores(0), cores(1)), (Some(0.5), Some(0.7)));
}

#[test]
fn apps_call_as_documented() {
    let named = |name: &str, count: f64| (name.to_owned(), count);
    let emojivoto = made("emojivoto", &[], 1, Protocol::Http1).unwrap();
    assert_eq!(requests(&emojivoto), [named("emoji", 1.0), named("voting", 1.0), named("web", 1.0)]);
    let booking = made("booking", &[], 1, Protocol::Http1).unwrap();
    assert_eq!(
        requests(&booking),
        [
            named("auth", 1.0),
            named("booking", 0.2),
            // A session and a customer, two finds for a search, three operations for a booking.
            named("db", 2.0 + 0.8 * 2.0 + 0.2 * 3.0),
            named("flight", 1.0),
            named("main", 1.0)
        ]
    );
}

#[test]
fn random_graph_is_the_same_for_a_seed_and_connected() {
    let of = |seed: &str, density: &str| {
        made("random", &[("services", "40"), ("density", density), ("seed", seed)], 1, Protocol::Http1)
    };
    assert_eq!(of("7", "5%"), of("7", "5%"));
    assert_ne!(of("7", "5%"), of("8", "5%"));
    let graph = of("7", "5%").unwrap();
    // 39 calls that connect the graph, and 5 % of the 741 others.
    assert_eq!(graph.calls.len(), 1 + 39 + 37);
    assert_eq!(requests(&graph).len(), 40);
    assert!(of("7", "100%").unwrap_err().contains("lower density"));
}
