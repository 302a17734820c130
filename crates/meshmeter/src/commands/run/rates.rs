//! Rates of a trial as counted by generators, gateways and destinations. If they disagree, where the requests
//! went.
//!
//! Readings at the ends of a window never fall on the same request: some are in flight, and a proxy at its
//! CPU limit passes them in bursts. Over the whole trial all observers count the same requests, each once, so
//! counts are compared over the whole trial. Rates refer to the requests that the generators sent in their
//! window: each count is multiplied by the requests per second sent in the window, and divided by the
//! requests sent in the whole trial.

use super::drivers::DriverRun;
use experiment::environment::deploy::ServiceCount;
use experiment::topology::Topology;
use results::{Figure, Figures, GatewayCounts, GatewayRecord, LoadResult, TrialRates, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Observers may differ by this fraction …
const MAX_DIFFERENCE: f64 = 0.01;
/// … plus this many requests.
const MAX_DIFFERENCE_REQUESTS: f64 = 1.0;

/// Counts of a trial by each observer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counted {
    /// Requests sent by the generators over the whole trial, warm-up included.
    sent: u64,
    /// Those of `sent` that had a response.
    answered: u64,
    /// Responses per second in the window, divided by responses of the whole trial: converts counts of a trial to rates.
    per_request: f64,
    /// Responses per second in the window.
    completed_per_s: f64,
    /// Responses per second in the window by status, without successful ones.
    refused_per_s: BTreeMap<String, f64>,
    /// Sum over all gateways; `None` if a driver's requests pass none, or a gateway could not be read.
    gateway: Option<GatewayCounts>,
    /// Maximum number of requests in flight.
    in_flight: usize,
    /// Length of the generators' window, seconds.
    duration_s: f64,
    /// Requests received by all targets; `None` if a target was not read, or has callers other than drivers.
    destination: Option<u64>,
}

impl Counted {
    /// `None` if a driver has no result.
    pub(super) fn new(
        drivers: &[DriverRun],
        gateways: &[GatewayRecord],
        services: &[ServiceCount],
        topology: &Topology,
    ) -> Option<Self> {
        let results: Vec<&LoadResult> = drivers.iter().map(DriverRun::result).collect::<Option<_>>()?;
        let timed = || results.iter().filter(|result| result.duration_s > 0.0);
        let sent: u64 = results.iter().map(|result| result.warmup.sent + result.requests.sent).sum();
        let answered: u64 =
            results.iter().map(|result| result.warmup.completed + result.requests.completed).sum();
        let completed_per_s: f64 = timed().map(|result| result.rate.completed).sum();
        let per_request = if answered > 0 {
            completed_per_s / answered as f64
        } else {
            timed().map(|result| result.rate.sent).sum::<f64>() / sent.max(1) as f64
        };
        let mut refused_per_s: BTreeMap<String, f64> = BTreeMap::new();
        for result in timed() {
            // Some of the responses to requests of the window came after it.
            let per_response = result.rate.completed / result.requests.completed.max(1) as f64;
            for (status, count) in result.requests.status.iter().filter(|(status, _)| !is_success(status)) {
                *refused_per_s.entry(status.clone()).or_default() += *count as f64 * per_response;
            }
        }
        (sent > 0).then(|| Self {
            sent,
            answered,
            per_request,
            completed_per_s,
            refused_per_s,
            in_flight: results.iter().map(|result| in_flight(result)).sum(),
            duration_s: results.iter().map(|result| result.duration_s).fold(0.0, f64::max),
            gateway: of_gateways(gateways, topology),
            destination: of_destinations(services, topology),
        })
    }

    pub(super) fn rates(&self) -> TrialRates {
        TrialRates {
            generator: self.completed_per_s,
            gateway: self.gateway.as_ref().map(|gateway| self.per_s(gateway.requests)),
            destination: self.destination.map(|requests| self.per_s(requests)),
        }
    }

    fn per_s(&self, requests: u64) -> f64 {
        requests as f64 * self.per_request
    }

