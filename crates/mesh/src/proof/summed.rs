//! Edges with the counters of their replicas summed.

use super::counted::{CallCounters, CountedProxy, CountedService, Edge, EdgeProxy, Replica, Sent};
use super::delta::{Counters, max_allowance};
use super::proxy::is_of_fault;
use experiment::environment::SentLoad;
use results::ServiceProof;
use std::collections::{BTreeMap, BTreeSet};

/// An edge with fewer expected requests may have had none. At this number, chance leaves an edge without any
/// only once in some hundred million trials.
const MIN_EXPECTED_REQUESTS: f64 = 20.0;

pub(super) struct SummedEdge<'a> {
    pub from: &'a str,
    pub to: &'a str,
    pub sent: SentLoad,
    /// Absent if drivers send the requests.
    pub calls: Option<CallCounters>,
    /// Reason why the number of requests sent is unknown.
    pub unread: Option<String>,
    pub service: Option<CountedService>,
    /// Empty if nothing was sent, and nothing had to be.
    pub proxies: Vec<CountedProxy>,
    pub processes: Vec<Vec<&'a str>>,
}

impl<'a> SummedEdge<'a> {
    pub fn new(edge: &Edge<'a>, known: &mut Replicas<'a>, is_whole_path: bool) -> Self {
        let services: Vec<_> = edge.service.iter().map(|service| (edge.to, *service)).collect();
        let service = (!services.is_empty()).then(|| sum_services(&services));
        let (sent, calls, unread) = match &edge.sent {
            Sent::Load(load) => (*load, None, None),
            Sent::Calls { counted: Ok(calls), .. } => {
                let each = (calls.sent > 0).then(|| calls.bytes_sent as f64 / calls.sent as f64);
                (SentLoad { requests: calls.sent, request_bytes: each }, Some(*calls), None)
            }
            Sent::Calls { counted: Err(reason), .. } => (SentLoad::default(), None, Some(reason.clone())),
        };
        let may_be_idle =
            matches!(edge.sent, Sent::Calls { expected, counted: Ok(_) } if expected < MIN_EXPECTED_REQUESTS);
        let passed = if may_be_idle && sent.requests == 0 { &[] } else { &edge.proxies[..] };
        let processes =
            |proxy: &EdgeProxy<'a>| proxy.replicas.iter().map(|replica| replica.name.as_str()).collect();
        Self {
            from: edge.from,
            to: edge.to,
            sent,
            calls,
            unread,
            service,
            proxies: passed.iter().map(|proxy| sum_proxy(proxy, known, is_whole_path)).collect(),
            processes: passed.iter().map(processes).collect(),
        }
    }

    /// Requests that may not have arrived, as counted by the caller.
    pub fn lost(&self) -> u64 {
        self.calls.map_or(0, |calls| calls.lost())
    }

    /// Minimum traffic over the edge, as counted by the sender.
    pub fn passing(&self) -> ServiceProof {
        let SentLoad { requests, request_bytes } = self.sent;
        let whole = requests.saturating_sub(max_allowance(requests));
        let by_drivers = || ServiceProof {
            requests_received: whole,
            received_bytes: (whole as f64 * request_bytes.unwrap_or(0.0)) as u64,
            ..ServiceProof::default()
        };
        self.calls.map_or_else(by_drivers, |calls| calls.at_callee())
    }
}

/// State of each replica, by its name. A shared proxy is on many edges.
pub(super) type Replicas<'a> = BTreeMap<&'a str, Known<'a>>;

pub(super) struct Known<'a> {
    failure: Option<&'a str>,
    /// Names of its fault counters.
    of_faults: Vec<&'a str>,
}

impl<'a> Known<'a> {
    fn from_replica(Replica { before, after, .. }: &'a Replica) -> Self {
        let names = after.iter().flat_map(Counters::keys).map(String::as_str);
        Self {
            failure: failure(before, after, |_| true),
            of_faults: names.filter(|name| is_of_fault(name)).collect(),
        }
    }
}

/// Reason why the counters after a trial cannot be used, by those that count; absent if they can.
fn failure<'a>(
    before: &Counters,
    after: &'a Result<Counters, String>,
    counts: impl Fn(&str) -> bool,
) -> Option<&'a str> {
    match after {
        Err(reason) => Some(reason),
        Ok(after) => {
            let has_fallen = |(name, before): (&String, &u64)| {
                counts(name) && after.get(name).is_some_and(|after| after < before)
            };
            before.iter().any(has_fallen).then_some("it started anew during the trial: its counters fell")
        }
    }
}

/// Sums the counters named in the evidence; on a whole path, all counters of a proxy that carries nothing else.
fn sum_proxy<'a>(proxy: &EdgeProxy<'a>, known: &mut Replicas<'a>, is_whole_path: bool) -> CountedProxy {
    let names: BTreeSet<&str> = proxy.evidence.counters().collect();
    let parts = proxy.replicas.iter().copied().map(|replica| {
        let Replica { name, before, after } = replica;
        let known = known.entry(name.as_str()).or_insert_with(|| Known::from_replica(replica));
        let is_shared = proxy.evidence.is_shared;
        let kept =
            (!is_whole_path || is_shared).then(|| names.iter().chain(&known.of_faults).copied().collect());
        let failure =
            if is_shared { failure(before, after, |name| names.contains(name)) } else { known.failure };
        Part { name, before, after, failure, kept }
    });
    let CountedService { before, after } = sum(&parts.collect::<Vec<_>>());
    let (name, evidence) = (proxy.name.to_owned(), proxy.evidence.clone());
    CountedProxy { name, side: proxy.side, evidence, before, after }
}

/// Sums the counters of services, each given with its name.
pub(super) fn sum_services(services: &[(&str, &CountedService)]) -> CountedService {
    let parts = services.iter().map(|(name, CountedService { before, after })| Part {
        name,
        before,
        after,
        failure: failure(before, after, |_| true),
        kept: None,
    });
    sum(&parts.collect::<Vec<_>>())
}

struct Part<'a> {
    name: &'a str,
    before: &'a Counters,
    after: &'a Result<Counters, String>,
    failure: Option<&'a str>,
    /// Counters to sum; absent: all.
    kept: Option<Vec<&'a str>>,
}

/// Sums counters. There is no sum after the trial if the counters of any part cannot be used.
fn sum(parts: &[Part<'_>]) -> CountedService {
    let (mut before, mut after) = (Counters::new(), Counters::new());
    for part in parts {
        part.add_to(&mut before, part.before);
        part.after.iter().for_each(|own| part.add_to(&mut after, own));
    }
    let failed = parts.iter().find_map(|part| Some((part.name, part.failure?)));
    let after = match failed {
        None => Ok(after),
        Some((_, reason)) if parts.len() == 1 => Err(reason.to_owned()),
        Some((name, reason)) => Err(format!("{name}: {reason}")),
    };
    CountedService { before, after }
}

impl Part<'_> {
    fn add_to(&self, sum: &mut Counters, counters: &Counters) {
        let mut add = |name: &str, count: u64| match sum.get_mut(name) {
            Some(total) => *total += count,
            None => drop(sum.insert(name.to_owned(), count)),
        };
        match &self.kept {
            Some(names) => {
                let counts = names.iter().filter_map(|name| Some((*name, *counters.get(*name)?)));
                counts.for_each(|(name, count)| add(name, count));
            }
            None => counters.iter().for_each(|(name, count)| add(name, *count)),
        }
    }
}
