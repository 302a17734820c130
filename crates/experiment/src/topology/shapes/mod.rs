//! Built-in topologies. Adding one is a file with its [`Shape`] and a line in [`SHAPES`].
//!
//! A shape makes one copy without namespaces; [`Topology::copies`] places several in namespaces of their own.

mod booking;
mod chain;
mod draft;
mod emojivoto;
mod parameter;
mod random;
mod star;
mod tiered;
mod tree;

#[cfg(test)]
mod tests;

pub use parameter::{Parameter, ParameterKind, Parameters};

use super::Topology;
use super::pair::PAIR;
use crate::protocol::Protocol;
use crate::settings::service::ServerSettings;
use std::fmt;

/// Every built-in topology.
pub static SHAPES: [&Shape; 8] = [
    &PAIR,
    &chain::CHAIN,
    &tree::TREE,
    &star::STAR,
    &tiered::TIERED,
    &emojivoto::EMOJIVOTO,
    &booking::BOOKING,
    &random::RANDOM,
];

/// A built-in topology.
pub struct Shape {
    /// The name that users type.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Parameters of its own; copies and replicas are common to all.
    pub parameters: &'static [Parameter],
    /// Protocol, payload, delay and error rate of its services are the experiment's. Otherwise it has its own.
    pub is_plain: bool,
    /// Makes a copy. The error is a sentence.
    pub(crate) make: fn(&ShapeSettings<'_>) -> Result<Topology, String>,
}

/// What a copy of a shape is made with.
#[derive(Clone, Debug)]
pub struct ShapeSettings<'a> {
    /// Values of the shape's parameters.
    pub parameters: &'a Parameters,
    /// Pods of each service.
    pub replicas: usize,
    /// Protocol of a plain shape's services.
    pub protocol: Protocol,
    /// Payload, delay and error rate of a plain shape's services; its CPU limit is every shape's.
    pub server: &'a ServerSettings,
    /// CPU limit of drivers, cores; absent: none.
    pub client_cpu_limit_cores: Option<f64>,
    /// Whether the mode leads out of the mesh: the server of a pair stands outside then.
    pub external: bool,
}

impl Shape {
    /// The shape of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        SHAPES.into_iter().find(|shape| shape.name == name)
    }

    /// The parameter of this name.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// Makes the topology, `namespaces` times.
    ///
    /// # Errors
    /// The parameters together make something that is too large. The error is a sentence.
    pub fn topology(&self, namespaces: usize, settings: &ShapeSettings<'_>) -> Result<Topology, String> {
        let mut topology = (self.make)(settings)?;
        topology.limit_cpu(settings.server.cpu_limit_cores, settings.client_cpu_limit_cores);
        if settings.parameters.get(parameter::CLIENT_IN_MESH.name) == Some(0.0) {
            let clients = topology.workloads.iter_mut().filter(|workload| !workload.serves());
            clients.for_each(|client| client.in_mesh = false);
        }
        topology.checked_copies(namespaces)
    }
}

impl Topology {
    /// Sets CPU limits of the pods of services and of drivers, where they are given.
    pub(crate) fn limit_cpu(&mut self, services: Option<f64>, drivers: Option<f64>) {
        for workload in &mut self.workloads {
            let limit = match workload.runs {
                super::Runs::Drivers => drivers,
                super::Runs::Database => None,
                _ => services,
            };
            workload.resources.cpu_limit_cores = limit.or(workload.resources.cpu_limit_cores);
        }
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Shape {}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
