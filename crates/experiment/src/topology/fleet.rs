//! The topology of mode `control-plane`: one driver, a fleet of simulated proxies. The mesh that these are configured with
//! is the driver's own to write.

use super::{DriverPlacement, Resources, Runs, Topology, Workload};
use crate::protocol::Protocol;

/// Name of the fleet's pod and of its driver.
pub const FLEET: &str = "fleet";

/// A pod for the fleet, outside the mesh.
#[must_use]
pub fn fleet() -> Topology {
    Topology {
        name: FLEET.to_owned(),
        workloads: vec![Workload {
            name: FLEET.to_owned(),
            namespace: String::new(),
            replicas: 1,
            protocol: Protocol::default(),
            resources: Resources::default(),
            runs: Runs::Drivers,
            in_mesh: false,
        }],
        calls: Vec::new(),
        // It connects to the control plane, which is no workload.
        drivers: vec![DriverPlacement { name: FLEET.to_owned(), at: 0, target: 0, endpoint: String::new() }],
    }
}
