//! The mesh as its proxies report it together: each call once.
//!
//! Several proxies report a call. Rates and sizes are those of the caller's proxy, else of the waypoint, else of the callee's
//! proxy: the caller's counts what the application sent, without retries. Service times are those of the callee's proxy, else of
//! the waypoint, else of the caller's proxy, whose time includes the network and both proxies.

use crate::dialect::Dialect;
use crate::histogram::Histogram;
use crate::labels::service_names;
use crate::parties::{Callee, Name, Party, UNKNOWN};
use crate::telemetry::{Connections, Pair, Reported, Reporter, Requests, Telemetry};
use experiment::Protocol;
use results::units::shortened;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Namespace of hosts outside the cluster.
const EXTERNAL_NAMESPACE: &str = "external";
/// Order of precedence for service times: those of callers include the network.
pub(crate) const NEAREST_TO_CALLEE: [Reporter; 3] =
    [Reporter::Destination, Reporter::Waypoint, Reporter::Source];

/// A workload, or a host outside the cluster.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Protocol of most requests to it.
    pub(crate) protocol: Protocol,
    /// True if a proxy of its own, or its waypoint, reports.
    pub(crate) in_mesh: bool,
}

/// A call between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Edge {
    /// Caller; `None` if no proxy identifies it.
    pub(crate) from: Option<usize>,
    pub(crate) to: usize,
    pub(crate) is_tcp: bool,
    /// True if traces are the only source.
    pub(crate) is_traced: bool,
    /// Requests per second, over TCP connections per second.
    pub(crate) rate: f64,
    /// Number counted in the period.
    pub(crate) count: f64,
    /// Fraction answered with an error.
    pub(crate) errors: f64,
    /// Fraction over gRPC.
    pub(crate) grpc: f64,
    /// Reporter of the rate.
    pub(crate) reporter: Reporter,
    /// Rates by reporter.
    pub(crate) rates: [Option<f64>; 3],
    pub(crate) resets: f64,
    pub(crate) request_bytes: Histogram,
    pub(crate) response_bytes: Histogram,
    /// Duration as the caller sees it, seconds.
    pub(crate) at_caller: Histogram,
    /// Duration as the callee's proxy sees it, seconds, and its reporter.
    pub(crate) at_callee: Histogram,
    pub(crate) time_reporter: Reporter,
}

/// The whole mesh.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Mesh {
    pub(crate) nodes: Vec<Node>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) dialect: Dialect,
    /// Waypoints, whose connections are left out: they report the requests themselves.
    pub(crate) waypoints: Vec<String>,
    /// Requests per second to a destination that no proxy names.
    pub(crate) lost_rate: f64,
    /// Requests per second without a caller that the callers' proxies report, by node.
    pub(crate) recognised: BTreeMap<usize, f64>,
}

impl Mesh {
    pub(crate) fn new(telemetry: &Telemetry) -> Self {
        let waypoints = waypoints(telemetry);
        let behind = workloads_behind_hosts(telemetry);
        let mut merged: BTreeMap<(Option<Party>, Callee), Reported> = BTreeMap::new();
        let (mut lost_rate, mut proxied) = (0.0, HashSet::from_iter(telemetry.members.iter().copied()));
        for (pair, reported) in &telemetry.pairs {
            let callee = match (pair.to.is_known(), behind.get(&pair.host)) {
                (true, _) => Callee::Workload(pair.to),
                (false, Some(party)) => Callee::Workload(*party),
                (false, None) if pair.host != UNKNOWN => Callee::Host(pair.host),
                (false, None) => {
                    lost_rate += best(&reported.requests).map_or(0.0, |(_, requests)| requests.rate);
                    continue;
                }
            };
            proxied.extend(with_proxies(pair, reported));
            let merged = merged.entry((pair.from.is_known().then_some(pair.from), callee)).or_default();
            let has_requests = reported.requests.iter().flatten().any(|requests| requests.rate > 0.0);
            let is_transit = waypoints.contains(&pair.from) || waypoints.contains(&pair.to);
            add(merged, reported, !has_requests && !is_transit);
        }
        let names: Vec<String> = waypoints.iter().map(|party| text(telemetry, *party)).collect();
        let dialect = telemetry.dialect;
        let mut mesh = Self { lost_rate, dialect, ..Self::with(telemetry, merged, &proxied) };
        mesh.waypoints = names;
        mesh.recognise_callers();
        mesh.choose_protocols();
        mesh
    }

