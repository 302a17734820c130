//! Proof of every edge of a topology, by what was sent from one workload to another and what the proxies between them counted.
//! Counters of one edge alone are checked against what was sent over it; counters that several edges share (the inbound
//! listener of a service with several callers, a gateway) against what was sent over all of them. A shared proxy that misses
//! requests leaves those of its edges unproven whose own counters miss them too, and all of its edges if none do.

use super::counted::{CountedProxy, CountedService};
use super::counters::{Forwarded, RequestByteCounters, RequestCounters, StreamCounters};
use super::delta::{allowance, delta};
use super::evidence::{Evidence, Seen};
use super::hops::check_hops;
use super::path::prove;
use super::requests::Explained;
use super::side::{self, Side, has_restarted, manner};
use super::streams;
use crate::spans::SentSpans;
use experiment::environment::SentLoad;
use experiment::schema::{EdgeProof, HopProof, PathProof, ProxyProof, StreamProof};
use std::collections::{BTreeMap, BTreeSet};

/// Edges that a reason names; further ones are counted.
const MAX_NAMED_EDGES: usize = 3;

#[derive(Clone, Debug)]
pub struct Edge<'a> {
    pub from: &'a str,
    pub to: &'a str,
    /// Counted by the driver or the calling service.
    pub sent: SentLoad,
    /// Counters of all replicas of the callee; empty if not needed.
    pub service: Vec<&'a CountedService>,
    /// From caller to callee.
    pub proxies: Vec<EdgeProxy<'a>>,
}

#[derive(Clone, Debug)]
pub struct EdgeProxy<'a> {
    /// Of replicas, the name that they share.
    pub name: &'a str,
    pub side: Option<&'static str>,
    pub evidence: &'a Evidence,
    /// Absent if the proxy never traces.
    pub spans: Option<&'a SentSpans>,
    pub replicas: Vec<&'a Replica>,
}

#[derive(Clone, Debug)]
pub struct Replica {
    /// Unique.
    pub name: String,
    /// Before the drivers started, and after their end or why they could not be read.
    pub before: BTreeMap<String, u64>,
    pub after: Result<BTreeMap<String, u64>, String>,
}

/// Proves all edges of a trial. An edge without requests is not proven: leave out those over which none were to be sent.
pub fn prove_edges(edges: &[Edge<'_>]) -> PathProof {
    let edges: Vec<SummedEdge<'_>> = edges.iter().map(SummedEdge::new).collect();
    match &edges[..] {
        [] => prove(&[], &SentLoad::default(), None),
        [edge] => prove(&edge.proxies, &edge.sent, edge.service.as_ref()),
        _ => Edges { places: places(&edges), edges }.prove(),
    }
}

impl EdgeProxy<'_> {
    pub fn summed(&self) -> CountedProxy {
        let (before, after) =
            sum(self.replicas.iter().map(|replica| (&replica.name, &replica.before, &replica.after)));
        CountedProxy {
            name: self.name.to_owned(),
            side: self.side,
            evidence: self.evidence.clone(),
            before,
            after,
        }
    }
}

type Counters = BTreeMap<String, u64>;

/// Sums counters of replicas. One that could not be read, or that started anew, leaves no sum; one alone is taken as it is.
fn sum<'a>(
    replicas: impl ExactSizeIterator<Item = (&'a String, &'a Counters, &'a Result<Counters, String>)>,
) -> (Counters, Result<Counters, String>) {
    let is_one = replicas.len() == 1;
    let (mut before, mut after) = (Counters::new(), Ok(Counters::new()));
    for (name, own_before, own_after) in replicas {
        let named = |reason: &str| if is_one { reason.to_owned() } else { format!("{name}: {reason}") };
        add(&mut before, own_before);
        match (own_after, &mut after) {
            (Ok(own), Ok(_)) if !is_one && has_restarted(own_before, own) => {
                after = Err(named("it started anew during the trial: its counters fell"));
            }
            (Ok(own), Ok(sum)) => add(sum, own),
            (Err(reason), Ok(_)) => after = Err(named(reason)),
            (_, Err(_)) => {}
        }
    }
    (before, after)
}

