//! A built-in topology: its name, its parameters and its builder.

use super::parameter::{CLIENT_IN_MESH, Parameter, Parameters};
use crate::protocol::Protocol;
use crate::settings::service::ServerSettings;
use crate::topology::{Runs, Topology};
use std::fmt;

/// A built-in topology.
pub struct Shape {
    /// Name that users type.
    pub name: &'static str,
    /// One-sentence description.
    pub summary: &'static str,
    /// Parameters specific to this shape; copies and replicas are common to all shapes.
    pub parameters: &'static [Parameter],
    /// True if the experiment defines protocol, payload, delay and error rate of its services; otherwise the
    /// shape does.
    pub is_plain: bool,
    /// Builds a copy. The error is a sentence.
    pub(crate) make: fn(&ShapeSettings<'_>) -> Result<Topology, String>,
}

/// Settings for building a copy of a shape.
#[derive(Clone, Debug)]
pub struct ShapeSettings<'a> {
    /// Values of the shape's parameters.
    pub parameters: &'a Parameters,
    /// Pods per service.
    pub replicas: usize,
    /// Protocol of a plain shape's services.
    pub protocol: Protocol,
    /// Payload, delay and error rate of a plain shape's services; the CPU limit applies to every shape.
    pub server: &'a ServerSettings,
    /// CPU limit of drivers, cores; absent: none.
    pub client_cpu_limit_cores: Option<f64>,
    /// True in egress modes, where the server of a pair is outside the mesh.
    pub external: bool,
}

impl Shape {
    /// Parameter with this name.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// Builds the topology with this number of copies.
    ///
    /// # Errors
    /// Returns a sentence if the parameters together make the topology too large.
    pub fn topology(&self, namespaces: usize, settings: &ShapeSettings<'_>) -> Result<Topology, String> {
        let mut topology = (self.make)(settings)?;
        topology.limit_cpu(settings.server.cpu_limit_cores, settings.client_cpu_limit_cores);
        if settings.parameters.get(CLIENT_IN_MESH.name) == Some(0.0) {
            let clients = topology.workloads.iter_mut().filter(|workload| !workload.serves());
            clients.for_each(|client| client.in_mesh = false);
        }
        topology.checked_copies(namespaces)
    }
}

impl Topology {
    /// Sets the CPU limits of the pods of services and drivers, if given.
    pub(crate) fn limit_cpu(&mut self, services: Option<f64>, drivers: Option<f64>) {
        for workload in &mut self.workloads {
            let limit = match workload.runs {
                Runs::Drivers => drivers,
                Runs::Database => None,
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
