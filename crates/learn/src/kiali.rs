//! Kiali's graph (`GET /api/namespaces/graph`, kiali.io; `graph/config/common` of its sources): nodes and edges as JSON, with the
//! rates of each edge's protocol, its responses by status, and one response time.
//!
//! Kiali may inject nodes of Services and of operations between a caller and a workload. They are no ends of a call: its requests go
//! on in proportion to the edges that leave them. What the graph cannot say is in [`Dialect::limits`].

use crate::dialect::Dialect;
use crate::parties::{MAX_PAIRS, Name, Party, TooMuch, UNKNOWN};
use crate::telemetry::{Pair, Reporter, Telemetry};
use crate::{NO_HOSTS, checks, is_error_status, is_grpc_error, one_line};
use results::units::{shortened, shortened_to};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;

/// Maximum size of a graph, bytes: 20 000 edges have 20 MB.
const MAX_BYTES: u64 = 64 << 20;
/// Injected nodes in a row that requests pass.
const MAX_INJECTED: usize = 4;
/// Connections per second of a call over TCP, of which the graph has only bytes.
const ASSUMED_CONNECTIONS: f64 = 1.0;
/// Maximum length of what an error says of edges that cannot be used, characters.
const MAX_UNUSABLE_CHARACTERS: usize = 200;
/// Mark of UTF-8 that some tools write before a text.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
/// Names of the graph's parts as sources.
const NODES: &str = "nodes of Kiali's graph";
pub(crate) const EDGES: &str = "edges of Kiali's graph";

