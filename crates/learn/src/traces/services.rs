//! Services of traces: a mesh of its own if there are no metrics, and the nodes of a mesh that traces name.

use super::Traces;
use super::tally::EdgeTally;
use crate::labels::service_names;
use crate::mesh::{Edge, Mesh, Node, host_names};
use crate::parties::{Callee, Party, UNKNOWN};
use crate::telemetry::{Reporter, Telemetry};
use experiment::Protocol;
use std::collections::{BTreeMap, HashMap};

/// Namespace of services whose spans name none.
const DEFAULT_NAMESPACE: &str = "default";

/// Nodes by their names in traces.
pub(super) struct Directory<'a> {
    nodes: HashMap<(&'a str, &'a str), usize>,
    by_name: HashMap<&'a str, Vec<usize>>,
    /// Versions of a service (`reviews-v1`, `reviews-v2`), by its namespace and name.
    versions: HashMap<(&'a str, &'a str), Vec<usize>>,
}

impl<'a> Directory<'a> {
    pub(super) fn new(names: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut directory = Self { nodes: HashMap::new(), by_name: HashMap::new(), versions: HashMap::new() };
        for (node, (namespace, name)) in names.enumerate() {
            directory.nodes.insert((namespace, name), node);
            directory.by_name.entry(name).or_default().push(node);
            if let Some((service, version)) = name.rsplit_once("-v")
                && version.starts_with(|c: char| c.is_ascii_digit())
            {
                directory.versions.entry((namespace, service)).or_default().push(node);
            }
        }
        directory
    }

    /// Nodes of a service or host: several if it has versions, none if it is not there.
    pub(super) fn find(&self, telemetry: &Telemetry, callee: Callee) -> Vec<usize> {
        match callee {
            Callee::Workload(Party { namespace: UNKNOWN, workload }) => self.named(telemetry.text(workload)),
            Callee::Workload(party) => {
                self.within(telemetry.text(party.namespace), telemetry.text(party.workload))
            }
            Callee::Host(host) => {
                let host = telemetry.text(host);
                let (namespace, name) = host_names(host);
                let found = self.within(namespace, name);
                match host.split_once('.') {
                    _ if !found.is_empty() || service_names(host).is_some() => found,
                    Some((name, namespace)) => self.within(namespace, name),
                    None => self.named(host),
                }
            }
        }
    }

    fn within(&self, namespace: &str, name: &str) -> Vec<usize> {
        match self.nodes.get(&(namespace, name)) {
            Some(node) => vec![*node],
            None => self.versions.get(&(namespace, name)).cloned().unwrap_or_default(),
        }
    }

    /// The only node of a name, in any namespace.
    fn named(&self, name: &str) -> Vec<usize> {
        let nodes = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        if nodes.len() == 1 { nodes.to_vec() } else { self.within(DEFAULT_NAMESPACE, name) }
    }
}

/// Mesh of traces alone. Rates are those of the traced requests over the share that is traced.
pub(crate) fn mesh_of(telemetry: &Telemetry, traces: &Traces, sampling: f64) -> Mesh {
    let names = &traces.tally.names;
    let mut services: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    let parties = traces.tally.endpoints.keys().map(|(party, _)| *party);
    let of_edges = traces.tally.edges.keys().flat_map(|(from, to)| from.iter().chain([to]));
    let of_edges = of_edges.filter_map(|end| match end {
        Callee::Workload(party) => Some(*party),
        Callee::Host(_) => None,
    });
    for party in parties.chain(of_edges).map(|party| names.party(party)).filter(|party| party.is_known()) {
        let known = party.namespace != UNKNOWN;
        let namespace = if known { telemetry.text(party.namespace) } else { DEFAULT_NAMESPACE };
        services.insert((namespace, telemetry.text(party.workload)), true);
    }
    let inside: Vec<(&str, &str)> = services.keys().copied().collect();
    let directory = Directory::new(inside.iter().copied());
    for to in traces.tally.edges.keys().map(|(_, to)| *to) {
        if let Callee::Host(host) = to
            && directory.find(telemetry, to).is_empty()
        {
            services.entry(host_names(telemetry.text(host))).or_insert(false);
        }
    }
    let nodes: Vec<Node> = services
        .iter()
        .map(|((namespace, name), in_mesh)| Node {
            namespace: (*namespace).to_owned(),
            name: (*name).to_owned(),
            protocol: Protocol::default(),
            in_mesh: *in_mesh,
        })
        .collect();
    let directory = Directory::new(services.keys().copied());
    let mut merged: BTreeMap<(Option<usize>, usize), EdgeTally> = BTreeMap::new();
    for ((from, to), tally) in &traces.tally.edges {
        let find = |end: Callee| directory.find(telemetry, renamed(traces, end)).first().copied();
        if let Some(to) = find(*to) {
            merged.entry((from.and_then(find), to)).or_default().merge(tally);
        }
    }
    let edges =
        merged.into_iter().map(|((from, to), tally)| edge(from, to, &tally, telemetry.period_s * sampling));
    let mut mesh = Mesh { edges: edges.collect(), nodes, ..Mesh::default() };
    mesh.choose_protocols();
    mesh
}

/// End of a call under the name that all spans of a workload share.
pub(super) fn renamed(traces: &Traces, end: Callee) -> Callee {
    match end {
        Callee::Workload(party) => Callee::Workload(traces.tally.names.party(party)),
        host @ Callee::Host(_) => host,
    }
}

fn edge(from: Option<usize>, to: usize, tally: &EdgeTally, seconds: f64) -> Edge {
    let requests = tally.requests as f64;
    let (at_caller, at_callee) = (tally.at_caller.histogram(), tally.at_callee.histogram());
    let is_served = at_callee.values() > 0.0;
    Edge {
        from,
        to,
        is_tcp: false,
        is_traced: true,
        rate: requests / seconds.max(1e-9),
        count: requests,
        errors: tally.errors as f64 / requests,
        grpc: tally.grpc as f64 / requests,
        reporter: Reporter::Source,
        rates: [None; 3],
        resets: 0.0,
        request_bytes: tally.request_bytes.histogram(),
        response_bytes: tally.response_bytes.histogram(),
        at_callee: if is_served { at_callee } else { at_caller.clone() },
        time_reporter: if is_served { Reporter::Destination } else { Reporter::Source },
        at_caller,
    }
}
