//! Figures of traces that scripts need, by the nodes and edges of a mesh: that of the metrics, or one of traces alone.

use super::Traces;
use super::order::{Order, arrange};
use super::relations::{MAX_ORDERED, Relation};
use super::services::{Directory, renamed};
use super::tally::{CallTally, EdgeTally, EndpointTally, Key, SlotTally, Values};
use crate::histogram::Histogram;
use crate::mesh::Mesh;
use crate::parties::{Callee, Name};
use crate::scripts::Flows;
use crate::telemetry::Telemetry;
use experiment::Protocol;
use experiment::topology::file::{MAX_PATH_LENGTH, fits_path};
use experiment::topology::script::DEFAULT_ENDPOINT;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum number of endpoints of a service, and the least share of its requests that one has; the others are one.
const MAX_ENDPOINTS: usize = 20;
const MIN_SHARE: f64 = 0.01;
/// Endpoint of the requests to all other endpoints.
const OTHERS: &str = "/other";
/// Share of the requests with two calls in which they overlap if they are in parallel: calls in sequence never do.
const PARALLEL: f64 = 0.05;

/// Traces by node and edge.
#[derive(Debug, Default)]
pub(crate) struct Traced {
    /// By node.
    pub(crate) services: BTreeMap<usize, TracedService>,
    /// By edge.
    pub(crate) edges: BTreeMap<usize, TracedEdge>,
    /// Ends of calls that the mesh does not have: in traces, but in no metric.
    pub(crate) unmeasured: BTreeSet<(usize, usize)>,
    /// Services of traces that are no node.
    pub(crate) unmatched: BTreeSet<String>,
    /// Path of each name of an endpoint, by node.
    paths: HashMap<usize, HashMap<Name, String>>,
    /// Requests of each edge by path.
    shares: HashMap<usize, BTreeMap<String, f64>>,
}

/// A service in traces.
#[derive(Debug, Default)]
pub(crate) struct TracedService {
    /// Seconds.
    pub(crate) own: Histogram,
    /// The busiest first.
    pub(crate) endpoints: Vec<TracedEndpoint>,
    /// Number of endpoints that are one.
    pub(crate) others: usize,
    /// Calls per request, retries included, by edges: several if the callee has versions.
    per_request: BTreeMap<Vec<usize>, f64>,
}

/// An endpoint in traces.
#[derive(Debug)]
pub(crate) struct TracedEndpoint {
    pub(crate) path: String,
    pub(crate) requests: f64,
    pub(crate) own: Histogram,
    pub(crate) slots: Vec<Slot>,
    /// Order of the slots, by their index.
    pub(crate) order: Order,
}

/// A call of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slot {
    /// Edges to the callee: one, or one for each of its versions.
    pub(crate) edges: Vec<usize>,
    /// Endpoint of the callee.
    pub(crate) path: String,
    /// Calls per request: up to 1, and more for the last of many.
    pub(crate) probability: f64,
    /// True for the last call of the same endpoint.
    pub(crate) is_last: bool,
}

/// A call in traces.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TracedEdge {
    /// Calls per request to the caller, retries included, and the number of those requests.
    pub(crate) per_request: f64,
    pub(crate) requests: f64,
    /// Calls that repeat a failed one, and the most for one.
    pub(crate) retries: u64,
    pub(crate) most_retries: u32,
    pub(crate) calls: u64,
    pub(crate) skewed: u64,
    pub(crate) largest_skew_s: f64,
}

/// Callee's nodes and endpoint.
type Target = (Vec<usize>, String);
/// The first call of a target, the second, …, by the target's number.
type Place = (usize, u8);

/// Tallies of an endpoint's names together.
#[derive(Default)]
struct Merged {
    requests: u64,
    own: Values,
    /// Number of each target.
    targets: BTreeMap<Target, usize>,
    /// By number of the target.
    calls: Vec<CallTally>,
    /// By places, the lower first.
    relations: HashMap<(Place, Place), Relation>,
    /// True if there are calls that were not compared.
    is_partial: bool,
}