/// A graph that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum KialiError {
    /// Not the JSON of a graph.
    #[error("not a graph of Kiali: {0}")]
    Json(String),
    /// Kiali rejected the request.
    #[error("Kiali answered with an error: {0}")]
    Rejected(String),
    /// An edge between nodes that are not there.
    #[error("not a graph of Kiali: the edge `{edge}` has no node `{node}`, which is one of its ends")]
    NoNode {
        /// Id of the edge, or its ends if it has none.
        edge: String,
        /// Id of the node that is not there.
        node: String,
    },
    /// Only edges that cannot be used.
    #[error("the graph has no request and no connection that can be used: {0}")]
    Unusable(String),
    /// No usable period.
    #[error("the graph has no period: its `duration` is {0}")]
    Period(f64),
    /// Larger than a graph is.
    #[error("the graph has more than 64 MiB")]
    TooLarge,
    /// More than a mesh has.
    #[error(transparent)]
    TooMuch(#[from] TooMuch),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object with `elements`")]
struct Answer {
    error: Option<String>,
    timestamp: Option<f64>,
    /// Seconds.
    duration: Option<f64>,
    graph_type: Option<String>,
    elements: Option<Elements>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `nodes` and `edges`")]
struct Elements {
    nodes: Vec<Wrapper<Node>>,
    edges: Vec<Wrapper<Edge>>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `data`")]
struct Wrapper<T> {
    data: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object with `id` and `nodeType`")]
struct Node {
    id: String,
    node_type: String,
    namespace: Option<String>,
    workload: Option<String>,
    app: Option<String>,
    service: Option<String>,
    is_waypoint: Option<bool>,
    is_out_of_mesh: Option<bool>,
    /// Older versions' name of `isOutOfMesh`.
    #[serde(rename = "hasMissingSC")]
    has_missing_sidecar: Option<bool>,
    is_service_entry: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object with `source` and `target`")]
struct Edge {
    id: Option<String>,
    source: String,
    target: String,
    traffic: Option<Traffic>,
    /// Milliseconds.
    response_time: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `protocol` and `rates`")]
struct Traffic {
    protocol: Option<String>,
    rates: Option<BTreeMap<String, String>>,
    /// By status.
    responses: Option<BTreeMap<String, Response>>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `flags`")]
struct Response {
    /// Percent of the requests by Envoy's response flags.
    flags: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Protocol {
    Http,
    Grpc,
    Tcp,
}

/// Traffic of an edge.
#[derive(Clone, Copy)]
struct Call {
    protocol: Protocol,
    /// Requests per second, over TCP bytes per second.
    rate: f64,
    /// Fraction of the requests.
    errors: f64,
    time_s: Option<f64>,
}

/// Reads a graph into telemetry.
///
/// # Errors
/// Returns an error if the input is damaged or no graph, or has more than a mesh has.
pub fn read(telemetry: &mut Telemetry, mut input: impl Read) -> Result<(), KialiError> {
    let mut start = Vec::new();
    let begun = input.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut start);
    begun.map_err(|error| KialiError::Json(shortened(&error.to_string())))?;
    if start == BYTE_ORDER_MARK {
        start.clear();
    }
    let mut input = start.as_slice().chain(input.take(MAX_BYTES));
    let answer: Result<Answer, serde_json::Error> = serde_json::from_reader(&mut input);
    let answer = match answer {
        Ok(answer) => answer,
        Err(_) if input.get_ref().1.limit() == 0 => return Err(KialiError::TooLarge),
        Err(error) => return Err(KialiError::Json(one_line(&error))),
    };
    if let Some(error) = answer.error {
        return Err(KialiError::Rejected(shortened(&error)));
    }
    let Some(Elements { nodes, edges }) = answer.elements else {
        return Err(KialiError::Json("it has no `elements`".to_owned()));
    };
    let period_s = answer.duration.unwrap_or(0.0);
    if !(period_s > 0.0 && period_s.is_finite()) {
        return Err(KialiError::Period(period_s));
    }
    telemetry.period_s = period_s;
    telemetry.at = answer.timestamp.filter(|at| is_usable(*at)).unwrap_or(0.0);
    telemetry.rows.extend([(NODES, nodes.len() as u64), (EDGES, edges.len() as u64)]);
    let nodes = nodes.into_iter().map(|node| node.data).collect();
    let is_of_services = answer.graph_type.as_deref() == Some("service");
    Graph::new(nodes, &edges, is_of_services, telemetry)?.add_to(telemetry)?;
    let unusable = checks::unusable(telemetry);
    if telemetry.pairs.is_empty() && !unusable.is_empty() {
        return Err(KialiError::Unusable(shortened_to(&unusable.join("; "), MAX_UNUSABLE_CHARACTERS)));
    }
    telemetry.choose_dialect();
    Ok(())
}

/// Nodes and their edges.
struct Graph {
    nodes: Vec<Node>,
    /// Of each node: target and traffic.
    out: Vec<Vec<(usize, Call)>>,
    has_callers: Vec<bool>,
    /// True if Services stand for their workloads.
    is_of_services: bool,
}

impl Graph {
    fn new(
        nodes: Vec<Node>,
        edges: &[Wrapper<Edge>],
        is_of_services: bool,
        telemetry: &mut Telemetry,
    ) -> Result<Self, KialiError> {
        let ids: HashMap<&str, usize> =
            nodes.iter().enumerate().map(|(index, node)| (node.id.as_str(), index)).collect();
        let mut out = vec![Vec::new(); nodes.len()];
        let mut has_callers = vec![false; nodes.len()];
        for Wrapper { data: edge } in edges {
            let node = |id: &String| {
                let no_node = || KialiError::NoNode { edge: edge.name(), node: shortened(id) };
                ids.get(id.as_str()).copied().ok_or_else(no_node)
            };
            let (source, target) = (node(&edge.source)?, node(&edge.target)?);
            if let Some(call) = call(edge, telemetry) {
                out[source].push((target, call));
                has_callers[target] = true;
            }
        }
        Ok(Self { nodes, out, has_callers, is_of_services })
    }

    fn add_to(&self, telemetry: &mut Telemetry) -> Result<(), KialiError> {
        let mut pieces = 0;
        for (source, node) in self.nodes.iter().enumerate() {
            // Waypoints report the requests that their connections carry; edges of injected nodes are parts of their callers'.
            if node.is_waypoint == Some(true) || (self.is_injected(source) && self.has_callers[source]) {
                continue;
            }
            let mut calls = Vec::new();
            for (target, call) in &self.out[source] {
                self.follow(*target, *call, 0, &mut calls);
                if pieces + calls.len() > MAX_PAIRS {
                    return Err(TooMuch::Pairs.into());
                }
            }
            pieces += calls.len();
            let from =
                if self.is_injected(source) { Party::default() } else { self.party(source, telemetry)? };
            for (target, call) in calls {
                self.add(telemetry, from, target, call)?;
            }
        }
        Ok(())
    }

    /// True for a node between a caller and a workload.
    fn is_injected(&self, node: usize) -> bool {
        let is_service = !self.is_of_services && self.nodes[node].node_type == "service";
        (is_service || self.nodes[node].node_type == "aggregate") && !self.out[node].is_empty()
    }

    /// Workloads that a call reaches, each with its part of the traffic.
    fn follow(&self, target: usize, call: Call, injected: usize, reached: &mut Vec<(usize, Call)>) {
        let onward = || self.out[target].iter().filter(|(_, next)| next.protocol == call.protocol);
        let total: f64 = onward().map(|(_, next)| next.rate).sum();
        let passes = self.is_injected(target) && total > 0.0 && injected < MAX_INJECTED;
        if !passes {
            reached.push((target, call));
            return;
        }
        for (next, part) in onward() {
            if reached.len() > MAX_PAIRS {
                return;
            }
            let time_s = call.time_s.or(part.time_s);
            let call = Call { rate: call.rate * part.rate / total, time_s, ..call };
            self.follow(*next, call, injected + 1, reached);
        }
    }

    /// Workload of a node, an app of its versions, or the Service of a graph of Services.
    fn party(&self, node: usize, telemetry: &mut Telemetry) -> Result<Party, TooMuch> {
        let node = &self.nodes[node];
        let service = node.service.as_ref().filter(|_| self.is_of_services);
        let workload = node.workload.as_ref().or(node.app.as_ref()).or(service);
        let workload = telemetry.name(workload.map(String::as_str))?;
        if workload == UNKNOWN {
            return Ok(Party::default());
        }
        let party = Party { namespace: telemetry.name(node.namespace.as_deref())?, workload };
        if node.is_out_of_mesh.or(node.has_missing_sidecar) != Some(true) && node.is_service_entry.is_none() {
            telemetry.members.insert(party);
        }
        Ok(party)
    }

    /// Host of a node that is no workload: a Service without one, or a host outside of the cluster.
    fn host(&self, node: usize, telemetry: &mut Telemetry) -> Result<Name, TooMuch> {
        let node = &self.nodes[node];
        let service = node.service.as_deref().filter(|service| !NO_HOSTS.contains(service));
        let namespace = node.namespace.as_deref().filter(|namespace| !["", "unknown"].contains(namespace));
        match (service, namespace) {
            (Some(service), Some(namespace)) if node.is_service_entry.is_none() && !service.contains('.') => {
                telemetry.name(Some(&format!("{service}.{namespace}.svc.cluster.local")))
            }
            (service, _) => telemetry.name(service),
        }
    }

    fn add(
        &self,
        telemetry: &mut Telemetry,
        from: Party,
        target: usize,
        call: Call,
    ) -> Result<(), KialiError> {
        if self.nodes[target].is_waypoint == Some(true) {
            return Ok(());
        }
        let to = self.party(target, telemetry)?;
        let host = if to.is_known() { UNKNOWN } else { self.host(target, telemetry)? };
        let is_of_caller = telemetry.members.contains(&from);
        let reporter = if is_of_caller { Reporter::Source } else { Reporter::Destination };
        let period_s = telemetry.period_s;
        let reported = telemetry.pair(Pair { from, to, host, dialect: Dialect::Kiali })?;
        let count = call.rate * period_s;
        if call.protocol == Protocol::Tcp {
            let connections = reported.connections_of(reporter);
            connections.rate = ASSUMED_CONNECTIONS;
            connections.count = ASSUMED_CONNECTIONS * period_s;
            connections.sent_bytes += count;
            return Ok(());
        }
        let requests = reported.requests_of(reporter);
        requests.rate += call.rate;
        requests.count += count;
        requests.error_rate += call.errors * call.rate;
        requests.grpc_rate += if call.protocol == Protocol::Grpc { call.rate } else { 0.0 };
        if let Some(time_s) = call.time_s {
            requests.duration.sum += time_s * count;
            requests.duration.count += count;
        }
        Ok(())
    }
}

fn is_usable(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value| is_usable(*value))
}

impl Edge {
    /// Id, or the ends.
    fn name(&self) -> String {
        let Self { id, source, target, .. } = self;
        id.as_deref().map_or_else(|| shortened(&format!("{source} → {target}")), shortened)
    }
}

/// Traffic of an edge; `None` for one that is idle, and for one without a usable rate. What cannot be used is counted.
fn call(edge: &Edge, telemetry: &mut Telemetry) -> Option<Call> {
    let traffic = edge.traffic.as_ref()?;
    let rates = traffic.rates.as_ref()?;
    let name = traffic.protocol.as_deref().unwrap_or_default();
    let protocol = match name {
        "http" => Protocol::Http,
        "grpc" => Protocol::Grpc,
        "tcp" => Protocol::Tcp,
        _ => {
            let is_idle = rates.values().all(|text| number(text) == Some(0.0));
            if !is_idle {
                telemetry.add_unknown_protocol(name);
            }
            return None;
        }
    };
    let mut is_unusable = !rates.is_empty() && !rates.contains_key(name);
    let mut rate = |name: &str| {
        let text = rates.get(name)?;
        let rate = number(text);
        is_unusable |= rate.is_none();
        rate
    };
    let total = rate(name).unwrap_or_default();
    let mut of = |names: [&str; 2]| names.into_iter().filter_map(&mut rate).sum::<f64>() / total;
    let errors = match protocol {
        Protocol::Http => of(["http5xx", "httpNoResponse"]),
        // Kiali's rate has statuses that are errors of the client.
        Protocol::Grpc => errors_of_grpc(traffic).unwrap_or_else(|| of(["grpcErr", "grpcNoResponse"])),
        Protocol::Tcp => 0.0,
    };
    telemetry.unusable_rows += u64::from(is_unusable);
    if total <= 0.0 {
        return None;
    }
    // Below half a millisecond it is 0.
    let time_ms = edge.response_time.as_deref().and_then(number).filter(|time| *time > 0.0);
    let time_s = time_ms.map(|time| time / 1e3);
    Some(Call { protocol, rate: total, errors: errors.clamp(0.0, 1.0), time_s })
}

/// Fraction of the responses that are errors of the server, or none.
fn errors_of_grpc(traffic: &Traffic) -> Option<f64> {
    let is_error = |status: &str| match status.parse::<u8>() {
        Ok(grpc) if status.len() < 3 => is_grpc_error(grpc),
        _ => status == "-" || is_error_status(status),
    };
    let responses = traffic.responses.as_ref()?;
    let errors = responses.iter().filter(|(status, _)| is_error(status));
    let percent = errors.filter_map(|(_, response)| response.flags.as_ref());
    let percent: f64 = percent.flat_map(BTreeMap::values).filter_map(|text| number(text)).sum();
    Some(percent / 100.0)
}
