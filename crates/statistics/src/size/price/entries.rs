//! Latency that modes add at each entry point, at the greatest load that was measured in both: to the response, of streams of
//! tokens to the first one.

use super::calls::AddedCalls;
use super::{Cell, rate_of_all};
use crate::interval;
use crate::summary::{namespace, resolution_us};
use crate::trials::{are_enough, events_beyond};
use experiment::topology::DriverPlacement;
use results::{Clock, EntryLatency, Estimate, Factors, Figure, Mode, PricedCall, PricedEntry, PricedMode};
use std::collections::BTreeMap;

pub(super) struct Entries<'a> {
    cells: &'a [Cell<'a>],
}

impl<'a> Entries<'a> {
    pub fn new(cells: &'a [Cell<'a>]) -> Self {
        Self { cells }
    }

    /// Latency that a mode adds; `None` for a mode without a floor.
    pub fn of(&self, mode: Mode) -> Option<Added> {
        let (cell, floor) = self.pair(mode)?;
        let calls = AddedCalls::new(cell, floor);
        let topology = &cell.topology;
        let entry = |driver: &DriverPlacement| {
            let entry = priced_entry(driver, (floor, cell), calls.critical_path(driver));
            (topology.workloads[driver.target].namespace.clone(), entry)
        };
        Some(Added { entries: topology.drivers.iter().map(entry).collect(), calls: calls.all() })
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
        let drivers = cell.topology.drivers.iter();
        drivers.map(|driver| priced_entry(driver, (cell, other), Vec::new())).collect()
    }

    /// Requests per second of all drivers at which the latencies of these modes were measured, the least of them, and what the
    /// latencies are of.
    pub fn measured_at(&self, modes: &[PricedMode]) -> Option<(f64, Clock)> {
        let measured = |mode: &PricedMode| {
            let cell = self.pair(mode.mode)?.0;
            Some((load(cell), clock(cell)))
        };
        modes.iter().filter_map(measured).min_by(|(one, _), (other, _)| one.total_cmp(other))
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
pub(super) struct Added {
    /// Each with the namespace of its target.
    entries: Vec<(String, PricedEntry)>,
    calls: Vec<PricedCall>,
}

impl Added {
    /// Adds the entries whose target is in one of these namespaces, and the calls to their services.
    pub fn add_to(&self, mode: &mut PricedMode, is_own: impl Fn(&str) -> bool) {
        let own = self.entries.iter().filter(|(namespace, _)| is_own(namespace));
        mode.entries = own.map(|(_, entry)| entry.clone()).collect();
        mode.calls = self.calls.iter().filter(|call| is_own(namespace(&call.to))).cloned().collect();
    }
}

/// What a driver's latency differs by from one cell to another.
fn priced_entry(
    driver: &DriverPlacement,
    (from, to): (&Cell<'_>, &Cell<'_>),
    critical_path: Vec<PricedCall>,
) -> PricedEntry {
    let added = |figure: Figure| {
        let readings = |cell: &Cell<'_>| readings(cell, &driver.name, figure);
        difference(&readings(to)?, &readings(from)?)
    };
    let added_us = EntryLatency { p50: added(Figure::P50), p99: added(Figure::P99) };
    PricedEntry { name: driver.name.clone(), added_us, critical_path }
}

/// Times that the load of a cell is about.
fn clock(cell: &Cell<'_>) -> Clock {
    Clock::of_load(&cell.trials[0].load)
}

/// Requests per second of all drivers, the mean of the trials.
fn load(cell: &Cell<'_>) -> f64 {
    cell.trials.iter().map(|trial| rate_of_all(cell, trial)).sum::<f64>() / cell.trials.len() as f64
}

/// A percentile of a driver by repeat, of the first take in which it is usable; `None` if it falls among requests without a
/// response, or too few events lie beyond it.
fn readings(cell: &Cell<'_>, driver: &str, figure: Figure) -> Option<BTreeMap<usize, f64>> {
    let (clock, mut readings) = (clock(cell), BTreeMap::new());
    for trial in cell.trials {
        let drivers = trial.drivers();
        let view = drivers.iter().find(|view| view.name == driver && view.is_usable(figure));
        let Some(result) = view.and_then(|view| view.result) else { continue };
        if !are_enough(events_beyond(result, clock, figure)?) {
            return None;
        }
        readings.entry(trial.repeat).or_insert(result.times(clock)?.figure(figure)?);
    }
    Some(readings)
}

pub(super) fn difference(with: &BTreeMap<usize, f64>, without: &BTreeMap<usize, f64>) -> Option<Estimate> {
    let greatest = with.values().chain(without.values()).copied().fold(0.0, f64::max);
    interval::difference(with, without, resolution_us(greatest))
}