impl TracedService {
    pub(crate) fn per_request(&self, edges: &[usize]) -> f64 {
        self.per_request.get(edges).copied().unwrap_or_default()
    }

    /// True if the order of a call is known.
    pub(crate) fn covers(&self, edge: usize) -> bool {
        self.endpoints.iter().flat_map(|endpoint| &endpoint.slots).any(|slot| slot.edges.contains(&edge))
    }
}

impl Traced {
    pub(crate) fn new(telemetry: &Telemetry, mesh: &Mesh, flows: &Flows) -> Self {
        let Some(traces) = telemetry.traces.as_deref() else { return Self::default() };
        let names = mesh.nodes.iter().map(|node| (node.namespace.as_str(), node.name.as_str()));
        let directory = Directory::new(names);
        let find = |end: Callee| directory.find(telemetry, renamed(traces, end));
        let mut traced = Self::default();
        let mut tallies: BTreeMap<usize, Vec<(Name, &EndpointTally)>> = BTreeMap::new();
        for ((party, name), tally) in &traces.tally.endpoints {
            let nodes = find(Callee::Workload(*party));
            if nodes.is_empty() {
                traced.unmatched.insert(telemetry.text(party.workload).to_owned());
            }
            for node in nodes.into_iter().filter(|node| mesh.nodes[*node].protocol != Protocol::Tcp) {
                tallies.entry(node).or_default().push((*name, tally));
            }
        }
        let mut kept: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for (node, tallies) in &tallies {
            let protocol = mesh.nodes[*node].protocol;
            let requests = tallies.iter().map(|(name, tally)| (*name, tally.requests));
            let texts = requests.map(|(name, requests)| {
                (name, path(telemetry.names.endpoint_text(name), protocol), requests)
            });
            let (paths, others) = paths(&texts.collect::<Vec<_>>());
            kept.insert(*node, paths.0);
            traced.paths.insert(*node, paths.1);
            traced.services.entry(*node).or_default().others = others;
        }
        let edges: HashMap<(usize, usize), usize> = mesh
            .edges
            .iter()
            .enumerate()
            .filter_map(|(index, edge)| Some(((edge.from?, edge.to), index)))
            .collect();
        traced.add_edges(traces, mesh, &find);
        for (node, tallies) in &tallies {
            let target = |(callee, name): Key| {
                let nodes = find(callee);
                let first = *nodes.first()?;
                let own = traced.paths.get(&first).and_then(|paths| paths.get(&name)).cloned();
                let own = own.or_else(|| kept.get(&first)?.first().cloned());
                Some((nodes, own.unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned())))
            };
            let mut merged: BTreeMap<String, Merged> = BTreeMap::new();
            for (name, tally) in tallies {
                merged.entry(traced.paths[node][name].clone()).or_default().add(tally, &target);
            }
            let weights = traced.weights(mesh, &flows.into[*node], &merged);
            Service { node: *node, edges: &edges, merged, weights }.add(&kept[node], &mut traced);
        }
        traced
    }

    /// Path of a node's busiest endpoint.
    pub(crate) fn busiest(&self, node: usize) -> String {
        let endpoint = self.services.get(&node).and_then(|service| service.endpoints.first());
        endpoint.map_or_else(|| DEFAULT_ENDPOINT.to_owned(), |endpoint| endpoint.path.clone())
    }

    /// Requests to each endpoint of a node at the rates of the calls to it, whose shares alone are those of the sample.
    fn weights(
        &self,
        mesh: &Mesh,
        into: &[usize],
        merged: &BTreeMap<String, Merged>,
    ) -> BTreeMap<String, f64> {
        let mut weights: BTreeMap<String, f64> = BTreeMap::new();
        for edge in into {
            let shares = self.shares.get(edge).into_iter().flatten();
            let all: f64 = shares.clone().map(|(_, share)| share).sum();
            for (path, share) in shares {
                *weights.entry(path.clone()).or_default() += mesh.edges[*edge].rate * share / all;
            }
        }
        if weights.is_empty() {
            weights = merged.iter().map(|(path, merged)| (path.clone(), merged.requests as f64)).collect();
        }
        weights
    }

    fn add_edges(&mut self, traces: &Traces, mesh: &Mesh, find: &dyn Fn(Callee) -> Vec<usize>) {
        let mut tallies: BTreeMap<(Option<usize>, usize), EdgeTally> = BTreeMap::new();
        for ((from, to), tally) in &traces.tally.edges {
            let froms: Vec<Option<usize>> = match from {
                Some(from) => find(*from).into_iter().map(Some).collect(),
                None => vec![None],
            };
            let tos = find(*to);
            for (from, to) in froms.iter().flat_map(|from| tos.iter().map(|to| (*from, *to))) {
                tallies.entry((from, to)).or_default().merge(tally);
            }
        }
        for (index, edge) in mesh.edges.iter().enumerate() {
            let Some(tally) = tallies.get(&(edge.from, edge.to)) else { continue };
            let own = self.edges.entry(index).or_default();
            own.calls = tally.requests;
            own.skewed = tally.skewed;
            own.largest_skew_s = tally.largest_skew as f64 / 1e9;
            let mut shares: BTreeMap<String, f64> = BTreeMap::new();
            let paths = self.paths.get(&edge.to);
            for (name, requests) in &tally.endpoints {
                if let Some(path) = paths.and_then(|paths| paths.get(name)) {
                    *shares.entry(path.clone()).or_default() += *requests as f64;
                }
            }
            self.shares.insert(index, shares);
        }
    }

    /// Endpoints that an edge's requests are to, with their shares, the largest first.
    pub(crate) fn shares(&self, edge: usize, to: usize) -> Vec<(String, f64)> {
        let of_service = || {
            let endpoints = self.services.get(&to).into_iter().flat_map(|service| &service.endpoints);
            endpoints.map(|endpoint| (endpoint.path.clone(), endpoint.requests)).collect()
        };
        let own = self.shares.get(&edge).filter(|shares| !shares.is_empty());
        let mut shares: Vec<(String, f64)> = own.map_or_else(of_service, |shares| {
            shares.iter().map(|(path, share)| (path.clone(), *share)).collect()
        });
        let all: f64 = shares.iter().map(|(_, requests)| requests).sum();
        shares.iter_mut().for_each(|(_, requests)| *requests /= all);
        shares.sort_by(|one, other| other.1.total_cmp(&one.1));
        if shares.is_empty() { vec![(DEFAULT_ENDPOINT.to_owned(), 1.0)] } else { shares }
    }
}