    /// Adds a reason if the observers disagree. It spoils nothing if the counts explain where all requests
    /// went.
    pub(super) fn check(&self, verdict: &mut Verdict) {
        let TrialRates { generator, gateway, destination } = self.rates();
        let observed = [
            Some(("generator completed", generator)),
            gateway.map(|rate| ("gateway received", rate)),
            destination.map(|rate| ("destination", rate)),
        ];
        let observed: Vec<(&str, f64)> = observed.into_iter().flatten().collect();
        let rates = || observed.iter().map(|(_, rate)| *rate);
        if !self.differ(rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max)) {
            return;
        }
        let (known, unknown) = self.whereabouts();
        let told: Vec<String> =
            observed.iter().map(|(observer, rate)| format!("{observer} {}", per_second(*rate))).collect();
        let where_to: Vec<String> = known.into_iter().chain(unknown.iter().cloned()).collect();
        let where_to = if where_to.is_empty() { String::new() } else { format!(": {}", where_to.join("; ")) };
        let figures =
            if unknown.is_empty() { Figures::none() } else { Figures::none().with(Figure::Throughput) };
        verdict.spoil(format!("rates-disagree: {}{where_to}", told.join(", ")), figures);
    }

    /// Notes gateways whose rate between their own two readings differs. The allowed difference follows from
    /// the difference of the intervals, and from the requests in flight at their ends.
    pub(super) fn note_intervals(&self, gateways: &[GatewayRecord], verdict: &mut Verdict) {
        let Some(expected) = self.rates().gateway.filter(|rate| *rate > 0.0 && self.duration_s > 0.0) else {
            return;
        };
        let found: f64 = gateways.iter().map(|gateway| gateway.requests_per_s).sum();
        let offset_s =
            gateways.iter().map(|gateway| (gateway.window_s - self.duration_s).abs()).fold(0.0, f64::max);
        let under_way = 2.0 * self.in_flight as f64 / (expected * self.duration_s);
        let allowed = MAX_DIFFERENCE + offset_s / self.duration_s + under_way;
        if (found - expected).abs() > allowed * expected {
            let (found, expected) = (per_second(found), per_second(expected));
            verdict.notes.push(format!(
                "intervals: between its own readings the gateway received {found}, in the generators' window {expected}"
            ));
        }
    }

    fn differ(&self, one: f64, other: f64) -> bool {
        let slack = MAX_DIFFERENCE_REQUESTS * self.per_request;
        (one - other).abs() > MAX_DIFFERENCE * one.max(other) + slack
    }

    /// Where requests went: those accounted for, and those lost.
    fn whereabouts(&self) -> (Vec<String>, Vec<String>) {
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        let is_some = |requests: u64| self.differ(0.0, self.per_s(requests));
        let rate = |requests: u64| per_second(self.per_s(requests));
        let unanswered = self.sent.saturating_sub(self.answered);
        if is_some(unanswered) {
            known.push(format!("{} had no response at the generator", rate(unanswered)));
        }
        let differ = |one: u64, other: u64| self.differ(self.per_s(one), self.per_s(other));
        // A proxy after the gateway may retry requests; the proof of the path knows how many.
        let mut at_destination = |sent: u64, from: &str| match self.destination {
            Some(received) if differ(sent, received) && received < sent => {
                unknown.push(format!("{} {from} and did not reach the destination", rate(sent - received)));
            }
            Some(received) if differ(sent, received) => {
                known.push(format!("{} reached the destination besides", rate(received - sent)));
            }
            _ => {}
        };
        let Some(gateway) = &self.gateway else {
            at_destination(self.sent, "left the generator");
            return (known, unknown);
        };
        at_destination(gateway.forwarded, "left the gateway");
        if differ(self.sent, gateway.requests) {
            let (fewer, more) =
                (self.sent.saturating_sub(gateway.requests), gateway.requests.saturating_sub(self.sent));
            unknown.push(if fewer > 0 {
                format!("{} did not reach the gateway", rate(fewer))
            } else {
                format!("{} reached the gateway from elsewhere", rate(more))
            });
        }
        let own = gateway.not_forwarded();
        if is_some(own) {
            known.push(format!(
                "{} were answered by the gateway itself{}",
                rate(own),
                self.statuses(gateway)
            ));
        }
        if is_some(gateway.retries) {
            known.push(format!("{} were repeated by the gateway", rate(gateway.retries)));
        }
        (known, unknown)
    }

    /// Statuses as the generators counted them, or else status classes as the gateway counted them.
    fn statuses(&self, gateway: &GatewayCounts) -> String {
        let refused =
            self.refused_per_s.iter().map(|(status, rate)| format!("{status}: {}", per_second(*rate)));
        let mut told: Vec<String> = refused.collect();
        if told.is_empty() {
            let classes = gateway.responses.iter().filter(|(class, _)| class.as_str() != "2xx");
            told = classes
                .map(|(class, count)| format!("{class}: {}", per_second(self.per_s(*count))))
                .collect();
        }
        if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) }
    }
}

fn in_flight(result: &LoadResult) -> usize {
    result.clients.unwrap_or(result.connections * result.streams.max(1))
}

fn is_success(status: &str) -> bool {
    status.starts_with('2')
}

fn per_second(rate: f64) -> String {
    let decimals = usize::from(rate < 100.0);
    format!("{rate:.decimals$}/s")
}

fn of_gateways(gateways: &[GatewayRecord], topology: &Topology) -> Option<GatewayCounts> {
    let passed: BTreeSet<&str> =
        gateways.iter().flat_map(|gateway| &gateway.targets).map(String::as_str).collect();
    let targets = topology.drivers.iter().map(|driver| topology.workloads[driver.target].qualified_name());
    let is_entry = !gateways.is_empty() && targets.into_iter().all(|target| passed.contains(target.as_str()));
    if !is_entry {
        return None;
    }
    let mut sum = GatewayCounts::default();
    for gateway in gateways {
        let GatewayCounts { requests, forwarded, retries, responses } = gateway.whole_trial.as_ref()?;
        sum.requests += requests;
        sum.forwarded += forwarded;
        sum.retries += retries;
        for (class, count) in responses {
            *sum.responses.entry(class.clone()).or_default() += count;
        }
    }
    Some(sum)
}

fn of_destinations(services: &[ServiceCount], topology: &Topology) -> Option<u64> {
    let targets: BTreeSet<usize> = topology.drivers.iter().map(|driver| driver.target).collect();
    if topology.calls.iter().any(|call| {
        let is_of_driver = topology.drivers.iter().any(|driver| driver.at == call.from);
        targets.contains(&call.to) && !is_of_driver
    }) {
        return None;
    }
    let requests = |target: &usize| {
        let workload = &topology.workloads[*target];
        let is_meant =
            |count: &&ServiceCount| count.name == workload.name && count.namespace == workload.namespace;
        services.iter().find(is_meant)?.requests
    };
    targets.iter().map(requests).sum()
}

#[cfg(test)]
mod tests;
