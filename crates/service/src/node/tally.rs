//! Counters of a node, per worker: incoming requests by outcome, and outgoing calls by callee.

use super::application::Application;
use crate::counters::{Count, Counters, Tally};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Significant digits of recorded response times.
const DIGITS: u8 = 3;
/// Response times above this are recorded as this: one hour.
const MAX_RESPONSE_TIME: Duration = Duration::from_secs(3600);

/// How a request was answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// With a success response, as its script says.
    Answered,
    /// With an injected error.
    Injected,
    /// With an error, because a call or a query failed.
    CalleeFailed,
}

impl Outcome {
    pub(crate) const ALL: [Self; 3] = [Self::Answered, Self::Injected, Self::CalleeFailed];
}

/// Counters of one worker.
#[derive(Debug)]
pub(crate) struct WorkerTally {
    pub inbound: Arc<Tally>,
    /// Requests to each endpoint by [`Outcome`].
    pub endpoints: Vec<[Count; Outcome::ALL.len()]>,
    /// Requests to unknown endpoints.
    pub unknown: Count,
    /// In the order of [`Application::callees`], followed by databases.
    pub calls: Vec<CallTally>,
}

impl WorkerTally {
    pub(crate) fn new(application: &Application) -> Self {
        let callees = application.callees.len() + application.databases.len();
        Self {
            inbound: Arc::default(),
            endpoints: application.endpoints.iter().map(|_| <[Count; _]>::default()).collect(),
            unknown: Count::default(),
            calls: (0..callees).map(|_| CallTally::default()).collect(),
        }
    }
}

/// Counters of one worker's calls to one callee. Sent = answered + failed + resent + in flight.
#[derive(Debug)]
pub(crate) struct CallTally {
    pub sent: Count,
    pub answered: Count,
    pub failed: Count,
    pub retries: Count,
    /// Sent on a connection that the callee was closing, and resent on another.
    pub resent: Count,
    /// Attempts for which no connection could be opened.
    pub unsent: Count,
    pub connections: Count,
    pub connections_open: AtomicUsize,
    pub bytes_sent: Count,
    pub bytes_received: Count,
    /// Response times of calls with a response, including errors.
    response_time_us: Mutex<Histogram<u64>>,
}

impl Default for CallTally {
    fn default() -> Self {
        Self {
            sent: Count::default(),
            answered: Count::default(),
            failed: Count::default(),
            retries: Count::default(),
            resent: Count::default(),
            unsent: Count::default(),
            connections: Count::default(),
            connections_open: AtomicUsize::new(0),
            bytes_sent: Count::default(),
            bytes_received: Count::default(),
            response_time_us: Mutex::new(histogram()),
        }
    }
}

/// A histogram that grows with the greatest value.
fn histogram() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("three digits are possible")
}

/// An attempt at a call. If dropped without a success response, it counts as failed, or as unsent if it was
/// never sent.
#[derive(Debug)]
pub(crate) struct Attempt<'t> {
    tally: &'t CallTally,
    repeats: bool,
    state: AttemptState,
}

#[derive(Clone, Copy, Debug)]
enum AttemptState {
    Unsent,
    Sent { at: Instant },
    Received,
    Answered,
}

impl<'t> Attempt<'t> {
    /// `repeats`: the call has failed before.
    pub(crate) fn new(tally: &'t CallTally, repeats: bool) -> Self {
        Self { tally, repeats, state: AttemptState::Unsent }
    }

    /// The request is handed to a connection.
    pub(crate) fn sent(&mut self) {
        self.tally.sent.add(1);
        if self.repeats {
            self.tally.retries.add(1);
        }
        self.state = AttemptState::Sent { at: Instant::now() };
    }

    /// The connection ended before any of the request was written.
    pub(crate) fn unwritten(&mut self) {
        self.tally.sent.take_back();
        if self.repeats {
            self.tally.retries.take_back();
        }
        self.state = AttemptState::Unsent;
    }

    /// The callee was closing the connection: the request will be resent on another.
    pub(crate) fn resent(&mut self) {
        self.tally.resent.add(1);
        self.state = AttemptState::Unsent;
    }

    /// The whole response was received, success or error.
    pub(crate) fn received(&mut self) {
        if let AttemptState::Sent { at } = self.state {
            let us = at.elapsed().min(MAX_RESPONSE_TIME).as_micros() as u64;
            let mut histogram = self.tally.response_time_us.lock().unwrap_or_else(PoisonError::into_inner);
            // Not `saturating_record`: in an auto-resizing histogram it takes the greatest value so far for
            // the limit.
            histogram.record(us).expect("it resizes itself");
            self.state = AttemptState::Received;
        }
    }

