//! Edges with the counters of their replicas summed.

use super::counted::{CallCounters, CountedProxy, CountedService, Edge, EdgeProxy, Replica, Sent};
use super::delta::max_allowance;
use super::proxy::is_of_fault;
use experiment::environment::SentLoad;
use experiment::schema::ServiceProof;
use std::collections::{BTreeMap, BTreeSet};

/// An edge with fewer expected requests may have had none. At this number, chance leaves an edge without any
/// only once in some hundred million trials.
const MIN_EXPECTED_REQUESTS: f64 = 20.0;

type Counters = BTreeMap<String, u64>;

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
    has_restarted: bool,
    /// Names of its fault counters.
    of_faults: Vec<&'a str>,
}

impl<'a> Known<'a> {
    fn from_replica(Replica { before, after, .. }: &'a Replica) -> Self {
        let after = after.as_ref().ok();
        let names = after.into_iter().flat_map(|after| after.keys()).map(String::as_str);
        Self {
            has_restarted: after.is_some_and(|after| has_restarted(before, after)),
            of_faults: names.filter(|name| is_of_fault(name)).collect(),
        }
    }
}

/// Sums the counters named in the evidence; on a whole path, all counters. There is no sum if a replica could
/// not be read or has restarted.
fn sum_proxy<'a>(proxy: &EdgeProxy<'a>, known: &mut Replicas<'a>, is_whole_path: bool) -> CountedProxy {
    let names: BTreeSet<&str> = proxy.evidence.counters().collect();
    let mut sum = Sum::new(proxy.replicas.len() == 1);
    for replica in proxy.replicas.iter().copied() {
        let Replica { name, before, after } = replica;
        let known = known.entry(name.as_str()).or_insert_with(|| Known::from_replica(replica));
        let kept: Vec<&str> = names.iter().chain(&known.of_faults).copied().collect();
        sum.add(name, before, after, known.has_restarted, (!is_whole_path).then_some(&kept));
    }
    let Sum { before, after, .. } = sum;
    let (name, evidence) = (proxy.name.to_owned(), proxy.evidence.clone());
    CountedProxy { name, side: proxy.side, evidence, before, after }
}

/// Sums the counters of services, each given with its name.
pub(super) fn sum_services(services: &[(&str, &CountedService)]) -> CountedService {
    let mut sum = Sum::new(services.len() == 1);
    for (name, CountedService { before, after }) in services {
        let has_restarted = after.as_ref().is_ok_and(|after| has_restarted(before, after));
        sum.add(name, before, after, has_restarted, None);
    }
    CountedService { before: sum.before, after: sum.after }
}

struct Sum {
    is_of_one: bool,
    before: Counters,
    after: Result<Counters, String>,
}

impl Sum {
    fn new(is_of_one: bool) -> Self {
        Self { is_of_one, before: Counters::new(), after: Ok(Counters::new()) }
    }

    fn add(
        &mut self,
        name: &str,
        before: &Counters,
        after: &Result<Counters, String>,
        has_restarted: bool,
        kept: Option<&Vec<&str>>,
    ) {
        let is_of_one = self.is_of_one;
        let named = |reason: &str| if is_of_one { reason.to_owned() } else { format!("{name}: {reason}") };
        add(&mut self.before, before, kept);
        match (after, &mut self.after) {
            (Ok(_), Ok(_)) if has_restarted => {
                self.after = Err(named("it started anew during the trial: its counters fell"));
            }
            (Ok(own), Ok(sum)) => add(sum, own, kept),
            (Err(reason), Ok(_)) => self.after = Err(named(reason)),
            (_, Err(_)) => {}
        }
    }
}

fn add(sum: &mut Counters, counters: &Counters, kept: Option<&Vec<&str>>) {
    let mut add = |name: &str, count: u64| match sum.get_mut(name) {
        Some(total) => *total = total.saturating_add(count),
        None => drop(sum.insert(name.to_owned(), count)),
    };
    match kept {
        Some(names) => {
            let counts = names.iter().filter_map(|name| Some((*name, *counters.get(*name)?)));
            counts.for_each(|(name, count)| add(name, count));
        }
        None => counters.iter().for_each(|(name, count)| add(name, *count)),
    }
}

fn has_restarted(before: &Counters, after: &Counters) -> bool {
    before.iter().any(|(name, before)| after.get(name).is_some_and(|after| after < before))
}
