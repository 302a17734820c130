//! Requests and calls of all traces, added up.

use super::graph::{Call, Graph, Names, Request};
use crate::histogram::Histogram;
use crate::parties::{Callee, MAX_PAIRS, Name, Party, TooMuch, UNKNOWN};
use std::collections::BTreeMap;

/// Maximum number of calls of one callee's endpoint per request that have a place in the order; the others count.
const MAX_SLOTS: usize = 32;
/// Maximum number of endpoints, calls of endpoints, and orders of two calls in all.
const MAX_ENDPOINTS: usize = 50_000;
const MAX_RELATIONS: usize = 1_000_000;
/// Number of bins between a value and its double: bins are 9 % wide.
const BINS_PER_DOUBLE: f64 = 8.0;

/// Values in bins, whose sum is exact.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    /// Number of values by the bin's upper bound: the power of 2 times [`BINS_PER_DOUBLE`].
    bins: BTreeMap<i16, u32>,
    sum: f64,
    count: u64,
}

impl Values {
    pub(super) fn add(&mut self, value: f64) {
        if value.is_finite() && value >= 0.0 {
            let bin = (value.max(1e-9).log2() * BINS_PER_DOUBLE).ceil() as i16;
            *self.bins.entry(bin).or_default() += 1;
            self.sum += value;
            self.count += 1;
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (bin, count) in &other.bins {
            *self.bins.entry(*bin).or_default() += count;
        }
        self.sum += other.sum;
        self.count += other.count;
    }

    pub(super) fn histogram(&self) -> Histogram {
        let (mut buckets, mut below) = (Vec::new(), 0.0);
        for (bin, count) in &self.bins {
            let bound = |bin: i16| (f64::from(bin) / BINS_PER_DOUBLE).exp2();
            if !self.bins.contains_key(&(bin - 1)) {
                buckets.push((bound(bin - 1), below));
            }
            below += f64::from(*count);
            buckets.push((bound(*bin), below));
        }
        Histogram { buckets, sum: self.sum, count: self.count as f64 }
    }
}

/// Callee and endpoint of a call.
pub(super) type Key = (Callee, Name);
/// A call of a request: the first of its key, the second, …
pub(super) type Place = (Key, u8);

/// Everything that traces say.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(super) names: Names,
    /// By service and endpoint.
    pub(super) endpoints: BTreeMap<(Party, Name), EndpointTally>,
    /// By caller and callee.
    pub(super) edges: BTreeMap<(Option<Callee>, Callee), EdgeTally>,
    pub(crate) messages: u64,
    /// Calls whose callee no span names.
    pub(crate) lost: u64,
    calls: usize,
    relations: usize,
}

/// Calls from one service to another.
#[derive(Clone, Debug, Default)]
pub(crate) struct EdgeTally {
    pub(crate) requests: u64,
    pub(super) errors: u64,
    pub(super) grpc: u64,
    pub(super) at_caller: Values,
    pub(super) at_callee: Values,
    pub(super) request_bytes: Values,
    pub(super) response_bytes: Values,
    /// Requests by endpoint of the callee.
    pub(super) endpoints: BTreeMap<Name, u64>,
    /// Calls that their callee's span lies outside of, and the largest distance in nanoseconds.
    pub(crate) skewed: u64,
    pub(crate) largest_skew: i64,
}

/// Requests to an endpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct EndpointTally {
    pub(super) requests: u64,
    pub(super) own: Values,
    pub(super) calls: BTreeMap<Key, CallTally>,
    pub(super) relations: BTreeMap<(Place, Place), Relation>,
}

/// Calls of an endpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct CallTally {
    /// Of requests in which none failed: number that made at least that call, and seconds until it in all.
    pub(super) slots: Vec<(u64, f64)>,
    /// Calls beyond the slots.
    pub(super) beyond: u64,
    /// Requests in which some failed, by their number of calls.
    pub(super) failed: BTreeMap<u8, u64>,
    /// Calls that a proxy repeated, and the most attempts of one.
    pub(super) repeated: u64,
    pub(super) most_attempts: u32,
}

/// Two calls in the requests that made both.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Relation {
    pub(super) both: u64,
    pub(super) overlap: u64,
    pub(super) before: u64,
}

impl Relation {
    pub(super) fn merge(&mut self, other: Self) {
        self.both += other.both;
        self.overlap += other.overlap;
        self.before += other.before;
    }

    /// The same of the two calls in the other order.
    pub(super) fn reversed(self) -> Self {
        Self { before: self.both - self.before, ..self }
    }
}

