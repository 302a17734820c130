//! Proof of every edge of a topology, by the requests sent from one workload to another and the counters of
//! the proxies between them.
//! Counters that belong to one edge are checked against what was sent over it. Counters shared by several
//! edges (the inbound listener of a service with several callers, a gateway) are checked against the total
//! sent over all of them (`place.rs`). A shortfall there is charged to those edges that fall short in other
//! counters too (`finding.rs`).
//! Services are checked too: each must have received what drivers and its callers sent.

pub use super::counted::{Edge, EdgeProxy, Replica, Sent};

use super::counted::{CountedService, combine};
use super::delta::allowance;
use super::evidence::Seen;
use super::finding::{Finding, charge};
use super::hops::{check_hops, without_others};
use super::place::{Member, Place, places};
use super::proxy::{self, Allowances, Side, manner};
use super::summed::{Replicas, SummedEdge, sum_services};
use experiment::environment::SentLoad;
use results::{EdgeProof, HopProof, PathProof, ProxyProof, ServiceProof, StreamProof};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of edges named in a reason; the rest are counted.
const MAX_NAMED_EDGES: usize = 3;
/// Maximum number of reasons over all edges; the rest are kept only with their edges.
const MAX_REASONS: usize = 12;

/// Proves all edges of a trial; for a single edge, its whole path. Edges from a driver must have had
/// requests; edges from a service too, unless chance alone explains their absence.
pub fn prove_edges(edges: &[Edge<'_>]) -> PathProof {
    Edges::new(edges).prove()
}

/// True if the proxies of all edges have counted everything they will count: the last requests may still be
/// in sockets when the drivers end.
pub fn have_settled(edges: &[Edge<'_>]) -> bool {
    Edges::new(edges).have_settled()
}

struct Edges<'a> {
    edges: Vec<SummedEdge<'a>>,
    places: Vec<Place>,
    /// Index of each member's place.
    place_of: BTreeMap<Member, usize>,
    /// Edges to each callee.
    callers: BTreeMap<&'a str, Vec<usize>>,
}

impl<'a> Edges<'a> {
    fn new(edges: &[Edge<'a>]) -> Self {
        let mut known = Replicas::new();
        let edges: Vec<SummedEdge<'_>> =
            edges.iter().map(|edge| SummedEdge::new(edge, &mut known, edges.len() == 1)).collect();
        let places = places(&edges);
        let members = places.iter().enumerate();
        let place_of = members.flat_map(|(id, place)| place.members.iter().map(move |member| (*member, id)));
        let mut callers: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, edge) in edges.iter().enumerate() {
            callers.entry(edge.to).or_default().push(index);
        }
        Self { place_of: place_of.collect(), places, callers, edges }
    }

    fn prove(&self) -> PathProof {
        let mut findings = self.unsent();
        let mut proxies = Vec::new();
        for place in &self.places {
            let proof = self.check(place, &mut findings);
            self.check_groups(place, &mut findings);
            proxies.push(proof);
        }
        findings.extend(self.check_services());
        let mut reasons = charge(&findings, self.edges.len());
        let hops = self.hops(&mut reasons);
        let summary = self.summary(&reasons);
        let is_path = self.edges.len() == 1;
        let service = self.edges.first().filter(|_| is_path).and_then(|edge| edge.service.as_ref());
        let edges = self.edges.iter().filter(|_| !is_path).zip(reasons);
        PathProof {
            proven: summary.is_empty(),
            mode: None,
            proxies,
            reasons: summary,
            service: service.map(CountedService::proof),
            tracing: None,
            hops,
            filters: Vec::new(),
            edges: edges.map(edge_proof).collect(),
        }
    }

    fn have_settled(&self) -> bool {
        self.places.iter().all(|Place { members, proxy }| {
            if proxy.after.is_err() {
                return true;
            }
            let rise = |name: &str| proxy.rise(name);
            let sent = self.sent(members);
            let lost = members.iter().map(|(edge, _)| self.edges[*edge].lost()).sum();
            let awaited = sent.requests.saturating_sub(lost);
            match &proxy.evidence.seen {
                Seen::Requests(counters) => rise(&counters.requests) >= awaited,
                Seen::RequestBytes(counters) => counters.requests(rise, &sent) >= awaited,
                Seen::Streams(counters) => {
                    self.passing(members).is_none_or(|passing| counters.hold(&passing, &rise))
                }
                Seen::Nothing(_) => true,
            }
        })
    }

    fn unsent(&self) -> Vec<Finding> {
        let edges = self.edges.iter().enumerate();
        let finding = |(index, edge): (usize, &SummedEdge<'_>)| {
            let reason = match &edge.unread {
                Some(reason) => format!("{} did not report what it sent: {reason}", edge.from),
                None if edge.sent.requests > 0 || edge.proxies.is_empty() => return None,
                None => "no requests were sent: nothing shows their path".to_owned(),
            };
            Some(Finding { edges: vec![index], reasons: vec![reason], is_of_all: false })
        };
        edges.filter_map(finding).collect()
    }

    fn check(&self, place: &Place, findings: &mut Vec<Finding>) -> ProxyProof {
        let Place { members, proxy } = place;
        let (sent, passing) = (self.sent(members), self.passing(members));
        let proof = proxy::read(proxy, &sent, passing.as_ref());
        let faults = proxy::faults(proxy);
        self.add_of_process(place, faults, true, findings);
        if proxy.after.is_err() {
            return proof;
        }
        let side = Side {
            proxy,
            proof: &proof,
            sent: &sent,
            before: self.allowances(members, |(_, position)| 0..position),
            with_own: self.allowances(members, |(_, position)| 0..position + 1),
            nearer: self.nearer(members),
            passing: passing.as_ref(),
        };
        let mut reasons = Vec::new();
        proxy::check_load(&side, &mut reasons);
        if self.groups(place).len() == 1 {
            proxy::check_tls(&side, &mut reasons);
        }
        findings.push(Finding { edges: place.edges(), reasons, is_of_all: false });
        let mut reasons = Vec::new();
        proxy::check_demands(&side, &mut reasons);
        self.add_of_process(place, reasons, false, findings);
        proof
    }

    /// Adds findings about a process, on all edges that pass it.
    fn add_of_process(
        &self,
        place: &Place,
        reasons: Vec<String>,
        is_of_all: bool,
        findings: &mut Vec<Finding>,
    ) {
        if reasons.is_empty() {
            return;
        }
        match findings.iter_mut().find(|known| known.is_of_all == is_of_all && known.reasons == reasons) {
            Some(known) => {
                known.edges.extend(place.edges());
                known.edges.sort_unstable();
                known.edges.dedup();
            }
            None => findings.push(Finding { edges: place.edges(), reasons, is_of_all }),
        }
    }

    fn sent(&self, members: &[Member]) -> SentLoad {
        members.iter().map(|(edge, _)| &self.edges[*edge].sent).sum()
    }

    /// Reasons why counts may differ from what was sent: what the callers report, and what the proxies in
    /// `range` of each member's edge did with requests. Each counter is added only once.
    fn allowances(&self, members: &[Member], range: impl Fn(Member) -> std::ops::Range<usize>) -> Allowances {
        let mut counted = BTreeSet::new();
        let mut sum = Allowances::default();
        for member in members {
            let edge = &self.edges[member.0];
            sum.given_up += edge.lost();
            for position in range(*member) {
                let proxy = &edge.proxies[position];
                let Seen::Requests(counters) = &proxy.evidence.seen else { continue };
                let mut once = |name: &String| {
                    let is_new = counted.insert((&edge.processes[position], name.clone()));
                    if is_new { proxy.rise(name) } else { 0 }
                };
                sum.retries += once(&counters.retries);
                sum.given_up += counters.given_up.iter().map(once).sum::<u64>();
            }
        }
        sum
    }

    /// Traffic that should have passed a place: as counted by the services behind it, if everything that they
    /// served passes it, and by the callers as far as they count. Absent if neither can be used.
    fn passing(&self, members: &[Member]) -> Option<ServiceProof> {
        let passing: BTreeSet<usize> = members.iter().map(|(edge, _)| *edge).collect();
        let edges = || passing.iter().map(|edge| &self.edges[*edge]);
        let behind: BTreeMap<&str, Option<&CountedService>> =
            edges().map(|edge| (edge.to, edge.service.as_ref())).collect();
        if behind.values().flatten().any(|service| service.after.is_err()) {
            return None;
        }
        let services: Vec<(&str, &CountedService)> =
            behind.iter().filter_map(|(name, service)| Some((*name, (*service)?))).collect();
        let callers = behind.keys().flat_map(|name| &self.callers[name]);
        let mut callers = callers.filter(|edge| !self.edges[**edge].proxies.is_empty());
        let is_all = services.len() == behind.len() && callers.all(|edge| passing.contains(edge));
        let by_services = is_all.then(|| sum_services(&services).proof());
        let is_called = edges().all(|edge| edge.calls.is_some());
        let by_callers = (is_called || !is_all && !services.is_empty()).then(|| {
            let sum = |sum: ServiceProof, own| combine(&sum, &own, |sum, own| sum + own);
            edges().map(SummedEdge::passing).fold(ServiceProof::default(), sum)
        });
        match (by_services, by_callers) {
            (Some(one), Some(other)) => Some(combine(&one, &other, u64::max)),
            (one, other) => one.or(other),
        }
    }

    /// The proxies just before this place that carry the connections of all these edges, by the name of the
    /// first one. None if an edge has no such proxy, or if the proxy also carries connections of other edges.
    fn nearer(&self, members: &[Member]) -> Option<(&str, StreamProof)> {
        let passing: BTreeSet<usize> = members.iter().map(|(edge, _)| *edge).collect();
        let mut before = BTreeSet::new();
        for (edge, position) in members {
            let is_stream = |position: &usize| {
                matches!(self.edges[*edge].proxies[*position].evidence.seen, Seen::Streams(_))
            };
            let nearer = (0..*position).rev().find(is_stream)?;
            before.insert(*self.place_of.get(&(*edge, nearer))?);
        }
        let mut sum = StreamProof::default();
        for Place { members, proxy } in before.iter().map(|place| &self.places[*place]) {
            let Seen::Streams(counters) = &proxy.evidence.seen else { return None };
            if members.iter().any(|(edge, _)| !passing.contains(edge)) {
                return None;
            }
            sum.received_bytes += proxy.rise(&counters.received_bytes);
            sum.sent_bytes += proxy.rise(&counters.sent_bytes);
        }
        let first = &self.places[*before.first()?];
        Some((first.proxy.name.as_str(), sum))
    }

    /// The members of a place, grouped by the cluster that it forwards them to.
    fn groups(&self, place: &Place) -> Vec<Vec<Member>> {
        let mut groups: BTreeMap<Option<&String>, Vec<Member>> = BTreeMap::new();
        for (edge, position) in &place.members {
            let forwarded = self.edges[*edge].proxies[*position].evidence.forwarded.as_ref();
            let cluster = forwarded.map(|forwarded| &forwarded.requests);
            groups.entry(cluster).or_default().push((*edge, *position));
        }
        groups.into_values().collect()
    }

    /// Checks what a shared proxy forwarded to each of several clusters.
    fn check_groups(&self, place: &Place, findings: &mut Vec<Finding>) {
        let groups = self.groups(place);
        for members in groups.iter().filter(|_| groups.len() > 1) {
            let (edge, position) = members[0];
            let proxy = &self.edges[edge].proxies[position];
            let (Seen::Requests(counters), Some(forwarded), Ok(_)) =
                (&proxy.evidence.seen, &proxy.evidence.forwarded, &proxy.after)
            else {
                continue;
            };
            let sent = self.sent(members);
            let with_own = self.allowances(members, |(_, position)| 0..position + 1);
            let (expected, count) = (sent.requests, proxy.rise(&forwarded.requests));
            let missing = allowance(expected, proxy.rise(&counters.connections))
                + proxy.refused().max(with_own.given_up);
            let mut reasons = Vec::new();
            if count + missing < expected || (count == 0 && expected > 0) {
                let (name, manner) = (proxy.called(), manner(count));
                reasons.push(format!("{name} forwarded {count} of {expected} requests: {manner}"));
            }
            let proof = proxy::read(proxy, &sent, None);
            let before = Allowances::default();
            let side =
                Side { proxy, proof: &proof, sent: &sent, before, with_own, nearer: None, passing: None };
            proxy::check_tls(&side, &mut reasons);
            let edges = members.iter().map(|(edge, _)| *edge).collect();
            findings.push(Finding { edges, reasons, is_of_all: false });
        }
    }

    /// Checks that each service whose counters were requested received what its callers sent.
    fn check_services(&self) -> impl Iterator<Item = Finding> + '_ {
        self.callers.iter().filter_map(|(name, edges)| {
            let service = edges.iter().find_map(|edge| self.edges[*edge].service.as_ref())?;
            let finding =
                |reason, is_of_all| Some(Finding { edges: edges.clone(), reasons: vec![reason], is_of_all });
            let after = match &service.after {
                Ok(after) => after,
                Err(reason) => {
                    return finding(format!("{name} did not report its counters: {reason}"), true);
                }
            };
            if !after.contains_key(CountedService::REQUESTS) {
                return None;
            }
            let ends: Vec<Member> =
                edges.iter().map(|edge| (*edge, self.edges[*edge].proxies.len())).collect();
            let (received, sent) = (service.proof().requests_received, self.sent(&ends).requests);
            let Allowances { retries, given_up } = self.allowances(&ends, |(_, end)| 0..end);
            let missing = self.unread_of_drivers(edges, service) + given_up;
            let said = format!("{name} received {received} requests; its callers sent {sent}");
            if received + missing < sent {
                finding(said, false)
            } else if received > sent + retries {
                finding(format!("{said}: something else uses it"), false)
            } else {
                None
            }
        })
    }

    /// Driver requests that a callee may never have read. One per connection may be in flight as the drivers
    /// end, and proxies may have answered some themselves. Services, in contrast, wait for the calls they make.
    fn unread_of_drivers(&self, edges: &[usize], service: &CountedService) -> u64 {
        let driven = edges.iter().map(|edge| &self.edges[*edge]).filter(|edge| edge.calls.is_none());
        let mut connections = service.proof().connections;
        let (mut sent, mut refused) = (0_u64, 0_u64);
        for edge in driven {
            sent += edge.sent.requests;
            let Some(proxy) = edge.proxies.first() else { continue };
            if let Seen::Requests(counters) = &proxy.evidence.seen {
                connections += proxy.rise(&counters.connections);
                refused += proxy.refused();
            }
        }
        if sent == 0 { 0 } else { allowance(sent, connections) + refused }
    }

    fn hops(&self, reasons: &mut [Vec<String>]) -> Vec<HopProof> {
        let mut hops: Vec<HopProof> = Vec::new();
        let mut known: BTreeMap<(String, String), usize> = BTreeMap::new();
        let is_charged: Vec<bool> = reasons.iter().map(|reasons| !reasons.is_empty()).collect();
        for (index, (edge, reasons)) in self.edges.iter().zip(reasons).enumerate() {
            let others = |position: usize| {
                let place = &self.places[self.place_of[&(index, position)]];
                place.members.iter().map(|(edge, position)| &self.edges[*edge].proxies[*position].evidence)
            };
            let proxies = edge.proxies.iter().enumerate();
            let proxies: Vec<_> =
                proxies.map(|(position, proxy)| without_others(proxy, others(position))).collect();
            let mut wrong = Vec::new();
            let own = check_hops(&proxies, [edge.from, edge.to], &mut wrong);
            // Listeners count protocols of all edges together: an edge that is unproven anyway explains them.
            let places =
                (0..edge.proxies.len()).map(|position| &self.places[self.place_of[&(index, position)]]);
            let mut sharing = places.flat_map(Place::edges);
            if is_charged[index] || !sharing.any(|edge| is_charged[edge]) {
                reasons.append(&mut wrong);
            }
            for hop in own {
                let place = *known.entry((hop.from.clone(), hop.to.clone())).or_insert(hops.len());
                match hops.get_mut(place) {
                    Some(known) => {
                        known.add(&hop);
                        // Callees with different protocols are behind one proxy.
                        known.asked = known.asked.filter(|asked| Some(*asked) == hop.asked);
                    }
                    None => hops.push(hop),
                }
            }
        }
        hops
    }

    fn summary(&self, reasons: &[Vec<String>]) -> Vec<String> {
        if let [reasons] = reasons {
            return reasons.clone();
        }
        let mut edges_of: Vec<(&String, Vec<String>)> = Vec::new();
        let mut known: BTreeMap<&String, usize> = BTreeMap::new();
        for (edge, reasons) in self.edges.iter().zip(reasons) {
            for reason in reasons {
                let place = *known.entry(reason).or_insert(edges_of.len());
                let name = format!("{} → {}", edge.from, edge.to);
                match edges_of.get_mut(place) {
                    Some((_, edges)) => edges.push(name),
                    None => edges_of.push((reason, vec![name])),
                }
            }
        }
        let further = edges_of.len().saturating_sub(MAX_REASONS);
        edges_of.truncate(MAX_REASONS);
        let text = |(reason, edges): (&String, Vec<String>)| {
            let named = edges[..edges.len().min(MAX_NAMED_EDGES)].join(", ");
            let noun = if edges.len() == 1 { "edge" } else { "edges" };
            match edges.len().saturating_sub(MAX_NAMED_EDGES) {
                0 => format!("{noun} {named}: {reason}"),
                others => format!("{noun} {named} and {others} others: {reason}"),
            }
        };
        let mut summary: Vec<String> = edges_of.into_iter().map(text).collect();
        if further > 0 {
            let unproven = reasons.iter().filter(|reasons| !reasons.is_empty()).count();
            summary.push(format!("{further} more reasons; {unproven} edges are not proven"));
        }
        summary
    }
}

fn edge_proof((edge, reasons): (&SummedEdge<'_>, Vec<String>)) -> EdgeProof {
    EdgeProof { from: edge.from.to_owned(), to: edge.to.to_owned(), proven: reasons.is_empty(), reasons }
}
