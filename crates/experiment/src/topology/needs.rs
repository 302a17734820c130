//! Size of a topology, resources reserved by its pods, and an estimate of their memory.

use super::{Runs, Topology, Workload};
use std::fmt;

/// Counts of a topology.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TopologySize {
    /// Namespaces; 1 for a topology without namespaces.
    pub namespaces: usize,
    /// Services, databases included.
    pub services: usize,
    /// Pods of services, databases and clients.
    pub pods: usize,
    /// Calls between workloads, including those of drivers.
    pub calls: usize,
    /// Drivers.
    pub drivers: usize,
}

impl fmt::Display for TopologySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = [
            (self.namespaces, "namespace"),
            (self.services, "service"),
            (self.pods, "pod"),
            (self.calls, "call"),
            (self.drivers, "driver"),
        ];
        let counted = counted.iter().skip(usize::from(self.namespaces == 1));
        let texts: Vec<String> = counted
            .map(|(count, noun)| format!("{count} {noun}{}", if *count == 1 { "" } else { "s" }))
            .collect();
        f.write_str(&texts.join(", "))
    }
}

/// Sum of CPU and memory requests of pods, over workloads that set them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reserved {
    /// Cores.
    pub cpu_cores: f64,
    /// Memory, bytes.
    pub memory_bytes: u64,
}

/// Estimated memory per process, bytes; used by [`Topology::memory_bytes`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ProcessMemory {
    /// Pod of a service.
    pub service: u64,
    /// Database.
    pub database: u64,
    /// Running driver.
    pub driver: u64,
    /// Proxy in each pod that belongs to the mesh; 0 if pods have none.
    pub proxy: u64,
    /// Shared components, such as a control plane.
    pub shared: u64,
}

impl Topology {
    /// Counts.
    #[must_use]
    pub fn size(&self) -> TopologySize {
        TopologySize {
            namespaces: self.namespaces().len().max(1),
            services: self.workloads.iter().filter(|workload| workload.serves()).count(),
            pods: self.pods(),
            calls: self.calls.len(),
            drivers: self.drivers.len(),
        }
    }

    /// Number of pods that belong to the mesh.
    #[must_use]
    pub fn pods_in_mesh(&self) -> usize {
        self.workloads.iter().filter(|workload| workload.in_mesh).map(|workload| workload.replicas).sum()
    }

    /// Resources reserved by the pods of these workloads.
    #[must_use]
    pub fn reserved(&self, of: impl Fn(&Workload) -> bool) -> Reserved {
        let mut reserved = Reserved::default();
        for workload in self.workloads.iter().filter(|workload| of(workload)) {
            reserved.cpu_cores +=
                workload.resources.cpu_request_cores.unwrap_or(0.0) * workload.replicas as f64;
            reserved.memory_bytes +=
                workload.resources.memory_request_bytes.unwrap_or(0) * workload.replicas as u64;
        }
        reserved
    }

    /// Estimated memory of all pods on a machine, bytes.
    #[must_use]
    pub fn memory_bytes(&self, process: &ProcessMemory) -> u64 {
        let pods = self.workloads.iter().map(|workload| {
            let application = match workload.runs {
                Runs::Drivers => 0,
                Runs::Database => process.database,
                Runs::Service(_) | Runs::ExternalService(_) | Runs::Scripted(_) => process.service,
            };
            let proxy = if workload.in_mesh { process.proxy } else { 0 };
            workload.replicas as u64 * (application + proxy)
        });
        let generators = self.drivers.iter().map(|driver| self.workloads[driver.at].replicas as u64);
        pods.sum::<u64>() + generators.sum::<u64>() * process.driver + process.shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::file::read;

    #[test]
    fn needs_are_summed_over_pods() {
        let text = "\
services:
- {name: a, replicas: 3, resources: {requests: {cpu: 700m, memory: 500MiB}}, script: [call: b]}
- {name: b, in-mesh: false, script: [{query: {database: db, find: x}}]}
databases: [{name: db}]
";
        let topology = read(text, "shop.yaml").unwrap().copies(2);
        assert_eq!(topology.size().to_string(), "2 namespaces, 6 services, 12 pods, 6 calls, 2 drivers");
        assert_eq!(topology.pods_in_mesh(), 8);
        let reserved = topology.reserved(Workload::serves);
        assert!((reserved.cpu_cores - 4.2).abs() < 1e-9);
        assert_eq!(reserved.memory_bytes, 6 * (500 << 20));
        let process =
            ProcessMemory { service: 1, database: 100, driver: 10_000, proxy: 1_000, shared: 1_000_000 };
        assert_eq!(topology.memory_bytes(&process), 8 + 200 + 20_000 + 8_000 + 1_000_000);
    }
}
