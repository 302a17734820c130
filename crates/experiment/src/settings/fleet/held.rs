//! Services of a topology, used as the mesh of a fleet.

use crate::topology::Topology;
use crate::topology::file::MAX_WORKLOADS;
use crate::yaml::written::{Map, Yaml};
use std::collections::BTreeSet;

/// Services, namespaces and pods of a topology. Calls and load are irrelevant to a control plane.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HeldTopology {
    /// Name of the topology.
    pub name: String,
    /// Services in the mesh; at least one.
    pub workloads: Vec<HeldWorkload>,
}

/// A service of a topology.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HeldWorkload {
    /// Name within its namespace.
    pub name: String,
    /// Namespace within the topology; empty if the topology has a single one.
    pub namespace: String,
    /// Number of pods.
    pub pods: usize,
}

impl HeldTopology {
    /// Extracts the services of a topology that run in the mesh, without clients, databases and external
    /// services.
    ///
    /// # Errors
    /// Returns a sentence if there are none or too many.
    pub fn new(topology: &Topology) -> Result<Self, String> {
        let in_mesh =
            topology.workloads.iter().filter(|workload| workload.serves() && !workload.is_external());
        let workloads: Vec<HeldWorkload> = in_mesh
            .map(|workload| HeldWorkload {
                name: workload.name.clone(),
                namespace: workload.namespace.clone(),
                pods: workload.replicas,
            })
            .collect();
        match workloads.len() {
            0 => Err(format!("the topology `{}` has no service in the mesh", topology.name)),
            1..=MAX_WORKLOADS => Ok(Self { name: topology.name.clone(), workloads }),
            services => Err(format!(
                "the topology `{}` has {services} services, and a fleet's mesh at most {MAX_WORKLOADS}",
                topology.name
            )),
        }
    }

    /// Number of pods.
    #[must_use]
    pub fn pods(&self) -> usize {
        self.workloads.iter().map(|workload| workload.pods).sum()
    }

    /// Number of namespaces.
    #[must_use]
    pub fn namespaces(&self) -> usize {
        let names: BTreeSet<&str> = self.workloads.iter().map(|workload| &*workload.namespace).collect();
        names.len()
    }

    /// The key `topology` of a file with these services.
    pub(crate) fn view(&self) -> Yaml {
        let service = |workload: &HeldWorkload| {
            let namespace = (!workload.namespace.is_empty()).then(|| Yaml::Text(workload.namespace.clone()));
            Map::default()
                .text("name", &workload.name)
                .with_some("namespace", namespace)
                .number("replicas", workload.pods)
                .done()
        };
        let services = self.workloads.iter().map(service).collect();
        Map::default().text("name", &self.name).with("services", Yaml::List(services)).done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::file;
    use crate::yaml::document;

    #[test]
    fn topology_keeps_services_in_the_mesh() {
        let text = "name: shop\nclients: [{name: client}]\nservices:\n\
             - {name: web, namespace: front, replicas: 3}\n- {name: \"no\", namespace: back, replicas: 2}\n\
             databases: [{name: store, namespace: back}]\n";
        let topology = file::read(text, "shop.yaml").unwrap_or_else(|error| panic!("{}", error.message));
        let held = HeldTopology::new(&topology).unwrap();
        let names: Vec<&str> = held.workloads.iter().map(|workload| workload.name.as_str()).collect();
        assert_eq!(names, ["web", "no"]);
        assert_eq!((held.pods(), held.namespaces()), (5, 2));
        let again = file::read(&document::write(&held.view()), "again.yaml").unwrap();
        assert_eq!(HeldTopology::new(&again).unwrap(), held);
    }

    #[test]
    fn topology_without_services_in_mesh_is_rejected() {
        let error = HeldTopology::new(&crate::topology::fleet(0)).unwrap_err();
        assert_eq!(error, "the topology `fleet` has no service in the mesh");
    }
}
