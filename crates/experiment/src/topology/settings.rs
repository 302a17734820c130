//! The topology of an experiment: a built-in one or a graph of its own, and how often it stands.

use super::pair::PAIR;
use super::shapes::{Parameters, Shape, ShapeSettings};
use super::{Topology, fleet};
use crate::mode::Mode;
use crate::protocol::Protocol;
use crate::settings::service::ServerSettings;
use std::sync::Arc;

/// A topology and its size.
#[derive(Clone, Debug, PartialEq)]
pub struct TopologySettings {
    /// Services and calls of one copy.
    pub source: TopologySource,
    /// Copies, each in namespaces of its own.
    pub namespaces: usize,
}

/// Services and calls of one copy.
#[derive(Clone, Debug, PartialEq)]
pub enum TopologySource {
    /// A built-in topology.
    Shape {
        /// The topology.
        shape: &'static Shape,
        /// Values of its parameters.
        parameters: Parameters,
        /// Pods of each service.
        replicas: usize,
    },
    /// The topology of a file, or one that the experiment has itself.
    Graph(Arc<Topology>),
}

impl Default for TopologySettings {
    fn default() -> Self {
        Self { source: TopologySource::shape(&PAIR), namespaces: 1 }
    }
}

impl TopologySource {
    /// A built-in topology with every default.
    pub(crate) fn shape(shape: &'static Shape) -> Self {
        Self::Shape { shape, parameters: Parameters::defaults(shape), replicas: 1 }
    }
}

impl TopologySettings {
    /// The name that users type; of a graph its own name.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.source {
            TopologySource::Shape { shape, .. } => shape.name,
            TopologySource::Graph(graph) => &graph.name,
        }
    }

    /// Whether protocol, payload, delay and error rate of the services are the experiment's.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        matches!(self.source, TopologySource::Shape { shape, .. } if shape.is_plain)
    }

    /// Whether its server stands outside the mesh in modes that lead out of it.
    pub(crate) fn follows_mode(&self) -> bool {
        matches!(&self.source, TopologySource::Shape { shape, .. } if **shape == PAIR)
    }

    /// The topology of a mode. The servers of a pair stand outside the mesh in an egress mode; with a control plane alone there is
    /// the fleet.
    ///
    /// # Errors
    /// The parameters together make something that is too large. The error is a sentence.
    pub fn topology(
        &self,
        mode: Mode,
        protocol: Protocol,
        server: &ServerSettings,
        client_cpu_limit_cores: Option<f64>,
    ) -> Result<Topology, String> {
        if mode == Mode::ControlPlane {
            return Ok(fleet(0));
        }
        match &self.source {
            TopologySource::Shape { shape, parameters, replicas } => {
                let settings = ShapeSettings {
                    parameters,
                    replicas: *replicas,
                    protocol,
                    server,
                    client_cpu_limit_cores,
                    external: mode.is_egress(),
                };
                shape.topology(self.namespaces, &settings)
            }
            TopologySource::Graph(graph) => {
                let mut graph = Topology::clone(graph);
                graph.limit_cpu(server.cpu_limit_cores, client_cpu_limit_cores);
                graph.checked_copies(self.namespaces)
            }
        }
    }
}