impl EdgeTally {
    pub(super) fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.errors += other.errors;
        self.grpc += other.grpc;
        self.at_caller.merge(&other.at_caller);
        self.at_callee.merge(&other.at_callee);
        self.request_bytes.merge(&other.request_bytes);
        self.response_bytes.merge(&other.response_bytes);
        for (endpoint, requests) in &other.endpoints {
            *self.endpoints.entry(*endpoint).or_default() += requests;
        }
        self.skewed += other.skewed;
        self.largest_skew = self.largest_skew.max(other.largest_skew);
    }

    fn add(&mut self, call: Option<&Call>, request: Option<&Request>) {
        let Some(span) = call.map(|call| &call.span).or(request.map(|request| &request.span)) else { return };
        let served = request.filter(|request| request.is_whole).map(|request| &request.span);
        self.requests += 1;
        self.errors += u64::from(span.is_error || served.is_some_and(|span| span.is_error));
        self.grpc += u64::from(span.is_grpc || served.is_some_and(|span| span.is_grpc));
        *self.endpoints.entry(served.map_or(span.endpoint, |span| span.endpoint)).or_default() += 1;
        if let Some(call) = call {
            self.at_caller.add(call.span.seconds());
            self.skewed += u64::from(call.skew > 0);
            self.largest_skew = self.largest_skew.max(call.skew);
        }
        if let Some(served) = served {
            self.at_callee.add(served.seconds());
        }
        let size = |of: f32, served: Option<f32>| f64::from(served.unwrap_or(f32::NAN).max(of));
        self.request_bytes.add(size(span.request_bytes, served.map(|span| span.request_bytes)));
        self.response_bytes.add(size(span.response_bytes, served.map(|span| span.response_bytes)));
    }
}

impl CallTally {
    pub(super) fn merge(&mut self, other: &Self) {
        self.slots.resize(self.slots.len().max(other.slots.len()), (0, 0.0));
        for (own, other) in self.slots.iter_mut().zip(&other.slots) {
            *own = (own.0 + other.0, own.1 + other.1);
        }
        self.beyond += other.beyond;
        for (calls, requests) in &other.failed {
            *self.failed.entry(*calls).or_default() += requests;
        }
        self.repeated += other.repeated;
        self.most_attempts = self.most_attempts.max(other.most_attempts);
    }

    /// Probability of each call of a request, the first, the second, …; that of the last is above 1 for calls beyond.
    pub(super) fn probabilities(&self, requests: u64) -> Vec<f64> {
        let mut made: Vec<f64> = self.slots.iter().map(|(made, _)| *made as f64).collect();
        made.resize(made.len().max(1), 0.0);
        for (calls, requests) in &self.failed {
            made.iter_mut().take(usize::from(*calls)).for_each(|made| *made += *requests as f64);
        }
        if let Some(last) = made.last_mut() {
            *last += self.beyond as f64;
        }
        made.into_iter().map(|made| made / requests.max(1) as f64).collect()
    }

    /// Calls beyond those of requests in which none fails: they repeat a failed one. With the most of a request.
    pub(super) fn retries(&self) -> (u64, u32) {
        let usual = self.slots.len().max(1);
        let beyond =
            self.failed.iter().map(|(calls, requests)| (usize::from(*calls).saturating_sub(usual), requests));
        beyond.fold((0, 0), |(all, most), (retries, requests)| {
            (all + retries as u64 * requests, most.max(retries as u32))
        })
    }
}

/// A call in the order of its request.
struct Made {
    key: Key,
    start: i64,
    end: i64,
    is_failed: bool,
    has_place: bool,
    attempts: usize,
}

impl Tally {
    pub(super) fn add(&mut self, graph: &Graph) -> Result<(), TooMuch> {
        self.messages += graph.messages;
        for request in graph.requests.iter().filter(|request| request.call.is_none()) {
            let to = Callee::Workload(request.span.party);
            self.edge((request.span.peer, to))?.add(None, Some(request));
        }
        for call in &graph.calls {
            let request = call.requests.last().map(|request| &graph.requests[*request]);
            match callee(graph, call) {
                Some(to) => self.edge((Some(Callee::Workload(call.from)), to))?.add(Some(call), request),
                None => self.lost += 1,
            }
        }
        graph
            .requests
            .iter()
            .filter(|request| request.is_whole)
            .try_for_each(|request| self.request(graph, request))
    }

    fn edge(&mut self, key: (Option<Callee>, Callee)) -> Result<&mut EdgeTally, TooMuch> {
        if self.edges.len() >= MAX_PAIRS && !self.edges.contains_key(&key) {
            return Err(TooMuch::Pairs);
        }
        Ok(self.edges.entry(key).or_default())
    }