    /// The whole response was received, and is a success.
    pub(crate) fn answered(mut self) {
        self.received();
        if let AttemptState::Received = self.state {
            self.tally.answered.add(1);
        }
        self.state = AttemptState::Answered;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        match self.state {
            AttemptState::Unsent => self.tally.unsent.add(1),
            AttemptState::Sent { .. } | AttemptState::Received => self.tally.failed.add(1),
            AttemptState::Answered => {}
        }
    }
}

/// Counters of all workers.
#[derive(Clone, Debug)]
pub(crate) struct NodeTally {
    /// Qualified names in the order of [`WorkerTally::calls`].
    pub callees: Vec<String>,
    pub workers: Arc<[Arc<WorkerTally>]>,
}

/// Calls to one callee, summed over all workers.
#[derive(Debug)]
pub(crate) struct CallCounters {
    pub sent: u64,
    pub answered: u64,
    pub failed: u64,
    pub retries: u64,
    pub resent: u64,
    pub unsent: u64,
    pub connections: u64,
    pub connections_open: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub response_time_us: Histogram<u64>,
}

impl NodeTally {
    pub(crate) fn new(application: &Application, threads: usize) -> Self {
        let callees = application.callees.iter().map(|callee| &callee.name);
        let databases = application.databases.iter().map(|database| &database.name);
        Self {
            callees: callees.chain(databases).cloned().collect(),
            workers: (0..threads).map(|_| Arc::new(WorkerTally::new(application))).collect(),
        }
    }

    /// Counters of requests to the node.
    pub(crate) fn inbound(&self) -> Counters {
        let tallies: Vec<Arc<Tally>> =
            self.workers.iter().map(|worker| Arc::clone(&worker.inbound)).collect();
        Counters::sum(&tallies)
    }

    /// Sum of one counter over the workers.
    pub(crate) fn sum(&self, count: impl Fn(&WorkerTally) -> u64) -> u64 {
        self.workers.iter().map(|worker| count(worker)).sum()
    }

    pub(crate) fn calls(&self, callee: usize) -> CallCounters {
        let sum = |count: fn(&CallTally) -> &Count| self.sum(|worker| count(&worker.calls[callee]).get());
        let mut response_time_us = histogram();
        for worker in &*self.workers {
            let of_worker =
                worker.calls[callee].response_time_us.lock().unwrap_or_else(PoisonError::into_inner);
            response_time_us.add(&*of_worker).expect("it resizes itself");
        }
        CallCounters {
            sent: sum(|calls| &calls.sent),
            answered: sum(|calls| &calls.answered),
            failed: sum(|calls| &calls.failed),
            retries: sum(|calls| &calls.retries),
            resent: sum(|calls| &calls.resent),
            unsent: sum(|calls| &calls.unsent),
            connections: sum(|calls| &calls.connections),
            connections_open: self.sum(|worker| worker.calls[callee].connections_open.load(Relaxed) as u64),
            bytes_sent: sum(|calls| &calls.bytes_sent),
            bytes_received: sum(|calls| &calls.bytes_received),
            response_time_us,
        }
    }

    /// All counters as a single-line JSON object.
    pub(crate) fn to_json(&self) -> String {
        let calls: Map<String, Value> = self
            .callees
            .iter()
            .enumerate()
            .map(|(index, name)| (name.clone(), self.calls(index).to_json()))
            .collect();
        format!("{{{},\"calls\":{}}}\n", self.inbound().json_fields(), Value::Object(calls))
    }
}

impl CallCounters {
    fn to_json(&self) -> Value {
        json!({
            "sent": self.sent,
            "answered": self.answered,
            "failed": self.failed,
            "retries": self.retries,
            "resent": self.resent,
            "unsent": self.unsent,
            "connections": self.connections,
            "connections_open": self.connections_open,
            "bytes_sent": self.bytes_sent,
            "bytes_received": self.bytes_received,
            "response_time_us": encoded(&self.response_time_us),
        })
    }
}

fn encoded(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(histogram, &mut bytes).expect("writing to memory does not fail");
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_response_times_are_recorded() {
        let tally = CallTally::default();
        for ms in [1, 5, 80] {
            let mut attempt = Attempt::new(&tally, false);
            attempt.state = AttemptState::Sent { at: Instant::now() - Duration::from_millis(ms) };
            attempt.answered();
        }
        // An error is a response as well; a missing response has no time.
        for is_received in [true, false] {
            let mut attempt = Attempt::new(&tally, false);
            attempt.state = AttemptState::Sent { at: Instant::now() - Duration::from_millis(5) };
            if is_received {
                attempt.received();
            }
        }
        let times = tally.response_time_us.lock().unwrap();
        assert_eq!((tally.answered.get(), tally.failed.get(), times.len()), (3, 2, 4));
        assert!(times.value_at_quantile(0.5) >= 4990 && times.max() >= 79_900, "{}", times.max());
    }
}