    /// Nodes and edges of merged reports, in the order of names.
    fn with(
        telemetry: &Telemetry,
        merged: BTreeMap<(Option<Party>, Callee), Reported>,
        proxied: &HashSet<Party>,
    ) -> Self {
        let named = |callee: Callee| match callee {
            Callee::Workload(party) => (telemetry.text(party.namespace), telemetry.text(party.workload)),
            Callee::Host(host) => host_names(telemetry.text(host)),
        };
        let edges: Vec<((Option<Party>, Callee), Edge)> =
            merged.into_iter().filter_map(|(key, reported)| Some((key, edge(&reported)?))).collect();
        let mut nodes: BTreeMap<(&str, &str), bool> = BTreeMap::new();
        for ((from, callee), _) in &edges {
            let mut add = |callee: Callee| {
                let in_mesh = match callee {
                    Callee::Workload(party) => proxied.contains(&party),
                    Callee::Host(_) => false,
                };
                *nodes.entry(named(callee)).or_default() |= in_mesh;
            };
            add(*callee);
            from.map(Callee::Workload).into_iter().for_each(add);
        }
        let ids: HashMap<(&str, &str), usize> =
            nodes.keys().enumerate().map(|(id, names)| (*names, id)).collect();
        let nodes = nodes.iter().map(|((namespace, name), in_mesh)| Node {
            namespace: (*namespace).to_owned(),
            name: (*name).to_owned(),
            protocol: Protocol::default(),
            in_mesh: *in_mesh,
        });
        let mut edges: Vec<Edge> = edges
            .into_iter()
            .map(|((from, callee), edge)| Edge {
                from: from.map(|party| ids[&named(Callee::Workload(party))]),
                to: ids[&named(callee)],
                ..edge
            })
            .collect();
        let order = |edge: &Edge| (edge.from, edge.to);
        edges.sort_by(|one, other| {
            order(one).cmp(&order(other)).then_with(|| other.rate.total_cmp(&one.rate))
        });
        // A host and a workload may have one name: the busier one stays.
        edges.dedup_by_key(|edge| (edge.from, edge.to));
        Self { nodes: nodes.collect(), edges, ..Self::default() }
    }

    /// A callee's proxy may not recognise a caller whose own proxy reports the call: those requests are counted once.
    fn recognise_callers(&mut self) {
        let mut reported_by_callers: BTreeMap<(usize, bool), f64> = BTreeMap::new();
        for edge in self.edges.iter().filter(|edge| edge.from.is_some()) {
            if edge.rates[Reporter::Destination as usize].is_none() && edge.reporter == Reporter::Source {
                *reported_by_callers.entry((edge.to, edge.is_tcp)).or_default() += edge.rate;
            }
        }
        for edge in self.edges.iter_mut().filter(|edge| edge.from.is_none()) {
            let known = reported_by_callers.get(&(edge.to, edge.is_tcp)).copied().unwrap_or_default();
            let known = known.min(edge.rate);
            if known > 0.0 {
                edge.count *= 1.0 - known / edge.rate;
                edge.rate -= known;
                self.recognised.insert(edge.to, known);
            }
        }
        // What is left below a percent is the difference between two scrapes.
        let recognised = &self.recognised;
        let is_left = |edge: &Edge| {
            let known = recognised.get(&edge.to).filter(|_| edge.from.is_none());
            known.is_none_or(|known| edge.rate > 0.01 * known)
        };
        let (left, counted): (Vec<Edge>, Vec<Edge>) =
            std::mem::take(&mut self.edges).into_iter().partition(is_left);
        self.edges = left;
        // The callee's times are of all callers.
        for own in counted.into_iter().filter(|own| own.at_callee.values() > 0.0) {
            let is_timed = |edge: &&mut Edge| edge.to == own.to && edge.time_reporter == Reporter::Source;
            if let Some(edge) = self.edges.iter_mut().find(is_timed) {
                (edge.at_callee, edge.time_reporter) = (own.at_callee, own.time_reporter);
            }
        }
    }

