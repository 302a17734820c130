//! A topology before it is read back: workloads with scripts, clients with drivers.

use crate::drivers::{self, Driven, Reason};
use crate::mesh::{Edge, Mesh};
use crate::model::{LearnError, Options};
use crate::names::Labels;
use crate::objects::{Objects, Pods};
use crate::provenance::{DriverRecord, shown};
use crate::scripts::{Flows, Script, ScriptCall, calls_of, script};
use crate::traces::Traced;
use experiment::Protocol;
use experiment::topology::file::{MAX_DRIVERS, MAX_FILE_BYTES, MAX_REPLICAS, read};
use experiment::topology::script::ScriptedService;
use experiment::topology::{DriverPlacement, Resources, Runs, Topology, Workload};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Client in which callers outside the mesh are.
pub(crate) const OUTSIDE: &str = "outside";
/// Maximum number of drivers in the comment of a file.
const MAX_SHOWN_DRIVERS: usize = 20;

/// A topology before it is read back.
pub(crate) struct Draft<'a> {
    pub(crate) mesh: &'a Mesh,
    pub(crate) flows: &'a Flows,
    pub(crate) traced: &'a Traced,
    pub(crate) objects: &'a Objects,
    pub(crate) options: &'a Options,
    pub(crate) driven: Driven,
    pub(crate) labels: Labels,
    /// Pods of each node that has an object.
    pub(crate) pods: Vec<Option<Pods>>,
    /// Calls of each node.
    pub(crate) calls: Vec<Vec<ScriptCall>>,
    /// Scripts of nodes that receive requests.
    pub(crate) scripts: BTreeMap<usize, Script>,
    /// Edges of drivers, ascending, and those beyond the limit.
    pub(crate) drivers: Vec<usize>,
    pub(crate) left_out: Vec<usize>,
    /// In the order of `drivers`.
    pub(crate) records: Vec<DriverRecord>,
    /// Qualified names of the drivers' clients, in the same order.
    pub(crate) clients: Vec<String>,
    pub(crate) topology: Topology,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(
        mesh: &'a Mesh,
        (flows, traced): (&'a Flows, &'a Traced),
        driven: Driven,
        (objects, options): (&'a Objects, &'a Options),
    ) -> Self {
        let (drivers, left_out) = drivers::limited(mesh, &driven);
        let calls: Vec<Vec<ScriptCall>> = (0..mesh.nodes.len())
            .map(|node| calls_of(mesh, (flows, traced), node, &|edge| driven.contains_key(&edge)))
            .collect();
        let scripts = (0..mesh.nodes.len())
            .filter(|node| flows.arriving[*node] > 0.0)
            .map(|node| (node, script(mesh, (flows, traced), node, &calls[node])))
            .collect();
        let mut draft = Self {
            mesh,
            flows,
            traced,
            objects,
            options,
            driven,
            labels: Labels::new(&mesh.nodes),
            pods: mesh.nodes.iter().map(|node| objects.pods(&node.namespace, &node.name)).collect(),
            calls,
            scripts,
            drivers,
            left_out,
            records: Vec::new(),
            clients: Vec::new(),
            topology: Topology { name: options.name.clone(), ..Topology::default() },
        };
        draft.add_workloads();
        draft.add_drivers();
        draft
    }

    fn add_workloads(&mut self) {
        for (id, node) in self.mesh.nodes.iter().enumerate() {
            let (namespace, name) = self.labels.labels[id].clone();
            let runs = match self.scripts.get(&id) {
                Some(script) => Runs::Scripted(ScriptedService { endpoints: script.endpoints.clone() }),
                None => Runs::Drivers,
            };
            let pods = self.pods[id].clone().unwrap_or_else(Pods::one);
            // The replicas of a client are generators.
            let replicas = if runs == Runs::Drivers { 1 } else { scaled(pods.replicas, self.options.scale) };
            let is_http2 = pods.is_http2 && node.protocol == Protocol::Http1;
            self.topology.workloads.push(Workload {
                name,
                namespace,
                replicas,
                protocol: if is_http2 { Protocol::Http2 } else { node.protocol },
                resources: pods.resources,
                runs,
                in_mesh: node.in_mesh,
            });
        }
    }

    fn add_drivers(&mut self) {
        let mut outside: BTreeMap<String, usize> = BTreeMap::new();
        let mut senders: BTreeMap<usize, usize> = BTreeMap::new();
        // One for each edge, and for endpoints of their own as many as a file may have.
        let mut further = MAX_DRIVERS - self.drivers.len();
        let edges: Vec<(usize, &Edge)> =
            self.drivers.iter().map(|edge| (*edge, &self.mesh.edges[*edge])).collect();
        for (index, edge) in edges {
            let target = &self.labels.labels[edge.to].clone();
            let (at, name) = match (self.driven[&index], edge.from) {
                (Reason::Sender, Some(from)) => {
                    let own = &self.labels.labels[from].1;
                    let is_only = self.flows.out_of[from].len() == 1;
                    (from, if is_only { own.clone() } else { format!("{own}-{}", target.1) })
                }
                (_, Some(from)) => {
                    let (namespace, own) = self.labels.labels[from].clone();
                    let name = format!("{own}-sender");
                    let at = match senders.get(&from) {
                        Some(at) => *at,
                        None => self.add_client(&namespace, &name, edge.to, self.mesh.nodes[from].in_mesh),
                    };
                    senders.insert(from, at);
                    (at, format!("{own}-sender-{}", target.1))
                }
                (_, None) => {
                    let at = match outside.get(&target.0) {
                        Some(at) => *at,
                        None => self.add_client(&target.0, OUTSIDE, edge.to, false),
                    };
                    outside.insert(target.0.clone(), at);
                    (at, format!("{OUTSIDE}-{}", target.1))
                }
            };
            self.clients.push(self.topology.workloads[at].qualified_name());
            let mut shares = self.traced.shares(index, edge.to);
            shares.truncate(1 + further);
            further -= shares.len() - 1;
            let all: f64 = shares.iter().map(|(_, share)| share).sum();
            for (endpoint, share) in &shares {
                let name = if shares.len() > 1 { format!("{name}{endpoint}") } else { name.clone() };
                // Names of drivers are distinct in the whole topology.
                let (_, name) = self.labels.unique("drivers of the topology", &name);
                self.records.push(DriverRecord {
                    name: name.clone(),
                    target: self.labels.qualified(edge.to),
                    reason: reason(self.driven[&index]).to_owned(),
                    rate: edge.rate * self.options.scale * share / all,
                });
                let endpoint = endpoint.clone();
                self.topology.drivers.push(DriverPlacement { name, at, target: edge.to, endpoint });
            }
        }
    }

    fn add_client(&mut self, namespace: &str, name: &str, target: usize, in_mesh: bool) -> usize {
        let (namespace, name) = self.labels.unique(namespace, name);
        self.topology.workloads.push(Workload {
            name,
            namespace,
            replicas: 1,
            protocol: self.mesh.nodes[target].protocol,
            resources: Resources::default(),
            runs: Runs::Drivers,
            in_mesh,
        });
        self.topology.workloads.len() - 1
    }

    /// Reads the topology back, as a command would.
    pub(crate) fn read(&self) -> Result<Topology, LearnError> {
        let text = self.header() + &self.topology.to_yaml();
        if text.len() > MAX_FILE_BYTES {
            let calls = self.calls.iter().map(Vec::len).sum();
            return Err(LearnError::TooLarge { calls, bytes: text.len() });
        }
        read(&text, "learned").map_err(|error| LearnError::Invalid(error.to_string()))
    }

    /// Comment at the top of the file. It has names of drivers, which are labels, and numbers.
    pub(crate) fn header(&self) -> String {
        let mut text = String::from("# Learned from a mesh's telemetry. Requests/s of its drivers:\n");
        for driver in self.records.iter().take(MAX_SHOWN_DRIVERS) {
            let _ = writeln!(text, "#   {}: {}", driver.name, shown(driver.rate));
        }
        if self.records.len() > MAX_SHOWN_DRIVERS {
            let _ = writeln!(text, "#   and {} more", self.records.len() - MAX_SHOWN_DRIVERS);
        }
        text
    }
}

/// Number of pods at a scale.
pub(crate) fn scaled(replicas: usize, scale: f64) -> usize {
    ((replicas as f64 * scale).round() as usize).clamp(1, MAX_REPLICAS)
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Outside => "callers that no proxy identifies",
        Reason::Sender => "a workload that receives no requests",
        Reason::OnItsOwn => "calls that do not belong to requests",
        Reason::Circle => "calls that close a circle",
    }
}
