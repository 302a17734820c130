//! Resources that a topology needs on this machine, per data plane.

use crate::failure::Failure;
use crate::memory::{needed_bytes, waypoints};
use experiment::MeshKind;
use experiment::dataplane::{Entry, Exit, ModeParts, Proxies};
use experiment::environment::DeploymentSpec;
use experiment::topology::Topology;
use results::Mode;
use serde::Serialize;
use std::fs;
use std::sync::Arc;
use std::thread::available_parallelism;

/// Resources of a data plane.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Take {
    /// Name of the mode in experiments.
    pub mode: &'static str,
    /// Number of sidecars, ztunnels and waypoints.
    pub proxies: usize,
    /// Containers of the topology, plus the proxies.
    pub containers: usize,
    pub memory_bytes: u64,
    /// True if this machine has that much memory available.
    pub fits: bool,
}

/// CPUs and memory of the machine.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Machine {
    pub cores: usize,
    pub memory_bytes: u64,
    pub memory_available_bytes: u64,
}

impl Machine {
    /// Reads this machine's.
    pub(super) fn read() -> Result<Self, Failure> {
        let meminfo = fs::read_to_string("/proc/meminfo")
            .map_err(|error| Failure::environment(&error).about("read /proc/meminfo"))?;
        Ok(Self::from_meminfo(&meminfo))
    }

    fn from_meminfo(meminfo: &str) -> Self {
        let bytes = |key: &str| {
            let value = meminfo.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            let kibibytes =
                value.and_then(|value| value.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
            kibibytes.unwrap_or(0) * 1024
        };
        Self {
            cores: available_parallelism().map_or(1, usize::from),
            memory_bytes: bytes("MemTotal"),
            memory_available_bytes: bytes("MemAvailable"),
        }
    }

    /// Resources of each data plane that an experiment with Istio can have.
    pub(super) fn takes(&self, topology: &Topology) -> Vec<Take> {
        let shared = Arc::new(topology.clone());
        MeshKind::Istio
            .modes()
            .filter(|mode| is_data_plane_alone(*mode))
            .map(|mode| {
                let Proxies { pod, node, namespace } = MeshKind::Istio.parts(mode).data_plane.proxies();
                let sidecars = pod.map_or(0, |_| topology.pods_in_mesh());
                let waypoints = namespace.map_or(0, |_| waypoints(topology));
                let proxies = sidecars + usize::from(node.is_some()) + waypoints;
                let topology = Arc::clone(&shared);
                let spec = DeploymentSpec { topology, ..DeploymentSpec::new(MeshKind::Istio, mode) };
                let memory_bytes = needed_bytes(&spec);
                let fits = memory_bytes <= self.memory_available_bytes;
                Take { mode: mode.name(), proxies, containers: shared.pods() + proxies, memory_bytes, fits }
            })
            .collect()
    }
}

/// True if a mode has nothing besides its data plane: no gateway, no egress, no fleet.
fn is_data_plane_alone(mode: Mode) -> bool {
    let ModeParts { entry, exit, .. } = MeshKind::Istio.parts(mode);
    mode.has_requests() && entry == Entry::Direct && exit == Exit::None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{CONFIGURATION_BYTES, ENVOY_BYTES};
    use experiment::topology::file;

    #[test]
    fn data_planes_take_proxies_and_memory() {
        let text = "services: [{name: web, replicas: 3, script: [call: old]}, {name: old, in-mesh: false}]";
        let topology = file::read(text, "shop.yaml").unwrap().copies(2);
        let meminfo = "MemTotal:       8000000 kB\nMemFree:  1 kB\nMemAvailable:  1000000 kB\n";
        let machine = Machine::from_meminfo(meminfo);
        assert_eq!((machine.memory_bytes, machine.memory_available_bytes), (8_192_000_000, 1_024_000_000));
        let takes = machine.takes(&topology);
        let counts: Vec<_> = takes.iter().map(|take| (take.mode, take.proxies, take.containers)).collect();
        // Three pods of `web` and the client's are in the mesh, per copy.
        let expected = [("none", 0, 10), ("sidecar", 8, 18), ("ambient", 1, 11), ("ambient-waypoint", 3, 13)];
        assert_eq!(counts, expected);
        assert_eq!(
            takes[1].memory_bytes - takes[0].memory_bytes,
            8 * (ENVOY_BYTES + 4 * CONFIGURATION_BYTES)
        );
        assert_eq!(takes.iter().map(|take| take.fits).collect::<Vec<_>>(), [true, false, true, true]);
    }
}