    pub(crate) fn choose_protocols(&mut self) {
        let mut rates: Vec<(f64, f64, f64)> = vec![(0.0, 0.0, 0.0); self.nodes.len()];
        for edge in &self.edges {
            let (http, grpc, tcp) = &mut rates[edge.to];
            if edge.is_tcp {
                *tcp += edge.rate;
            } else {
                *grpc += edge.rate * edge.grpc;
                *http += edge.rate * (1.0 - edge.grpc);
            }
        }
        for (node, (http, grpc, tcp)) in self.nodes.iter_mut().zip(rates) {
            node.protocol = match (http + grpc > 0.0, grpc > http) {
                (true, true) => Protocol::Grpc,
                (false, _) if tcp > 0.0 => Protocol::Tcp,
                _ => Protocol::Http1,
            };
        }
    }
}

fn text(telemetry: &Telemetry, party: Party) -> String {
    shortened(&format!("{}/{}", telemetry.text(party.namespace), telemetry.text(party.workload)))
}

/// Namespace and name of a host: those of a cluster's Service, or the whole host.
pub(crate) fn host_names(host: &str) -> (&str, &str) {
    service_names(host).unwrap_or((EXTERNAL_NAMESPACE, host))
}

/// Waypoints: ztunnels connect to them for hosts whose requests a waypoint reports for other workloads.
fn waypoints(telemetry: &Telemetry) -> BTreeSet<Party> {
    let mut served: HashMap<Name, HashSet<Party>> = HashMap::new();
    let mut receivers = HashSet::new();
    for (pair, reported) in &telemetry.pairs {
        if reported.requests.iter().flatten().any(|requests| requests.rate > 0.0) {
            receivers.insert(pair.to);
        }
        if reported.requests[Reporter::Waypoint as usize].is_some() {
            served.entry(pair.host).or_default().insert(pair.to);
        }
    }
    // Waypoints of older versions report as the callee's proxies.
    if receivers.is_empty() {
        return BTreeSet::new();
    }
    let is_waypoint = |pair: &Pair| {
        let by_host = served.get(&pair.host).is_some_and(|workloads| !workloads.contains(&pair.to));
        let by_name = telemetry.text(pair.to.workload).contains("waypoint");
        pair.to.is_known() && !receivers.contains(&pair.to) && (by_host || by_name)
    };
    let has_connections = |reported: &Reported| reported.connections.iter().flatten().next().is_some();
    let pairs =
        telemetry.pairs.iter().filter(|(pair, reported)| has_connections(reported) && is_waypoint(pair));
    pairs.map(|(pair, _)| pair.to).collect()
}

/// The workload that gets most requests of each host.
fn workloads_behind_hosts(telemetry: &Telemetry) -> HashMap<Name, Party> {
    let mut rates: HashMap<Name, BTreeMap<Party, f64>> = HashMap::new();
    for (pair, reported) in telemetry.pairs.iter().filter(|(pair, _)| pair.to.is_known()) {
        let requests = best(&reported.requests).map_or(0.0, |(_, requests)| requests.rate);
        *rates.entry(pair.host).or_default().entry(pair.to).or_default() += requests;
    }
    rates.remove(&UNKNOWN);
    let most = |of: BTreeMap<Party, f64>| of.into_iter().max_by(|one, other| one.1.total_cmp(&other.1));
    rates.into_iter().filter_map(|(host, of)| Some((host, most(of)?.0))).collect()
}

/// Workloads of a pair whose proxies report.
fn with_proxies(pair: &Pair, reported: &Reported) -> impl Iterator<Item = Party> + use<> {
    let has = |reporter: Reporter| {
        reported.requests[reporter as usize].is_some() || reported.connections[reporter as usize].is_some()
    };
    let from = has(Reporter::Source).then_some(pair.from);
    let to = (has(Reporter::Destination) || has(Reporter::Waypoint)).then_some(pair.to);
    from.into_iter().chain(to)
}

