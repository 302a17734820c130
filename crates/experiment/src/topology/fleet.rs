//! Topology of mode `control-plane`: one driver, a fleet of simulated proxies. The driver itself writes the
//! mesh that the proxies are configured with.

use super::{DriverPlacement, Resources, Runs, Topology, Workload};
use crate::protocol::Protocol;

/// Name of the workload with real sidecars.
pub const WITNESS: &str = "witness";
/// Name of the fleet's pod and driver.
pub const FLEET: &str = "fleet";

/// One pod for the fleet, outside the mesh, and pods with real sidecars in the mesh.
#[must_use]
pub fn fleet(witnesses: usize) -> Topology {
    let workload = |name: &str, replicas: usize, in_mesh: bool| Workload {
        name: name.to_owned(),
        namespace: String::new(),
        replicas,
        protocol: Protocol::default(),
        resources: Resources::default(),
        runs: Runs::Drivers,
        in_mesh,
    };
    let witnesses = (witnesses > 0).then(|| workload(WITNESS, witnesses, true));
    Topology {
        name: FLEET.to_owned(),
        workloads: [workload(FLEET, 1, false)].into_iter().chain(witnesses).collect(),
        calls: Vec::new(),
        // It connects to the control plane, which is not a workload.
        drivers: vec![DriverPlacement { name: FLEET.to_owned(), at: 0, target: 0, endpoint: String::new() }],
    }
}