impl Merged {
    fn add(&mut self, tally: &EndpointTally, target: &dyn Fn(Key) -> Option<Target>) {
        self.requests += tally.requests;
        self.own.merge(&tally.own);
        let mut numbers: BTreeMap<Key, usize> = BTreeMap::new();
        for (key, calls) in &tally.calls {
            let Some(target) = target(*key) else { continue };
            let next = self.calls.len();
            let number = *self.targets.entry(target).or_insert(next);
            if number == next {
                self.calls.push(CallTally::default());
            }
            self.calls[number].merge(calls);
            numbers.insert(*key, number);
        }
        self.is_partial |= tally.relations.are_partial();
        for ((one, first), (other, second), relation) in tally.relations.pairs() {
            let (Some(one), Some(other)) = (numbers.get(&one), numbers.get(&other)) else { continue };
            let (one, other) = ((*one, first), (*other, second));
            let (places, relation) = match one.cmp(&other) {
                std::cmp::Ordering::Less => ((one, other), relation),
                std::cmp::Ordering::Greater => ((other, one), relation.reversed()),
                std::cmp::Ordering::Equal => continue,
            };
            self.relations.entry(places).or_default().merge(relation);
        }
    }

    fn relation(&self, one: Place, other: Place) -> Option<Relation> {
        let get = |one: Place, other: Place| self.relations.get(&(one, other)).copied();
        if one < other { get(one, other) } else { get(other, one).map(Relation::reversed) }
    }