/// Adds what is reported of a host to what is reported of its workload.
fn add(merged: &mut Reported, reported: &Reported, with_connections: bool) {
    for reporter in Reporter::ALL {
        if let Some(own) = &reported.requests[reporter as usize] {
            let sum = merged.requests_of(reporter);
            sum.rate += own.rate;
            sum.count += own.count;
            sum.error_rate += own.error_rate;
            sum.grpc_rate += own.grpc_rate;
            sum.resets += own.resets;
            sum.duration.merge(&own.duration);
            sum.request_bytes.merge(&own.request_bytes);
            sum.response_bytes.merge(&own.response_bytes);
        }
        if let Some(own) = reported.connections[reporter as usize].filter(|_| with_connections) {
            let sum = merged.connections_of(reporter);
            sum.rate += own.rate;
            sum.count += own.count;
            sum.sent_bytes += own.sent_bytes;
            sum.received_bytes += own.received_bytes;
            sum.resets += own.resets;
        }
    }
}

/// First reporter with a rate, in the order of precedence.
fn best(requests: &[Option<Box<Requests>>; 3]) -> Option<(Reporter, &Requests)> {
    Reporter::ALL.into_iter().find_map(|reporter| {
        let own = requests[reporter as usize].as_deref().filter(|own| own.rate > 0.0)?;
        Some((reporter, own))
    })
}

/// First histogram with values, in an order of reporters.
fn first(
    requests: &[Option<Box<Requests>>; 3],
    order: [Reporter; 3],
    histogram: fn(&Requests) -> &Histogram,
) -> (Reporter, Histogram) {
    let found = order.into_iter().find_map(|reporter| {
        let own = histogram(requests[reporter as usize].as_deref()?);
        (own.values() > 0.0).then(|| (reporter, own.clone()))
    });
    found.unwrap_or((order[0], Histogram::default()))
}

/// Edge of what was reported; its ends are filled in later. `None` without any request or connection.
fn edge(reported: &Reported) -> Option<Edge> {
    let Some((reporter, requests)) = best(&reported.requests) else {
        return connection_edge(&reported.connections);
    };
    let (time_reporter, at_callee) = first(&reported.requests, NEAREST_TO_CALLEE, |one| &one.duration);
    Some(Edge {
        from: None,
        to: 0,
        is_tcp: false,
        is_traced: false,
        rate: requests.rate,
        count: requests.count,
        errors: (requests.error_rate / requests.rate).clamp(0.0, 1.0),
        grpc: (requests.grpc_rate / requests.rate).clamp(0.0, 1.0),
        reporter,
        rates: Reporter::ALL.map(|one| {
            reported.requests[one as usize].as_deref().map(|own| own.rate).filter(|rate| *rate > 0.0)
        }),
        resets: reported.requests.iter().flatten().map(|own| own.resets).sum(),
        request_bytes: first(&reported.requests, Reporter::ALL, |one| &one.request_bytes).1,
        response_bytes: first(&reported.requests, Reporter::ALL, |one| &one.response_bytes).1,
        at_caller: first(&reported.requests, Reporter::ALL, |one| &one.duration).1,
        at_callee,
        time_reporter,
    })
}

/// Edge of connections: each counts as a request, with the mean bytes of a connection.
fn connection_edge(connections: &[Option<Connections>; 3]) -> Option<Edge> {
    let of = |one: Reporter| connections[one as usize];
    let reporter = Reporter::ALL.into_iter().find(|one| of(*one).is_some_and(|own| own.rate > 0.0))?;
    let own = of(reporter)?;
    let mean = |bytes: f64| Histogram { sum: bytes, count: own.count, ..Histogram::default() };
    Some(Edge {
        from: None,
        to: 0,
        is_tcp: true,
        is_traced: false,
        rate: own.rate,
        count: own.count,
        errors: 0.0,
        grpc: 0.0,
        reporter,
        rates: Reporter::ALL.map(|one| of(one).map(|own| own.rate)),
        resets: connections.iter().flatten().map(|own| own.resets).sum(),
        request_bytes: mean(own.received_bytes),
        response_bytes: mean(own.sent_bytes),
        at_caller: Histogram::default(),
        at_callee: Histogram::default(),
        time_reporter: reporter,
    })
}
