//! CPU and memory of a replica.
//!
//! CPU per request falls with the rate, so CPU is read at the replica's share of the target, between measured rates: what a proxy
//! uses is a little at rest and as much again for each request, a straight line. Memory of a proxy grows with its configuration
//! and its connections, and hardly with the rate: the greatest measured working set counts.

use super::groups::{Sized, Usage, level};
use experiment::schema::Estimate;

/// CPU per 1000 requests/s at a rate, and whether the rate is under the lowest measured one.
pub(super) struct CpuAtRate {
    pub cores_per_1000_rps: Estimate,
    pub is_below_sweep: bool,
}

/// From CPU interpolated between measured rates; beyond them CPU per request of the nearest. Absent where no CPU was measured.
pub(super) fn cpu_at(sized: &Sized<'_>, rate: f64) -> Option<CpuAtRate> {
    let mut points: Vec<(f64, Usage)> = sized
        .cells
        .iter()
        .filter_map(|cell| {
            let completed = cell.cell.rate_completed.map(|completed| completed.estimate);
            Some((completed.unwrap_or_else(|| level(&cell.cell.load)), cell.usage?))
        })
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
    // What a closed loop reaches is not its lowest rate.
    Some(CpuAtRate { cores_per_1000_rps, is_below_sweep: rate < lowest * 0.99 && !sized.is_closed_loop() })
}

fn mixed(from: &Estimate, to: &Estimate, share: f64) -> Estimate {
    let mix = |from: f64, to: f64| from + share * (to - from);
    let mix_ends = |from: Option<f64>, to: Option<f64>| Some(mix(from?, to?));
    Estimate {
        estimate: mix(from.estimate, to.estimate),
        low: mix_ends(from.low, to.low),
        high: mix_ends(from.high, to.high),
        n: from.n.min(to.n),
    }
}

/// The greatest measured working set; where no control group tells it, the greatest memory.
pub(super) fn memory(sized: &Sized<'_>) -> Option<Estimate> {
    let greatest = |read: fn(&Usage) -> Option<Estimate>| {
        let usages = sized.cells.iter().filter_map(|cell| read(cell.usage.as_ref()?));
        usages.max_by(|one, other| one.estimate.total_cmp(&other.estimate))
    };
    greatest(|usage| usage.working_set_bytes).or_else(|| greatest(|usage| usage.memory_bytes))
}
