//! CPU and memory of a replica.
//!
//! CPU per request falls with the rate, so CPU is read at the replica's share of the target, between measured
//! rates. A proxy uses a little CPU at rest and a constant amount per request: a straight line. Memory is
//! read at the highest load that a replica carries, bounded by the neighbouring measured loads: an overloaded
//! proxy holds requests that no replica should hold.

use super::groups::{MeasuredCell, Sized, Usage, level};
use results::{Capacity, Estimate};

/// CPU per 1000 requests/s at a rate, and whether the rate is below the lowest measured one.
pub(super) struct CpuAtRate {
    pub cores_per_1000_rps: Estimate,
    pub is_below_sweep: bool,
    /// True if the rate lies within the sweep.
    pub is_measured: bool,
}

/// CPU interpolated between measured rates; beyond them, the CPU per request of the nearest. `None` if no CPU
/// was measured. Of a closed loop, more clients than those of the capacity that carry less are not counted: a
/// replica at its share of the target has fewer.
pub(super) fn cpu_at(sized: &Sized<'_>, capacity: &Capacity, rate: f64) -> Option<CpuAtRate> {
    let is_overload = |cell: &MeasuredCell<'_>, completed: f64| {
        completed < capacity.rps.estimate && cell.cell.load.clients > capacity.clients
    };
    let mut points: Vec<(f64, Usage)> = sized
        .cells
        .iter()
        .filter_map(|cell| {
            let completed = cell.cell.rate_completed.map(|completed| completed.estimate);
            Some((cell, completed.unwrap_or_else(|| level(&cell.cell.load)), cell.usage?))
        })
        .filter(|(cell, completed, _)| !is_overload(cell, *completed))
        .map(|(_, completed, usage)| (completed, usage))
        .collect();
    points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let (lowest, first) = points.first()?;
    let between = points.windows(2).find(|pair| (pair[0].0..=pair[1].0).contains(&rate));
    let cores_per_1000_rps = match between {
        Some(pair) => {
            let share = (rate - pair[0].0) / (pair[1].0 - pair[0].0).max(f64::MIN_POSITIVE);
            mixed(&pair[0].1.cpu_cores, &pair[1].1.cpu_cores, share).map(|cores| cores / rate * 1000.0)
        }
        None if rate < *lowest => first.cpu_cores_per_1000_rps,
        None => points.last()?.1.cpu_cores_per_1000_rps,
    };
    Some(CpuAtRate {
        cores_per_1000_rps,
        // A closed loop has no lowest rate that was chosen.
        is_below_sweep: rate < lowest * 0.99 && !sized.is_closed_loop(),
        is_measured: between.is_some(),
    })
}

fn mixed(from: &Estimate, to: &Estimate, share: f64) -> Estimate {
    let mix = |from: f64, to: f64| from + share * (to - from);
    let mix_ends = |from: Option<f64>, to: Option<f64>| Some(mix(from?, to?));
    Estimate {
        estimate: mix(from.estimate, to.estimate),
        low: mix_ends(from.low, to.low),
        high: mix_ends(from.high, to.high),
        n: from.n.min(to.n),
        alone: None,
    }
}

/// An estimate whose interval is widened to contain another's.
pub(super) fn hull(one: Estimate, other: Estimate) -> Estimate {
    Estimate {
        low: one.low.zip(other.low).map(|(one, other)| one.min(other)),
        high: one.high.zip(other.high).map(|(one, other)| one.max(other)),
        ..one
    }
}

/// The working set at a capacity, or memory if no cgroup reports a working set.
pub(super) fn memory(sized: &Sized<'_>, capacity: &Capacity) -> Option<Estimate> {
    memory_at(sized, capacity, |usage| usage.working_set_bytes)
        .or_else(|| memory_at(sized, capacity, |usage| usage.memory_bytes))
}

fn memory_at(
    sized: &Sized<'_>,
    capacity: &Capacity,
    read: fn(&Usage) -> Option<Estimate>,
) -> Option<Estimate> {
    let measured: Vec<(f64, Estimate)> = sized
        .cells
        .iter()
        .filter_map(|cell| Some((level(&cell.cell.load), read(cell.usage.as_ref()?)?)))
        .collect();
    let carried = capacity.carried_rps.or(capacity.clients.map(|clients| clients as f64));
    let carried = carried.or(capacity.missed_level())?;
    let place =
        measured.iter().position(|(level, _)| *level >= carried).unwrap_or(measured.len().checked_sub(1)?);
    let missed = capacity.missed_level();
    let above = measured[place..]
        .iter()
        .skip(1)
        .take_while(|(level, _)| missed.is_some_and(|missed| *level <= missed));
    Some(above.fold(measured[place].1, |all, (_, other)| hull(all, *other)))
}