fn add(sum: &mut Counters, counters: &Counters) {
    for (name, count) in counters {
        let total = sum.entry(name.clone()).or_default();
        *total = total.saturating_add(*count);
    }
}

struct SummedEdge<'a> {
    from: &'a str,
    to: &'a str,
    sent: SentLoad,
    service: Option<CountedService>,
    proxies: Vec<CountedProxy>,
    processes: Vec<Vec<&'a str>>,
}

impl<'a> SummedEdge<'a> {
    fn new(edge: &Edge<'a>) -> Self {
        let service = (!edge.service.is_empty()).then(|| {
            let name = edge.to.to_owned();
            let (before, after) =
                sum(edge.service.iter().map(|service| (&name, &service.before, &service.after)));
            CountedService { before, after }
        });
        let processes =
            |proxy: &EdgeProxy<'a>| proxy.replicas.iter().map(|replica| replica.name.as_str()).collect();
        Self {
            from: edge.from,
            to: edge.to,
            sent: edge.sent,
            service,
            proxies: edge.proxies.iter().map(EdgeProxy::summed).collect(),
            processes: edge.proxies.iter().map(processes).collect(),
        }
    }
}

type Member = (usize, usize);

struct Place {
    members: Vec<Member>,
    /// Has the counters of all its edges, under the names of the first one's evidence.
    proxy: CountedProxy,
}

fn places(edges: &[SummedEdge<'_>]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    let mut known = BTreeMap::new();
    for (index, edge) in edges.iter().enumerate() {
        for (position, (proxy, processes)) in edge.proxies.iter().zip(&edge.processes).enumerate() {
            let key = (processes, proxy.side, counter_names(&proxy.evidence).first().copied());
            let place = *known.entry(key).or_insert(places.len());
            match places.get_mut(place) {
                Some(shared) => {
                    merge(&mut shared.proxy, proxy);
                    shared.members.push((index, position));
                }
                None => places.push(Place { members: vec![(index, position)], proxy: proxy.clone() }),
            }
        }
    }
    places
}

/// Adds the counters of another edge that count apart from those of the edges before it.
fn merge(shared: &mut CountedProxy, other: &CountedProxy) {
    let names: Vec<(String, String)> = counter_names(&shared.evidence)
        .into_iter()
        .zip(counter_names(&other.evidence))
        .filter(|(name, own)| name != own)
        .map(|(name, own)| (name.to_owned(), own.to_owned()))
        .collect();
    for (name, own) in names {
        for (sum, counters) in [
            (Some(&mut shared.before), Some(&other.before)),
            (shared.after.as_mut().ok(), other.after.as_ref().ok()),
        ] {
            if let (Some(sum), Some(count)) = (sum, counters.and_then(|counters| counters.get(&own))) {
                let total = sum.entry(name.clone()).or_default();
                *total = total.saturating_add(*count);
            }
        }
    }
}

/// All counters of an evidence except protocols', in an order that depends on its shape alone; the first counts traffic.
fn counter_names<'a>(evidence: &'a Evidence) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    let mut add = |counters: &[&'a String]| names.extend(counters.iter().map(|name| name.as_str()));
    match &evidence.seen {
        Seen::Requests(RequestCounters {
            requests,
            connections,
            retries,
            traced,
            given_up: [first, second],
        }) => {
            add(&[requests, connections, retries, traced, first, second]);
        }
        Seen::RequestBytes(RequestByteCounters { bytes, response_bytes, connections, .. }) => {
            add(&[bytes, response_bytes, connections]);
        }
        Seen::Streams(StreamCounters { connections, received_bytes, sent_bytes }) => {
            add(&[connections, received_bytes, sent_bytes]);
        }
        Seen::Nothing(counters) => add(&counters.iter().collect::<Vec<_>>()),
    }
    evidence.handshakes.iter().chain(&evidence.refused).for_each(|name| add(&[name]));
    if let Some(Forwarded { requests, connections, failed_connections, errors: [first, second] }) =
        &evidence.forwarded
    {
        add(&[requests, connections, failed_connections, first, second]);
    }
    names
}

