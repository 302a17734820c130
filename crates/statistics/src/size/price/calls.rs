//! Latency that a mode adds to each call between services, and the calls that a response of an entry point waits for.
//!
//! A caller measures a call from its request to the end of the response: what a mode adds to it contains what it adds to the calls
//! of the callee. A response waits for its steps one after the other, and of parallel branches for the one that takes longest by
//! the medians of this mode.

use super::Cell;
use super::entries::difference;
use crate::trials::{are_enough, usable};
use experiment::topology::script::Step;
use experiment::topology::{DriverPlacement, Topology, WorkloadId};
use results::{EntryLatency, Estimate, Figure, PricedCall};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum number of calls of a critical path.
const MAX_PATH: usize = 1000;

/// Caller and callee, qualified names.
type Call<'a> = (&'a str, &'a str);
/// A percentile of each call by repeat.
type Readings<'a> = HashMap<Call<'a>, BTreeMap<usize, f64>>;

/// Calls of a mode with what it adds.
pub(super) struct AddedCalls<'a> {
    topology: &'a Topology,
    added: BTreeMap<Call<'a>, EntryLatency>,
    /// Median of each call in this mode, seconds.
    median_s: HashMap<Call<'a>, f64>,
}

impl<'a> AddedCalls<'a> {
    /// Calls between services that both cells measured.
    pub fn new(cell: &'a Cell<'a>, floor: &'a Cell<'a>) -> Self {
        let both = |figure: Figure| (readings(cell, figure), readings(floor, figure));
        let ((p50, floor_p50), (p99, floor_p99)) = (both(Figure::P50), both(Figure::P99));
        let latency = |call: &Call<'a>| {
            let added_us =
                EntryLatency { p50: added(call, &p50, &floor_p50), p99: added(call, &p99, &floor_p99) };
            (added_us != EntryLatency::default()).then_some((*call, added_us))
        };
        let mean = |values: &BTreeMap<usize, f64>| values.values().sum::<f64>() / values.len() as f64;
        Self {
            topology: &cell.topology,
            added: p50.keys().filter_map(latency).collect(),
            median_s: p50.iter().map(|(call, values)| (*call, mean(values) / 1e6)).collect(),
        }
    }

    /// Every call.
    pub fn all(&self) -> Vec<PricedCall> {
        self.added.iter().map(|(call, added_us)| priced(*call, *added_us)).collect()
    }

    /// Calls that a response to a driver waits for, in their order.
    pub fn critical_path(&self, driver: &DriverPlacement) -> Vec<PricedCall> {
        let names: Vec<String> = self.topology.workloads.iter().map(|one| one.qualified_name()).collect();
        let (mut path, mut on_path, mut seen) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let mut due = vec![(driver.target, driver.endpoint.as_str())];
        while let Some((service, endpoint)) = due.pop().filter(|_| path.len() < MAX_PATH) {
            if !seen.insert((service, endpoint)) {
                continue;
            }
            let script = self.topology.workloads[service].script();
            let Some(endpoint) = script.and_then(|script| script.endpoint(endpoint)) else { continue };
            let (_, calls) = self.waits(&names, service, &endpoint.steps);
            // The calls of the first one come before the second.
            due.extend(calls.iter().rev());
            for call in calls.iter().map(|(callee, _)| (names[service].as_str(), names[*callee].as_str())) {
                if on_path.insert(call) {
                    path.push(priced(call, self.added.get(&call).copied().unwrap_or_default()));
                }
            }
        }
        path
    }

    /// Expected seconds of steps, and the calls among them that the response waits for, each with its endpoint.
    fn waits<'b>(
        &self,
        names: &[String],
        service: WorkloadId,
        steps: &'b [Step],
    ) -> (f64, Vec<(WorkloadId, &'b str)>) {
        let call_s = |callee: WorkloadId, probability: f64| {
            let call = (names[service].as_str(), names[callee].as_str());
            probability * self.median_s.get(&call).copied().unwrap_or(0.0)
        };
        let step = |step: &'b Step| match step {
            Step::Call(call) => (call_s(call.to, call.probability), vec![(call.to, call.endpoint.as_str())]),
            Step::Query(query) => (call_s(query.to, query.probability), vec![(query.to, "")]),
            Step::Sequence(steps) => self.waits(names, service, steps),
            Step::Parallel(branches) => {
                let branches =
                    branches.iter().map(|branch| self.waits(names, service, std::slice::from_ref(branch)));
                branches.reduce(|one, next| if next.0 > one.0 { next } else { one }).unwrap_or_default()
            }
            Step::Sleep(time) | Step::Compute(time) => (time.mean(), Vec::new()),
            Step::Hold(_) => (0.0, Vec::new()),
        };
        steps.iter().map(step).fold((0.0, Vec::new()), |(sum, mut calls), (time, own)| {
            calls.extend(own);
            (sum + time, calls)
        })
    }
}

fn priced((from, to): Call<'_>, added_us: EntryLatency) -> PricedCall {
    PricedCall { from: from.to_owned(), to: to.to_owned(), added_us }
}

fn added<'a>(call: &Call<'a>, with: &Readings<'a>, without: &Readings<'a>) -> Option<Estimate> {
    difference(with.get(call)?, without.get(call)?)
}

/// A percentile of each call by repeat, of the first take in which it is usable. A call is left out if the percentile falls among
/// requests without a response in any of them, or too few requests lie beyond it.
fn readings<'a>(cell: &'a Cell<'a>, figure: Figure) -> Readings<'a> {
    let beyond = figure.quantile().map_or(0.0, |quantile| 1.0 - quantile);
    let mut readings: HashMap<Call<'a>, Option<BTreeMap<usize, f64>>> = HashMap::new();
    for trial in usable(cell.trials, figure) {
        for edge in &trial.edges {
            let times = edge.response_time_us.as_ref();
            let times = times.filter(|times| are_enough(times.requests() as f64 * beyond));
            let own = readings
                .entry((edge.from.as_str(), edge.to.as_str()))
                .or_insert_with(|| Some(BTreeMap::new()));
            match times.and_then(|times| times.figure(figure)) {
                Some(value) => {
                    own.iter_mut().for_each(|own| {
                        own.insert(trial.repeat, value);
                    });
                }
                None => *own = None,
            }
        }
    }
    readings.into_iter().filter_map(|(call, own)| Some((call, own?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::topology::file::read;

    #[test]
    fn responses_wait_for_the_longest_branch() {
        let text = "{name: shop, services: [{name: web, script: [{call: auth}, {parallel: [{call: cart}, [{call: ads}, {call: ads}], \
                    {call: {service: rare, probability: 1%}}]}, {sleep: 1ms}]}, {name: auth}, {name: cart, script: [{call: db}]}, \
                    {name: ads}, {name: rare}, {name: db}], drivers: [{target: web}]}";
        let topology = read(text, "shop").unwrap();
        let path = |ads_s: f64| {
            let median_s = [("cart", 0.005), ("ads", ads_s), ("rare", 0.4), ("auth", 0.001)];
            let added = AddedCalls {
                topology: &topology,
                added: BTreeMap::new(),
                median_s: median_s
                    .into_iter()
                    .map(|(callee, median_s)| (("web", callee), median_s))
                    .collect(),
            };
            let path = added.critical_path(&topology.drivers[0]);
            path.into_iter().map(|call| format!("{} {}", call.from, call.to)).collect::<Vec<_>>()
        };
        assert_eq!(path(0.002), ["web auth", "web cart", "cart db"]);
        assert_eq!(path(0.003), ["web auth", "web ads"], "two of 3 ms take longer than one of 5");
    }
}
