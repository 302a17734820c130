//! Latency that modes add at each entry point, at the greatest load that was measured in both.

use super::{Cell, rate_of_all};
use crate::interval;
use crate::summary::resolution_us;
use crate::trials::{are_enough, events_beyond};
use results::{EntryLatency, Estimate, Figure, Mode, PricedEntry, PricedMode};
use std::collections::BTreeMap;

pub(super) struct Entries<'a> {
    cells: &'a [Cell<'a>],
}

impl<'a> Entries<'a> {
    pub fn new(cells: &'a [Cell<'a>]) -> Self {
        Self { cells }
    }

    /// Entries whose target is in one of these namespaces; none for a mode without a floor.
    pub fn of(&self, mode: Mode, is_own: impl Fn(&str) -> bool) -> Vec<PricedEntry> {
        let Some((cell, floor)) = self.pair(mode) else { return Vec::new() };
        let drivers = cell.topology.drivers.iter();
        let own = drivers.filter(|driver| is_own(&cell.topology.workloads[driver.target].namespace));
        let entry = |name: &str| {
            let added =
                |figure: Figure| difference(&readings(cell, name, figure)?, &readings(floor, name, figure)?);
            let added_us = EntryLatency { p50: added(Figure::P50), p99: added(Figure::P99) };
            PricedEntry { name: name.to_owned(), added_us }
        };
        own.map(|driver| entry(&driver.name)).collect()
    }

    /// Requests per second of all drivers at which the latencies of these modes were measured, the least of them.
    pub fn measured_at(&self, modes: &[PricedMode]) -> Option<f64> {
        let load = |mode: &PricedMode| Some(load(self.pair(mode.mode)?.0));
        modes.iter().filter_map(load).reduce(f64::min)
    }

    /// The cell of a mode with the greatest load that its floor was measured at too, and the floor's.
    fn pair(&self, mode: Mode) -> Option<(&'a Cell<'a>, &'a Cell<'a>)> {
        let floor = mode.floor()?;
        let of_floor = |cell: &&'a Cell<'a>| {
            let at = cell.trials[0].conditions();
            let is_met = |other: &&'a Cell<'a>| {
                other.mode == floor && other.run == cell.run && other.trials[0].conditions().covers(at)
            };
            self.cells.iter().find(is_met)
        };
        let cells = self.cells.iter().filter(|cell| cell.mode == mode);
        let pairs = cells.filter_map(|cell| Some((cell, of_floor(&cell)?)));
        pairs.max_by(|(one, _), (other, _)| load(one).total_cmp(&load(other)))
    }
}

/// Requests per second of all drivers, the mean of the trials.
fn load(cell: &Cell<'_>) -> f64 {
    cell.trials.iter().map(|trial| rate_of_all(cell, trial)).sum::<f64>() / cell.trials.len() as f64
}

/// A percentile of a driver by repeat, of the first take in which it is usable; `None` if it falls among requests without a
/// response, or too few events lie beyond it.
fn readings(cell: &Cell<'_>, driver: &str, figure: Figure) -> Option<BTreeMap<usize, f64>> {
    let mut readings = BTreeMap::new();
    for trial in cell.trials {
        let drivers = trial.drivers();
        let view = drivers.iter().find(|view| view.name == driver && view.is_usable(figure));
        let Some(result) = view.and_then(|view| view.result) else { continue };
        if !are_enough(events_beyond(result, figure)?) {
            return None;
        }
        readings.entry(trial.repeat).or_insert(result.response_time_us.figure(figure)?);
    }
    Some(readings)
}

fn difference(with: &BTreeMap<usize, f64>, without: &BTreeMap<usize, f64>) -> Option<Estimate> {
    let greatest = with.values().chain(without.values()).copied().fold(0.0, f64::max);
    interval::difference(with, without, resolution_us(greatest))
}
