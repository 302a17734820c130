//! Readings of services and edges in the trials of a cell: which trials count for them, and rates in the
//! window.
//!
//! Services and edges are counted over the whole trial, including the warm-up. The rate in the window is that
//! count, times what the drivers sent per second in the window, divided by what they sent in the whole trial.
//! Drivers are those of the same namespace, or all if it has none.

use results::DriverView;
use std::collections::BTreeMap;
use std::hash::Hash;

/// Readings of each service or edge, in the order in which the trials list them.
pub(super) struct Readings<Key, Reading> {
    positions: std::collections::HashMap<Key, usize>,
    readings: Vec<(Key, BTreeMap<usize, Reading>)>,
}

impl<Key: Clone + Eq + Hash, Reading> Readings<Key, Reading> {
    pub(super) fn new() -> Self {
        Self { positions: std::collections::HashMap::new(), readings: Vec::new() }
    }

    /// Adds a trial's reading; `None` if its figures are not usable. Of several takes the first counts, as
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

    /// Each key with its readings by repeat.
    pub(super) fn into_iter(self) -> impl Iterator<Item = (Key, BTreeMap<usize, Reading>)> {
        self.readings.into_iter()
    }
}

/// Rate in the window per request of the whole trial, by namespace.
pub(super) struct WindowRates<'a> {
    drivers: Vec<DriverView<'a>>,
}

impl<'a> WindowRates<'a> {
    pub(super) fn new(drivers: Vec<DriverView<'a>>) -> Self {
        Self { drivers }
    }

    /// `None` if a driver of the namespace is not valid.
    pub(super) fn of(&self, namespace: &str) -> Option<f64> {
        let is_own = |driver: &&DriverView<'_>| driver.namespace == namespace;
        let mut own: Vec<&DriverView<'_>> = self.drivers.iter().filter(is_own).collect();
        if own.is_empty() {
            own = self.drivers.iter().collect();
        }
        own.iter().all(|driver| driver.is_valid()).then(|| rate_per_request(&own))
    }
}

/// Not finite if nothing was sent.
fn rate_per_request(drivers: &[&DriverView<'_>]) -> f64 {
    let (mut in_window_per_s, mut in_trial) = (0.0, 0.0);
    for result in drivers.iter().filter_map(|driver| driver.result) {
        // A backlog is still sent after the window.
        let in_window = result.requests.sent.saturating_sub(result.requests.late);
        in_window_per_s += in_window as f64 / result.duration_s;
        in_trial += (result.warmup.sent + result.requests.sent) as f64;
    }
    in_window_per_s / in_trial
}
