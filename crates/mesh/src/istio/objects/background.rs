//! Background services, without callers or pods. Every proxy receives them, which costs memory, and CPU on
//! each change.

use super::subject::object;
use crate::Result;
use crate::kubernetes::object_ref::ObjectRef;
use crate::kubernetes::workloads::endpoint_slice;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::ops::Range;

/// Namespace of the background services. Sidecars with `istio.sidecar-scope` do not receive it.
pub const NAMESPACE: &str = "surroundings";
/// First of their addresses, outside the ranges of pods (10.77.0.0/16) and of Services (10.78.0.0/16).
const FIRST_ADDRESS: u32 = u32::from_be_bytes([10, 80, 0, 1]);

pub fn services(numbers: Range<usize>, endpoints_each: usize) -> Vec<Value> {
    numbers.flat_map(|number| [service(&name(number)), endpoints(number, endpoints_each)]).collect()
}

pub fn object_refs(numbers: Range<usize>) -> Vec<ObjectRef> {
    let refs = services(numbers, 0).iter().map(ObjectRef::from_object).collect::<Result<_>>();
    refs.expect("each has a kind and a name")
}

fn name(number: usize) -> String {
    format!("service-{number}")
}

/// An HTTP Service, the most common kind: one cluster and one virtual host in every proxy.
fn service(name: &str) -> Value {
    let spec = json!({"ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]});
    object("v1", "Service", (NAMESPACE, name), &spec)
}

fn endpoints(number: usize, count: usize) -> Value {
    let name = name(number);
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
    let ports = json!([{"name": "http", "port": 8080, "protocol": "TCP"}]);
    endpoint_slice((NAMESPACE, &name), &name, &endpoints, &ports)
}
