//! Latency that modes add at each entry point, at the greatest load that was measured in both.

use super::calls::AddedCalls;
use super::{Cell, rate_of_all};
use crate::interval;
use crate::summary::resolution_us;
use crate::trials::{are_enough, events_beyond};
use experiment::topology::DriverPlacement;
use results::{EntryLatency, Estimate, Factors, Figure, Mode, PricedEntry, PricedMode};
use std::collections::BTreeMap;

pub(super) struct Entries<'a> {
    cells: &'a [Cell<'a>],
}

impl<'a> Entries<'a> {
    pub fn new(cells: &'a [Cell<'a>]) -> Self {
        Self { cells }
    }

    /// Latency that a mode adds; `None` for a mode without a floor.
    pub fn of(&self, mode: Mode) -> Option<Added<'a>> {
        let (cell, floor) = self.pair(mode)?;
        Some(Added { cell, floor, calls: AddedCalls::new(cell, floor) })
    }

    /// Change of a mode's latency from these cells to others, which differ in values of factors, at the greatest common load.
    pub fn changes(&self, others: &[Cell<'_>], mode: Mode, changed: &Factors) -> Vec<PricedEntry> {
        let is_same = |cell: &Cell<'_>, other: &Cell<'_>| {
            let (one, other_at) = (cell.trials[0].conditions(), other.trials[0].conditions());
            let kept = |factors: &Factors| -> Factors {
                let kept = factors.iter().filter(|(key, _)| !changed.contains_key(*key));
                kept.map(|(key, value)| (key.clone(), value.clone())).collect()
            };
            let is_alike = one.load == other_at.load && kept(one.factors) == kept(other_at.factors);
            (cell.mode, cell.run) == (other.mode, other.run) && is_alike
        };
        let cells = self.cells.iter().filter(|cell| cell.mode == mode);
        let pairs = cells.filter_map(|cell| Some((cell, others.iter().find(|other| is_same(cell, other))?)));
        let Some((cell, other)) = pairs.max_by(|(one, _), (next, _)| load(one).total_cmp(&load(next))) else {
            return Vec::new();
        };
        let entry = |driver: &DriverPlacement| {
            let change = |figure: Figure| {
                difference(&readings(other, &driver.name, figure)?, &readings(cell, &driver.name, figure)?)
            };
            PricedEntry {
                name: driver.name.clone(),
                added_us: EntryLatency { p50: change(Figure::P50), p99: change(Figure::P99) },
                critical_path: Vec::new(),
            }
        };
        cell.topology.drivers.iter().map(entry).collect()
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

/// Latency that a mode adds to the requests of drivers and to calls.
pub(super) struct Added<'a> {
    cell: &'a Cell<'a>,
    floor: &'a Cell<'a>,
    calls: AddedCalls<'a>,
}

impl Added<'_> {
    /// Adds the entries whose target is in one of these namespaces, and the calls to their services.
    pub fn add_to(&self, mode: &mut PricedMode, is_own: impl Fn(&str) -> bool) {
        let topology = &self.cell.topology;
        let own = topology.drivers.iter().filter(|one| is_own(&topology.workloads[one.target].namespace));
        let entry = |driver: &DriverPlacement| {
            let added = |figure: Figure| {
                let readings = |cell: &Cell<'_>| readings(cell, &driver.name, figure);
                difference(&readings(self.cell)?, &readings(self.floor)?)
            };
            PricedEntry {
                name: driver.name.clone(),
                added_us: EntryLatency { p50: added(Figure::P50), p99: added(Figure::P99) },
                critical_path: self.calls.critical_path(driver),
            }
        };
        mode.entries = own.map(entry).collect();
        mode.calls = self.calls.of(is_own);
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

pub(super) fn difference(with: &BTreeMap<usize, f64>, without: &BTreeMap<usize, f64>) -> Option<Estimate> {
    let greatest = with.values().chain(without.values()).copied().fold(0.0, f64::max);
    interval::difference(with, without, resolution_us(greatest))
}