    fn request(&mut self, graph: &Graph, request: &Request) -> Result<(), TooMuch> {
        let span = &request.span;
        let mut made: Vec<Made> =
            request.calls.iter().filter_map(|call| made(graph, &graph.calls[*call])).collect();
        made.sort_by_key(|call| call.start);
        let mut key = (span.party, span.endpoint);
        if self.endpoints.len() >= MAX_ENDPOINTS && !self.endpoints.contains_key(&key) {
            key.1 = UNKNOWN;
        }
        let endpoint = self.endpoints.entry(key).or_default();
        endpoint.requests += 1;
        endpoint.own.add(own_s(
            (span.start, span.end),
            request.calls.iter().map(|call| &graph.calls[*call].span).map(|span| (span.start, span.end)),
        ));
        let mut by_key: BTreeMap<Key, Vec<&Made>> = BTreeMap::new();
        made.iter().for_each(|call| by_key.entry(call.key).or_default().push(call));
        let mut places: Vec<(Place, &Made)> = Vec::new();
        for (key, calls) in by_key {
            if !endpoint.calls.contains_key(&key) {
                self.calls += 1;
            }
            let tally = endpoint.calls.entry(key).or_default();
            tally.add(span.start, &calls);
            if !calls.iter().any(|call| call.is_failed) {
                let kept = calls.into_iter().take(MAX_SLOTS).enumerate();
                places.extend(kept.map(|(place, call)| ((key, place as u8), call)));
            }
        }
        if self.calls > MAX_PAIRS {
            return Err(TooMuch::Pairs);
        }
        places.retain(|(_, call)| call.has_place);
        for (index, (one, first)) in places.iter().enumerate() {
            for (other, second) in &places[index + 1..] {
                let full = self.relations >= MAX_RELATIONS;
                if full && !endpoint.relations.contains_key(&(*one, *other)) {
                    continue;
                }
                let relation = endpoint.relations.entry((*one, *other)).or_insert_with(|| {
                    self.relations += 1;
                    Relation::default()
                });
                relation.both += 1;
                relation.overlap += u64::from(first.start < second.end && second.start < first.end);
                relation.before += u64::from(first.start < second.start);
            }
        }
        Ok(())
    }
}

impl CallTally {
    /// Adds the calls of a request that began at a time.
    fn add(&mut self, began: i64, calls: &[&Made]) {
        for attempts in calls.iter().map(|call| call.attempts).filter(|attempts| *attempts > 1) {
            self.repeated += attempts as u64 - 1;
            self.most_attempts = self.most_attempts.max(attempts as u32);
        }
        if calls.iter().any(|call| call.is_failed) {
            *self.failed.entry(calls.len().min(u8::MAX.into()) as u8).or_default() += 1;
            return;
        }
        let slots = calls.len().min(MAX_SLOTS);
        self.slots.resize(self.slots.len().max(slots), (0, 0.0));
        for ((made, seconds), call) in self.slots.iter_mut().zip(calls) {
            *made += 1;
            *seconds += (call.start - began) as f64 / 1e9;
        }
        self.beyond += (calls.len() - slots) as u64;
    }
}

fn callee(graph: &Graph, call: &Call) -> Option<Callee> {
    let served = call.requests.first().map(|request| Callee::Workload(graph.requests[*request].span.party));
    served.or(call.callee)
}

fn made(graph: &Graph, call: &Call) -> Option<Made> {
    let last = call.requests.last().map(|request| &graph.requests[*request].span);
    Some(Made {
        key: (callee(graph, call)?, last.map_or(call.span.endpoint, |span| span.endpoint)),
        start: call.span.start,
        end: call.span.end,
        is_failed: call.span.is_error || last.is_some_and(|span| span.is_error),
        has_place: call.has_place,
        attempts: call.requests.len(),
    })
}

/// Seconds of a request in which no call was under way. Calls are in any order.
fn own_s((start, end): (i64, i64), calls: impl Iterator<Item = (i64, i64)>) -> f64 {
    let mut calls: Vec<(i64, i64)> = calls.collect();
    calls.sort_unstable();
    let (mut own, mut until) = (0, start);
    for (from, to) in calls {
        own += (from.min(end) - until).max(0);
        until = until.max(to);
    }
    (own + (end - until).max(0)) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{fit, median};

    #[test]
    fn own_time_is_the_rest_of_the_union_of_calls() {
        let seconds = |calls: &[(i64, i64)]| own_s((100, 200), calls.iter().copied()) * 1e9;
        assert_eq!(seconds(&[]).round(), 100.0);
        assert_eq!(seconds(&[(150, 160), (110, 130), (120, 140)]).round(), 60.0);
        // Calls that outlive the request, or began before it.
        assert_eq!(seconds(&[(190, 300), (50, 110)]).round(), 80.0);
        assert_eq!(seconds(&[(0, 500)]), 0.0);
    }

    #[test]
    fn bins_keep_the_mean_and_the_median() {
        let mut values = Values::default();
        (0..1000).for_each(|_| values.add(0.004));
        let found = fit(&values.histogram()).unwrap().distribution;
        assert!((median(&found) - 0.004).abs() < 1e-9, "{found:?}");
        values.add(0.0);
        values.add(f64::NAN);
        assert_eq!(values.count, 1001);
    }

    #[test]
    fn calls_beyond_those_without_failures_are_retries() {
        let tally = CallTally {
            slots: vec![(80, 0.0), (40, 0.0)],
            failed: BTreeMap::from([(1, 5), (2, 10), (4, 5)]),
            ..CallTally::default()
        };
        assert_eq!(tally.retries(), (10, 2));
        assert_eq!(tally.probabilities(100), [1.0, 0.55]);
        let always = CallTally { failed: BTreeMap::from([(2, 3)]), ..CallTally::default() };
        assert_eq!((always.retries(), always.probabilities(3)), ((3, 1), vec![1.0]));
    }
}
