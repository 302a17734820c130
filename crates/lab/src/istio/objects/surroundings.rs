//! Other services of the mesh. Nobody calls them and nothing answers there; every proxy is told of them, and that costs
//! memory, and CPU whenever one of them changes.

use super::object;
use experiment::mesh_settings::Surroundings;
use serde_json::{Value, json};
use std::net::Ipv4Addr;

/// Their namespace: one that sidecars which are told of their own alone do not see.
pub const NAMESPACE: &str = "surroundings";

/// Where their addresses begin: beside those of pods (10.77.0.0/16) and of Services (10.78.0.0/16).
const FIRST_ADDRESS: u32 = u32::from_be_bytes([10, 80, 0, 1]);

/// The namespace, the Services and their addresses; nothing where there are none.
#[must_use]
pub fn objects(surroundings: Surroundings) -> Vec<Value> {
    if surroundings.services == 0 {
        return Vec::new();
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let services = (0..surroundings.services).flat_map(|number| {
        let name = format!("service-{number}");
        [service(&name), endpoints(&name, number, surroundings.endpoints)]
    });
    std::iter::once(namespace).chain(services).collect()
}

/// A Service for HTTP, as most are: each is a cluster and a virtual host in every proxy.
fn service(name: &str) -> Value {
    let spec = json!({"ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]});
    object("v1", "Service", (NAMESPACE, name), &spec)
}

fn endpoints(name: &str, number: usize, count: usize) -> Value {
    let first = FIRST_ADDRESS + u32::try_from(number * count).expect("an experiment has at most 100000");
    let endpoints: Vec<Value> = (first..)
        .take(count)
        .map(|address| {
            json!({
                "addresses": [Ipv4Addr::from(address)],
                "conditions": {"ready": true, "serving": true, "terminating": false},
            })
        })
        .collect();
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    })
}
