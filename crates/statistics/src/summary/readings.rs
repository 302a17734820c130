//! Readings of services and edges in the trials of a cell: which trials count for them, and rates in the window.
//!
//! Services and edges are counted over the whole trial, warm-up included. The rate in the window is the count times what the
//! drivers sent per second in the window, over what they sent in the whole trial. The drivers of a namespace are those in
//! it, or all where it has none.

use experiment::schema::DriverView;
use std::collections::BTreeMap;
use std::hash::Hash;

/// What was read of each service or edge, in the order in which the trials list them.
pub(super) struct Readings<Key, Reading> {
    positions: std::collections::HashMap<Key, usize>,
    readings: Vec<(Key, BTreeMap<usize, Reading>)>,
}

impl<Key: Clone + Eq + Hash, Reading> Readings<Key, Reading> {
    pub(super) fn new() -> Self {
        Self { positions: std::collections::HashMap::new(), readings: Vec::new() }
    }

    /// Adds what a trial of a repeat shows; absent where its figures may not be used. Of several takes the first counts, as
    /// for drivers.
    pub(super) fn add(&mut self, key: Key, repeat: usize, reading: Option<Reading>) {
        let position = *self.positions.entry(key.clone()).or_insert_with(|| {
            self.readings.push((key, BTreeMap::new()));
            self.readings.len() - 1
        });
        if let Some(reading) = reading {
            self.readings[position].1.entry(repeat).or_insert(reading);
        }
    }

    /// Each with its readings by repeat.
    pub(super) fn into_iter(self) -> impl Iterator<Item = (Key, BTreeMap<usize, Reading>)> {
        self.readings.into_iter()
    }
}

/// Requests per second in the window per request of the whole trial, by namespace.
pub(super) struct WindowRates<'a> {
    drivers: Vec<DriverView<'a>>,
}

impl<'a> WindowRates<'a> {
    pub(super) fn new(drivers: Vec<DriverView<'a>>) -> Self {
        Self { drivers }
    }

    /// Absent where a driver of the namespace is not valid.
    pub(super) fn of(&self, namespace: &str) -> Option<f64> {
        let is_own = |driver: &&DriverView<'_>| driver.namespace == namespace;
        let mut own: Vec<&DriverView<'_>> = self.drivers.iter().filter(is_own).collect();
        if own.is_empty() {
            own = self.drivers.iter().collect();
        }
        own.iter().all(|driver| driver.is_valid()).then(|| rate_per_request(&own))
    }
}

/// Not finite where nothing was sent.
fn rate_per_request(drivers: &[&DriverView<'_>]) -> f64 {
    let (mut in_window_per_s, mut in_trial) = (0.0, 0.0);
    for result in drivers.iter().filter_map(|driver| driver.result) {
        in_window_per_s += result.requests.sent as f64 / result.duration_s;
        in_trial += (result.warmup.sent + result.requests.sent) as f64;
    }
    in_window_per_s / in_trial
}
