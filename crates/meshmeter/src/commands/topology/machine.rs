//! What a topology takes on this machine in each data plane.
//!
//! The constants are working sets that runs on this project's own machine measured (docs/topology.md, "What a topology
//! takes"), a little rounded up. They serve a decision before a run starts; a run measures every component.

use crate::failure::Failure;
use experiment::Mode;
use experiment::topology::Topology;
use experiment::topology::needs::ProcessMemory;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs;
use std::thread::available_parallelism;

const MEGABYTE: u64 = 1_000_000;
/// `meshmeter serve --topology` under load.
const SERVICE_BYTES: u64 = 5 * MEGABYTE;
/// `meshmeter load`.
const DRIVER_BYTES: u64 = 8 * MEGABYTE;
/// FerretDB with a small collection.
const DATABASE_BYTES: u64 = 30 * MEGABYTE;
/// An Envoy, as sidecar or waypoint, with its agent.
const ENVOY_BYTES: u64 = 37 * MEGABYTE;
/// What istiod holds per Envoy.
const ISTIOD_BYTES_PER_ENVOY: u64 = MEGABYTE;
/// A ztunnel that knows up to 2000 services.
const ZTUNNEL_BYTES: u64 = 28 * MEGABYTE;
/// kube-apiserver (550 MB), etcd (50 MB) and istiod (50 MB), and program pages that all Envoys share (80 MB).
const SHARED_BYTES: u64 = 730 * MEGABYTE;

/// What a data plane takes.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Take {
    /// As experiments name it.
    pub mode: &'static str,
    /// Sidecars, ztunnels and waypoints.
    pub proxies: usize,
    /// Those of the topology, and the proxies.
    pub containers: usize,
    pub memory_bytes: u64,
    /// Whether this machine has that much memory available.
    pub fits: bool,
}

/// The machine.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Machine {
    pub cores: usize,
    pub memory_bytes: u64,
    pub memory_available_bytes: u64,
}

impl Machine {
    /// This machine.
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

    /// The data planes that an experiment with Istio has, each with what it takes.
    pub(super) fn takes(&self, topology: &Topology) -> Vec<Take> {
        let members = topology.workloads.iter().filter(|workload| workload.in_mesh && workload.serves());
        let waypoints = members.map(|workload| &workload.namespace).collect::<BTreeSet<_>>().len();
        [Mode::None, Mode::Sidecar, Mode::Ambient, Mode::AmbientWaypoint]
            .into_iter()
            .map(|mode| {
                let sidecars = if mode == Mode::Sidecar { topology.pods_in_mesh() } else { 0 };
                let ztunnels = usize::from(matches!(mode, Mode::Ambient | Mode::AmbientWaypoint));
                let waypoints = if mode == Mode::AmbientWaypoint { waypoints } else { 0 };
                let proxies = sidecars + ztunnels + waypoints;
                let envoy = ENVOY_BYTES + ISTIOD_BYTES_PER_ENVOY;
                let memory_bytes = topology.memory_bytes(&ProcessMemory {
                    service: SERVICE_BYTES,
                    database: DATABASE_BYTES,
                    driver: DRIVER_BYTES,
                    proxy: if sidecars > 0 { envoy } else { 0 },
                    shared: SHARED_BYTES + ztunnels as u64 * ZTUNNEL_BYTES + waypoints as u64 * envoy,
                });
                let fits = memory_bytes <= self.memory_available_bytes;
                Take { mode: mode.name(), proxies, containers: topology.pods() + proxies, memory_bytes, fits }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        // Three pods of web and the client's of each copy are in the mesh.
        let expected = [("none", 0, 10), ("sidecar", 8, 18), ("ambient", 1, 11), ("ambient-waypoint", 3, 13)];
        assert_eq!(counts, expected);
        assert_eq!(takes[1].memory_bytes - takes[0].memory_bytes, 8 * (ENVOY_BYTES + ISTIOD_BYTES_PER_ENVOY));
        assert_eq!(takes.iter().map(|take| take.fits).collect::<Vec<_>>(), [true, false, true, true]);
    }
}