struct Edges<'a> {
    edges: Vec<SummedEdge<'a>>,
    places: Vec<Place>,
}

impl Edges<'_> {
    fn prove(&self) -> PathProof {
        let mut reasons: Vec<Vec<String>> = vec![Vec::new(); self.edges.len()];
        for (edge, reasons) in self.edges.iter().zip(&mut reasons) {
            if edge.sent.requests == 0 && !edge.proxies.is_empty() {
                reasons.push("no requests were sent: nothing shows their path".to_owned());
            }
        }
        let mut shared = Vec::new();
        let mut proxies = Vec::new();
        for place in &self.places {
            let (proof, wrong) = self.check(place);
            proxies.push(proof);
            match place.members[..] {
                [(edge, _)] => reasons[edge].extend(wrong),
                _ => {
                    self.check_forwarded_apart(place, &mut reasons);
                    shared.push((place.members.iter().map(|(edge, _)| *edge).collect(), wrong));
                }
            }
        }
        shared.extend(self.check_services());
        charge(shared, &mut reasons);
        let hops = self.hops(&mut reasons);
        PathProof {
            proven: reasons.iter().all(Vec::is_empty),
            proxies,
            reasons: self.summary(&reasons),
            service: None,
            tracing: None,
            hops,
            edges: self.edges.iter().zip(reasons).map(edge_proof).collect(),
        }
    }

    fn check(&self, place: &Place) -> (ProxyProof, Vec<String>) {
        let Place { members, proxy } = place;
        let sent = self.sent(members.iter().map(|(edge, _)| *edge));
        let service = self.service_behind(members);
        let proof = side::read(proxy, &sent, service.as_ref());
        let nearer = self.nearer(members);
        let side = Side {
            proxy,
            proof: &proof,
            sent: &sent,
            before: self.explained(members, |(_, position)| 0..position),
            with_own: self.explained(members, |(_, position)| 0..position + 1),
            nearer: nearer.as_ref(),
            service: service.as_ref(),
        };
        let mut reasons = Vec::new();
        // The service counts the connections of others too.
        let is_part = service.is_none() && self.is_asked_behind(members);
        if is_part && matches!(proxy.evidence.seen, Seen::Streams(_)) {
            side.check_part(&mut reasons);
        } else {
            side.check(&mut reasons);
        }
        (proof, reasons)
    }

    fn sent(&self, edges: impl Iterator<Item = usize>) -> SentLoad {
        let mut requests = 0_u64;
        let mut bytes = Some(0.0);
        for edge in edges {
            let sent = &self.edges[edge].sent;
            requests = requests.saturating_add(sent.requests);
            bytes = bytes.zip(sent.request_bytes).map(|(sum, each)| sum + each * sent.requests as f64);
        }
        SentLoad { requests, request_bytes: bytes.map(|bytes| bytes / requests.max(1) as f64) }
    }

    /// What proxies did with requests, each counted once: those in `range` of each member's edge.
    fn explained(&self, members: &[Member], range: impl Fn(Member) -> std::ops::Range<usize>) -> Explained {
        let mut counted = BTreeSet::new();
        let mut sum = Explained::default();
        for member in members {
            let edge = &self.edges[member.0];
            for position in range(*member) {
                let proxy = &edge.proxies[position];
                let (Seen::Requests(counters), Ok(after)) = (&proxy.evidence.seen, &proxy.after) else {
                    continue;
                };
                let mut once = |name: &str| {
                    let is_new = counted.insert((&edge.processes[position], name.to_owned()));
                    if is_new { delta(&proxy.before, after, name) } else { 0 }
                };
                let given_up = counters.given_up.iter().map(|name| once(name)).fold(0, u64::saturating_add);
                sum = sum.and(Explained { retries: once(&counters.retries), given_up });
            }
        }
        sum
    }

    fn is_asked_behind(&self, members: &[Member]) -> bool {
        members.iter().any(|(edge, _)| self.edges[*edge].service.is_some())
    }

    /// Counters of the services behind a proxy, if all that they served passed it.
    fn service_behind(&self, members: &[Member]) -> Option<CountedService> {
        let passing: BTreeSet<usize> = members.iter().map(|(edge, _)| *edge).collect();
        let services: BTreeMap<&str, &CountedService> = passing
            .iter()
            .map(|edge| Some((self.edges[*edge].to, self.edges[*edge].service.as_ref()?)))
            .collect::<Option<_>>()?;
        let passes = |(index, edge): (usize, &SummedEdge<'_>)| {
            !services.contains_key(edge.to) || passing.contains(&index)
        };
        let names: Vec<String> = services.keys().map(|name| (*name).to_owned()).collect();
        let services = names
            .iter()
            .zip(services.values())
            .map(|(name, service)| (name, &service.before, &service.after));
        let (before, after) = sum(services);
        self.edges.iter().enumerate().all(passes).then_some(CountedService { before, after })
    }

    /// The proxies that carry the connections of all of these edges just before this place, as one; none if there is none on
    /// some edge, or if it carries those of other edges too.
    fn nearer(&self, members: &[Member]) -> Option<ProxyProof> {
        let passing: BTreeSet<usize> = members.iter().map(|(edge, _)| *edge).collect();
        let mut before = BTreeSet::new();
        for (edge, position) in members {
            let is_stream = |position: &usize| {
                matches!(self.edges[*edge].proxies[*position].evidence.seen, Seen::Streams(_))
            };
            let nearer = (0..*position).rev().find(is_stream)?;
            before.insert(self.places.iter().position(|place| place.members.contains(&(*edge, nearer)))?);
        }
        let mut proofs = before.iter().map(|place| {
            let Place { members, proxy } = &self.places[*place];
            let is_apart = members.iter().all(|(edge, _)| passing.contains(edge));
            is_apart.then(|| side::read(proxy, &SentLoad::default(), None))
        });
        let first = proofs.next()??;
        proofs.try_fold(first, |mut sum, proof| {
            let proof = proof?;
            sum.streams = sum.streams.zip(proof.streams).map(|(sum, own)| StreamProof {
                connections: sum.connections.saturating_add(own.connections),
                received_bytes: sum.received_bytes.saturating_add(own.received_bytes),
                sent_bytes: sum.sent_bytes.saturating_add(own.sent_bytes),
                ..sum
            });
            Some(sum)
        })
    }

    /// Checks what a shared proxy forwarded over each of its edges, if it counts that apart.
    fn check_forwarded_apart(&self, place: &Place, reasons: &mut [Vec<String>]) {
        let forwarded = |(edge, position): Member| {
            let proxy = &self.edges[edge].proxies[position];
            let counters = match &proxy.evidence.seen {
                Seen::Requests(counters) => counters,
                _ => return None,
            };
            Some((proxy, counters, proxy.evidence.forwarded.as_ref()?))
        };
        let names = place.members.iter().filter_map(|member| Some(&forwarded(*member)?.2.requests));
        let mut edges_of: BTreeMap<&String, usize> = BTreeMap::new();
        names.for_each(|name| *edges_of.entry(name).or_default() += 1);
        for member in &place.members {
            let Some((proxy, counters, forwarded)) = forwarded(*member) else { continue };
            let Ok(after) = &proxy.after else { continue };
            if edges_of.get(&forwarded.requests) != Some(&1) {
                continue;
            }
            let rise = |name: &String| delta(&proxy.before, after, name);
            let (expected, count) = (self.edges[member.0].sent.requests, rise(&forwarded.requests));
            let refused: u64 = forwarded.errors.iter().map(rise).fold(0, u64::saturating_add);
            let given_up = self.explained(&[*member], |(_, position)| 0..position + 1).given_up;
            let missing =
                allowance(expected, rise(&counters.connections)).saturating_add(refused.max(given_up));
            if count.saturating_add(missing) < expected || (count == 0 && expected > 0) {
                let name = proxy.called();
                let manner = manner(count);
                reasons[member.0].push(format!("{name} forwarded {count} of {expected} requests: {manner}"));
            }
        }
    }

    /// Checks each service that was asked by what all of its callers sent: the edges that lead to it, and what is wrong.
    fn check_services(&self) -> Vec<(Vec<usize>, Vec<String>)> {
        let mut callers: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, edge) in self.edges.iter().enumerate() {
            callers.entry(edge.to).or_default().push(index);
        }
        let check = |edges: Vec<usize>| {
            let service = edges.iter().find_map(|edge| self.edges[*edge].service.as_ref())?;
            let ends: Vec<Member> =
                edges.iter().map(|edge| (*edge, self.edges[*edge].proxies.len())).collect();
            let retries = self.explained(&ends, |(_, end)| 0..end).retries;
            let mut reasons = Vec::new();
            streams::check_service(service, self.sent(edges.iter().copied()).requests, retries, &mut reasons);
            Some((edges, reasons))
        };
        callers.into_values().filter_map(check).collect()
    }

    fn hops(&self, reasons: &mut [Vec<String>]) -> Vec<HopProof> {
        let mut hops: Vec<HopProof> = Vec::new();
        for (edge, reasons) in self.edges.iter().zip(reasons) {
            for hop in check_hops(&edge.proxies, [edge.from, edge.to], reasons) {
                match hops.iter_mut().find(|known| known.from == hop.from && known.to == hop.to) {
                    Some(known) => known.add(&hop),
                    None => hops.push(hop),
                }
            }
        }
        hops
    }

    fn summary(&self, reasons: &[Vec<String>]) -> Vec<String> {
        let mut edges_of: Vec<(&String, Vec<String>)> = Vec::new();
        for (edge, reasons) in self.edges.iter().zip(reasons) {
            for reason in reasons {
                let name = format!("{} to {}", edge.from, edge.to);
                match edges_of.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, edges)) => edges.push(name),
                    None => edges_of.push((reason, vec![name])),
                }
            }
        }
        let text = |(reason, edges): (&String, Vec<String>)| {
            let named = edges[..edges.len().min(MAX_NAMED_EDGES)].join(", ");
            match edges.len().saturating_sub(MAX_NAMED_EDGES) {
                0 => format!("{named}: {reason}"),
                others => format!("{named} and {others} other edges: {reason}"),
            }
        };
        edges_of.into_iter().map(text).collect()
    }
}

/// Gives what is wrong with something shared to its edges: to those that are unproven already, else to all.
fn charge(shared: Vec<(Vec<usize>, Vec<String>)>, reasons: &mut [Vec<String>]) {
    let is_unproven: Vec<bool> = reasons.iter().map(|reasons| !reasons.is_empty()).collect();
    for (edges, wrong) in shared {
        let some_are = edges.iter().any(|edge| is_unproven[*edge]);
        for edge in edges.into_iter().filter(|edge| !some_are || is_unproven[*edge]) {
            reasons[edge].extend(wrong.iter().cloned());
        }
    }
}

fn edge_proof((edge, reasons): (&SummedEdge<'_>, Vec<String>)) -> EdgeProof {
    EdgeProof { from: edge.from.to_owned(), to: edge.to.to_owned(), proven: reasons.is_empty(), reasons }
}

#[cfg(test)]
#[path = "edge_tests.rs"]
mod tests;
