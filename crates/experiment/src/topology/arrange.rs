//! Canonical order of workloads and calls in a topology, and copies of it in several namespaces.

use super::file::MAX_PODS;
use super::{Call, Runs, Topology, Workload, WorkloadId};
use std::collections::{HashMap, HashSet};

/// Maximum number of services, databases and clients over all copies.
const MAX_WORKLOADS_IN_ALL: usize = 20_000;

impl Topology {
    /// Sorts the topology into file order: namespace by namespace, and in each the clients, then services,
    /// then databases. Calls are those of the drivers, then those of the scripts, without duplicates.
    #[must_use]
    pub(crate) fn arranged(mut self) -> Self {
        let mut namespaces: Vec<&str> = Vec::new();
        for class in [SERVICES, DATABASES, CLIENTS] {
            for workload in self.workloads.iter().filter(|workload| class_of(workload) == class) {
                if namespaces.last() != Some(&workload.namespace.as_str()) {
                    namespaces.push(&workload.namespace);
                }
            }
        }
        let mut seen = HashSet::new();
        namespaces.retain(|namespace| seen.insert(*namespace));
        let positions: HashMap<&str, usize> =
            namespaces.iter().enumerate().map(|(position, namespace)| (*namespace, position)).collect();
        let mut order: Vec<WorkloadId> = (0..self.workloads.len()).collect();
        order.sort_by_key(|id| {
            let workload = &self.workloads[*id];
            (positions[workload.namespace.as_str()], class_of(workload))
        });
        let mut new_ids = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            new_ids[*old] = new;
        }
        let mut slots: Vec<Option<Workload>> = self.workloads.drain(..).map(Some).collect();
        self.workloads = order.iter().filter_map(|old| slots[*old].take()).collect();
        self.renumber(&|old| new_ids[old]);
        self.link();
        self
    }

    /// Copies the whole topology, each copy with its own namespaces: `shop` becomes `shop-1`, `shop-2`, … A
    /// topology without namespaces uses its name instead. A single copy is the topology itself.
    #[must_use]
    pub fn copies(self, count: usize) -> Self {
        if count <= 1 {
            return self;
        }
        let mut all = Self { name: self.name.clone(), ..Self::default() };
        for number in 1..=count {
            let namespace_of = |namespace: &str| {
                format!("{}-{number}", if namespace.is_empty() { &self.name } else { namespace })
            };
            let first = all.workloads.len();
            let mut copy = self.clone();
            copy.renumber(&|id| id + first);
            for driver in &mut copy.drivers {
                driver.name = match driver.name.split_once('/') {
                    Some((namespace, name)) => format!("{}/{name}", namespace_of(namespace)),
                    None => {
                        let client = &self.workloads[driver.at - first];
                        format!("{}/{}", namespace_of(&client.namespace), driver.name)
                    }
                };
            }
            for workload in &mut copy.workloads {
                workload.namespace = namespace_of(&workload.namespace);
            }
            all.workloads.append(&mut copy.workloads);
            all.drivers.append(&mut copy.drivers);
        }
        all.link();
        all
    }

    /// Copies the topology, within size limits.
    pub(crate) fn checked_copies(self, count: usize) -> Result<Self, String> {
        let (workloads, pods) = (self.workloads.len() * count, self.pods() * count);
        if workloads > MAX_WORKLOADS_IN_ALL || pods > MAX_PODS {
            return Err(format!(
                "the topology has {workloads} workloads with {pods} pods, of which {MAX_WORKLOADS_IN_ALL} and {MAX_PODS} are allowed"
            ));
        }
        Ok(self.copies(count))
    }

    /// Renumbers the workloads in scripts and drivers.
    fn renumber(&mut self, map: &dyn Fn(WorkloadId) -> WorkloadId) {
        for workload in &mut self.workloads {
            if let Runs::Scripted(service) = &mut workload.runs {
                let steps = service.endpoints.iter_mut().flat_map(|endpoint| &mut endpoint.steps);
                steps.for_each(|step| step.map_callees(map));
            }
        }
        for driver in &mut self.drivers {
            (driver.at, driver.target) = (map(driver.at), map(driver.target));
        }
    }

    /// Rebuilds the list of calls.
    fn link(&mut self) {
        let drivers = self.drivers.iter().map(|driver| Call { from: driver.at, to: driver.target });
        let services = self.workloads.iter().enumerate().filter_map(|(from, workload)| {
            Some(workload.script()?.callees().into_iter().map(move |to| Call { from, to }))
        });
        let mut seen = HashSet::new();
        self.calls = drivers.chain(services.flatten()).filter(|call| seen.insert(*call)).collect();
    }
}

const CLIENTS: u8 = 0;
const SERVICES: u8 = 1;
const DATABASES: u8 = 2;

fn class_of(workload: &Workload) -> u8 {
    match workload.runs {
        Runs::Drivers => CLIENTS,
        Runs::Database => DATABASES,
        Runs::Service(_) | Runs::ExternalService(_) | Runs::Scripted(_) => SERVICES,
    }
}