    fn slot(&self, (target, slot): Place) -> SlotTally {
        self.calls[target].slots.get(usize::from(slot)).copied().unwrap_or_default()
    }

    /// True if a call begins before another one in most requests or, of calls that were not compared, on average.
    fn precedes(&self, one: Place, other: Place) -> bool {
        match self.relation(one, other) {
            Some(relation) => relation.before * 2 > relation.both,
            None => self.is_partial && self.slot(one).mean_s().0 < self.slot(other).mean_s().0,
        }
    }

    /// True if two calls are in parallel. Of calls that were not compared, those are that overlap others, and each other on
    /// average.
    fn overlap(&self, one: Place, other: Place) -> bool {
        let is_parallel = |overlap: u64, of: u64| overlap > 0 && overlap as f64 >= PARALLEL * of as f64;
        if let Some(relation) = self.relation(one, other) {
            return is_parallel(relation.overlap, relation.both);
        }
        let both = [self.slot(one), self.slot(other)];
        let [first, second] = both.map(|slot| slot.mean_s());
        self.is_partial
            && both.iter().all(|slot| is_parallel(slot.overlapped, slot.made))
            && first.0 < second.1
            && second.0 < first.1
    }

    /// Places of all calls, in the order of their start, with their targets and probabilities.
    fn places(&self) -> Vec<(Place, &Target, f64)> {
        let mut places: Vec<(Place, &Target, f64)> = Vec::new();
        for (target, number) in &self.targets {
            let probabilities = self.calls[*number].probabilities(self.requests).into_iter().enumerate();
            places.extend(
                probabilities.map(|(slot, probability)| ((*number, slot as u8), target, probability)),
            );
        }
        places.sort_by(|one, other| other.2.total_cmp(&one.2));
        places.truncate(MAX_ORDERED);
        let wins = |one: Place| {
            places.iter().filter(|(other, ..)| one != *other && self.precedes(one, *other)).count()
        };
        let mut order: Vec<(usize, f64, usize)> = places
            .iter()
            .enumerate()
            .map(|(index, (place, ..))| (wins(*place), self.slot(*place).mean_s().0, index))
            .collect();
        order.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.total_cmp(&other.1)));
        order.into_iter().map(|(.., index)| places[index]).collect()
    }
}

/// A node whose endpoints are made.
struct Service<'a> {
    node: usize,
    edges: &'a HashMap<(usize, usize), usize>,
    merged: BTreeMap<String, Merged>,
    weights: BTreeMap<String, f64>,
}

