//! Requests and calls of all traces, added up.

use super::graph::{Call, Graph, Names, Request};
use super::relations::{Relations, Timed, overlapping};
use crate::histogram::Histogram;
use crate::parties::{Callee, MAX_PAIRS, Name, Party, TooMuch, UNKNOWN};
use std::collections::BTreeMap;

/// Maximum number of calls of one callee's endpoint per request that have a place in the order; the others count.
const MAX_SLOTS: usize = 32;
/// Maximum number of endpoints in all.
const MAX_ENDPOINTS: usize = 50_000;
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
    pairs: usize,
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
    pub(super) relations: Relations,
}

/// Calls of an endpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct CallTally {
    /// Of requests in which none failed: the first call, the second, …
    pub(super) slots: Vec<SlotTally>,
    /// Calls beyond the slots.
    pub(super) beyond: u64,
    /// Requests in which some failed, by their number of calls.
    pub(super) failed: BTreeMap<u8, u64>,
    /// Calls that a proxy repeated, and the most attempts of one.
    pub(super) repeated: u64,
    pub(super) most_attempts: u32,
}

/// The first, the second, … of the same calls in all requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlotTally {
    pub(super) made: u64,
    /// Number that overlapped any other call.
    pub(super) overlapped: u64,
    /// Seconds from the start of the request, of all together.
    start_s: f64,
    end_s: f64,
}

impl SlotTally {
    /// Mean seconds from the start of the request to that of the call and to its end.
    pub(super) fn mean_s(&self) -> (f64, f64) {
        let made = self.made as f64;
        if self.made == 0 { (f64::INFINITY, f64::INFINITY) } else { (self.start_s / made, self.end_s / made) }
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
        self.slots.resize(self.slots.len().max(other.slots.len()), SlotTally::default());
        for (own, other) in self.slots.iter_mut().zip(&other.slots) {
            own.made += other.made;
            own.overlapped += other.overlapped;
            own.start_s += other.start_s;
            own.end_s += other.end_s;
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
        let mut made: Vec<f64> = self.slots.iter().map(|slot| slot.made as f64).collect();
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
        let mut places: Vec<Timed> = Vec::new();
        for (key, calls) in by_key {
            if !endpoint.calls.contains_key(&key) {
                self.calls += 1;
            }
            let tally = endpoint.calls.entry(key).or_default();
            tally.add(span.start, &calls);
            if !calls.iter().any(|call| call.is_failed) {
                let kept = calls.into_iter().take(MAX_SLOTS).enumerate().filter(|(_, call)| call.has_place);
                places.extend(kept.map(|(slot, call)| Timed {
                    place: (key, slot as u8),
                    start: call.start,
                    end: call.end,
                }));
            }
        }
        if self.calls > MAX_PAIRS {
            return Err(TooMuch::Pairs);
        }
        places.sort_unstable_by_key(|call| (call.start, call.place));
        endpoint.relations.add(&places, &mut self.pairs);
        for (call, is_overlapped) in places.iter().zip(overlapping(&places)) {
            let (key, slot) = call.place;
            if let Some(tally) = endpoint.calls.get_mut(&key).filter(|_| is_overlapped) {
                tally.slots[usize::from(slot)].overlapped += 1;
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
        self.slots.resize(self.slots.len().max(slots), SlotTally::default());
        for (slot, call) in self.slots.iter_mut().zip(calls) {
            slot.made += 1;
            slot.start_s += (call.start - began) as f64 / 1e9;
            slot.end_s += (call.end - began) as f64 / 1e9;
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
    use super::super::span::{Kind, Span};
    use super::*;
    use crate::fit::{fit, median};
    use crate::parties::Interner;

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

    /// A request with this number of calls at a time, each to another callee.
    fn fan_out(calls: usize) -> Graph {
        let mut names = Interner::new(None);
        let mut name = |text: &str| names.name(Some(text)).unwrap();
        let party = Party { namespace: UNKNOWN, workload: name("web") };
        let span = Span {
            id: 1,
            parent: 0,
            start: 0,
            end: 1_000_000,
            party,
            peer: None,
            endpoint: UNKNOWN,
            kind: Kind::Client,
            is_error: false,
            is_grpc: false,
            is_sidecar: false,
            is_proxy: false,
            request_bytes: f32::NAN,
            response_bytes: f32::NAN,
        };
        let call = |number: usize| Call {
            span,
            from: party,
            callee: Some(Callee::Host(name(&format!("c{number}")))),
            requests: Vec::new(),
            has_place: true,
            skew: 0,
        };
        let made = (0..calls).map(call).collect();
        let span = Span { kind: Kind::Server, ..span };
        let request = Request { span, is_whole: true, call: None, calls: (0..calls).collect() };
        Graph { requests: vec![request], calls: made, messages: 0 }
    }

    /// Every comparison of two calls counts in one relation.
    #[test]
    fn comparisons_grow_with_the_calls_of_a_trace_and_end_at_a_maximum() {
        let compared = |calls: usize| {
            let mut tally = Tally::default();
            let graph = fan_out(calls);
            tally.add(&graph).unwrap();
            tally.add(&graph).unwrap();
            let endpoint = tally.endpoints.values().next().unwrap();
            assert!(endpoint.calls.values().all(|call| call.slots[0].overlapped == 2));
            assert_eq!(endpoint.calls.len(), calls);
            endpoint.relations.pairs().map(|(.., relation)| relation.both).sum::<u64>()
        };
        assert_eq!(compared(50), 2 * 50 * 49 / 2);
        // Each call with the 63 after it.
        let each = |calls: u64| 2 * (calls * 63 - 63 * 64 / 2);
        assert_eq!([compared(250), compared(500)], [each(250), each(500)]);
        assert_eq!(compared(20_000), each(1000));
    }

    #[test]
    fn calls_beyond_those_without_failures_are_retries() {
        let tally = CallTally {
            slots: [80, 40].map(|made| SlotTally { made, ..SlotTally::default() }).to_vec(),
            failed: BTreeMap::from([(1, 5), (2, 10), (4, 5)]),
            ..CallTally::default()
        };
        assert_eq!(tally.retries(), (10, 2));
        assert_eq!(tally.probabilities(100), [1.0, 0.55]);
        let always = CallTally { failed: BTreeMap::from([(2, 3)]), ..CallTally::default() };
        assert_eq!((always.retries(), always.probabilities(3)), ((3, 1), vec![1.0]));
    }
}
