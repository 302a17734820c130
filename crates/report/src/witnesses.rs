//! Real sidecars beside a fleet: the same figures for the terminal and for HTML.

use crate::format::{self, Interval, TimeUnit};
use results::FleetWitness;
use serde::Serialize;
use statistics::witnesses::{WitnessedKind, witnessed};

/// Comparisons of one kind of change.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WitnessRow {
    /// Kind of change.
    pub kind: String,
    /// Changes and sidecars compared, and how many showed no update.
    pub compared: String,
    /// Delay after the mean proxy.
    pub later: Interval,
    /// Mean fraction of the fleet that already had the change.
    pub rank: String,
    /// Maximum distance from the nearest arrival.
    pub nearest: String,
    /// Maximum distance from the fleet's arrivals.
    pub outside: String,
}

/// One row per kind of change; times are in milliseconds.
pub(crate) fn rows<'a>(witnesses: impl Iterator<Item = &'a FleetWitness>) -> Vec<WitnessRow> {
    witnessed(witnesses).iter().map(row).collect()
}

fn row(kind: &WitnessedKind) -> WitnessRow {
    let unit = TimeUnit::Milliseconds;
    let missed = match kind.missed {
        0 => String::new(),
        missed => format!(", {} without an update", format::count(missed as u64)),
    };
    let time = |time: Option<f64>| time.map_or_else(|| format::ABSENT.to_owned(), |time| unit.number(time));
    WitnessRow {
        kind: kind.kind.clone(),
        compared: format::count(kind.compared as u64) + &missed,
        later: kind.later_us.as_ref().map_or_else(Interval::absent, |later| unit.interval(later)),
        rank: kind.rank.map_or_else(|| format::ABSENT.to_owned(), format::percent),
        nearest: time(kind.nearest_us),
        outside: time(Some(kind.outside_us)),
    }
}