impl Service<'_> {
    fn add(&self, paths: &[String], traced: &mut Traced) {
        let mut own = Values::default();
        let (mut endpoints, mut requests) = (Vec::new(), 0.0);
        let mut per_request: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
        let all: f64 = self.weights.values().sum();
        for path in paths {
            let Some(merged) = self.merged.get(path) else { continue };
            requests += merged.requests as f64;
            own.merge(&merged.own);
            let share = self.weights.get(path).copied().unwrap_or_default() / all;
            for ((callees, _), number) in &merged.targets {
                let tally = &merged.calls[*number];
                let edges = self.edges_to(callees, traced);
                let calls: f64 = tally.probabilities(merged.requests).iter().sum();
                let (retries, most) = tally.retries();
                *per_request.entry(edges.clone()).or_default() +=
                    share * (calls + retries as f64 / merged.requests as f64);
                for edge in edges {
                    let own = traced.edges.entry(edge).or_default();
                    own.retries += retries + tally.repeated;
                    own.most_retries = own.most_retries.max(most).max(tally.most_attempts.saturating_sub(1));
                }
            }
            endpoints.push(self.endpoint(path, merged, traced));
        }
        per_request.remove(&Vec::new());
        for (edges, calls) in &per_request {
            for edge in edges {
                let own = traced.edges.entry(*edge).or_default();
                (own.per_request, own.requests) = (*calls, requests);
            }
        }
        let service = traced.services.entry(self.node).or_default();
        let others = service.others;
        *service = TracedService { own: own.histogram(), endpoints, others, per_request };
    }

    fn edges_to(&self, callees: &[usize], traced: &mut Traced) -> Vec<usize> {
        let edges = callees.iter().filter_map(|callee| self.edges.get(&(self.node, *callee)).copied());
        let edges: Vec<usize> = edges.collect();
        if let (true, Some(callee)) = (edges.is_empty(), callees.first()) {
            traced.unmeasured.insert((self.node, *callee));
        }
        edges
    }

    fn endpoint(&self, path: &str, merged: &Merged, traced: &mut Traced) -> TracedEndpoint {
        let (mut slots, mut places): (Vec<Slot>, Vec<Place>) = (Vec::new(), Vec::new());
        for (place, (callees, path), probability) in merged.places() {
            let edges = self.edges_to(callees, traced);
            if edges.is_empty() {
                continue;
            }
            slots.push(Slot { edges, path: path.clone(), probability, is_last: true });
            places.push(place);
        }
        let mut later = BTreeSet::new();
        for (slot, (target, _)) in slots.iter_mut().zip(&places).rev() {
            slot.is_last = later.insert(*target);
        }
        let overlap = |one: usize, other: usize| merged.overlap(places[one], places[other]);
        let all: Vec<usize> = (0..slots.len()).collect();
        let order = arrange(&all, &overlap, 0);
        let requests = merged.requests as f64;
        TracedEndpoint { path: path.to_owned(), requests, own: merged.own.histogram(), slots, order }
    }
}

/// Paths that are kept, the busiest first, and the path of each name; the number of paths that are one.
#[allow(clippy::type_complexity, reason = "two lists of the same paths")]
fn paths(names: &[(Name, String, u64)]) -> ((Vec<String>, HashMap<Name, String>), usize) {
    let mut requests: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, path, more) in names {
        *requests.entry(path).or_default() += more;
    }
    let all: u64 = requests.values().sum();
    let mut busiest: Vec<(&str, u64)> = requests.into_iter().collect();
    busiest.sort_by_key(|(path, requests)| (std::cmp::Reverse(*requests), *path));
    let is_kept = |(index, (_, requests)): &(usize, &(&str, u64))| {
        *index < MAX_ENDPOINTS && *requests as f64 >= MIN_SHARE * all as f64
    };
    let mut kept: Vec<String> =
        busiest.iter().enumerate().filter(is_kept).map(|(_, (path, _))| (*path).to_owned()).collect();
    let others = busiest.len() - kept.len();
    if others > 0 && !kept.iter().any(|path| path == OTHERS) {
        kept.push(OTHERS.to_owned());
    }
    let by_name = names.iter().map(|(name, path, _)| {
        let own = kept.iter().find(|own| *own == path);
        (*name, own.cloned().unwrap_or_else(|| OTHERS.to_owned()))
    });
    let by_name = by_name.collect();
    ((kept, by_name), others)
}

/// An endpoint's name as a path of a topology file. Methods of gRPC are its last part.
fn path(text: &str, protocol: Protocol) -> String {
    let text = match protocol {
        Protocol::Grpc => text.rsplit('/').next().unwrap_or_default(),
        _ => text.trim_start_matches('/'),
    };
    let path: String =
        text.chars().map(|c| if fits_path(c) { c } else { '-' }).take(MAX_PATH_LENGTH - 1).collect();
    format!("/{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_fit_a_topology_file() {
        assert_eq!(path("/cart/{id}?<b>", Protocol::Http1), "/cart/-id---b-");
        assert_eq!(path("/shop.v1.Cart/AddItem", Protocol::Grpc), "/AddItem");
        assert_eq!(path("", Protocol::Http1), "/");
        assert_eq!(path(&"ü".repeat(500), Protocol::Http1).len(), 200);
    }
}
