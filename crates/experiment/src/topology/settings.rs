//! Topology of an experiment: a built-in one or a graph, and the number of copies.

use super::pair::PAIR;
use super::shapes::{Parameters, Shape, ShapeSettings};
use super::{Topology, fleet};
use crate::protocol::Protocol;
use crate::settings::service::ServerSettings;
use results::Mode;
use std::sync::Arc;

/// Topology and its size.
#[derive(Clone, Debug, PartialEq)]
pub struct TopologySettings {
    /// Services and calls of one copy.
    pub source: TopologySource,
    /// Number of copies, each in its own namespaces.
    pub namespaces: usize,
}

/// Services and calls of one copy.
#[derive(Clone, Debug, PartialEq)]
pub enum TopologySource {
    /// A built-in topology.
    Shape {
        /// The topology.
        shape: &'static Shape,
        /// Values of the parameters.
        parameters: Parameters,
        /// Pods per service.
        replicas: usize,
    },
    /// Topology from a file, or inline in the experiment.
    Graph(Arc<Topology>),
}

impl Default for TopologySettings {
    fn default() -> Self {
        Self { source: TopologySource::shape(&PAIR), namespaces: 1 }
    }
}

impl TopologySource {
    /// Built-in topology with all defaults.
    pub(crate) fn shape(shape: &'static Shape) -> Self {
        Self::Shape { shape, parameters: Parameters::defaults(shape), replicas: 1 }
    }
}

impl TopologySettings {
    /// Name that users type; for a graph, its own name.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.source {
            TopologySource::Shape { shape, .. } => shape.name,
            TopologySource::Graph(graph) => &graph.name,
        }
    }

    /// True if the experiment defines protocol, payload, delay and error rate of the services.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        matches!(self.source, TopologySource::Shape { shape, .. } if shape.is_plain)
    }

    /// True if its server is outside the mesh in egress modes.
    pub(crate) fn follows_mode(&self) -> bool {
        matches!(&self.source, TopologySource::Shape { shape, .. } if **shape == PAIR)
    }

    /// Topology for a mode. The servers of a pair are outside the mesh in egress modes. With only a control
    /// plane, the topology is the fleet.
    ///
    /// # Errors
    /// Returns a sentence if the parameters together make the topology too large.
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
