//! Percentiles that pauses of the machine can cause.
//!
//! A pause delays every request that meets it on a CPU of its path: requests that arrive during the pause
//! wait for the rest of it, requests in flight for all of it. A percentile may be caused by the machine if
//! enough requests meet pauses that are long enough to turn a median into that percentile. Enough means as
//! many as lie beyond the percentile.

use super::run::Run;
use results::finding::{MachinePauses, Measured, OfCell};
use results::{Cell, CpuPauses, Figure, Finding, Metric};

/// Percentiles of cells that pauses of the machine can cause.
pub(super) fn pauses(run: &Run<'_>) -> Vec<Finding> {
    let of_cell = |cell: &Cell| {
        let percentiles =
            [(Figure::P99, Metric::ResponseTimeP99Us), (Figure::P99_9, Metric::ResponseTimeP99_9Us)];
        let made = percentiles.map(|(figure, name)| {
            let share = share(run, cell, figure)?;
            let time = cell.response_time_us?.figure(figure)?;
            let pauses = MachinePauses { measured: Measured::new(name, &time), share };
            Some(Finding::MachinePauses(OfCell::new(cell, pauses).resting_on(&time)))
        });
        made.into_iter().flatten()
    };
    run.summary.cells.iter().flat_map(of_cell).collect()
}

/// The fraction of a cell's requests that pauses can make as slow as a percentile. `None` if it is less than
/// the fraction beyond the percentile, if the percentile has too few events, or if the machine's pauses are
/// unknown.
pub(super) fn share(run: &Run<'_>, cell: &Cell, figure: Figure) -> Option<f64> {
    // Between its tokens a stream waits for the service, which pauses do not delay.
    let pauses = run.summary.host.noise_floor.as_ref()?.pauses.as_ref()?.overall()?;
    if cell.load.stream.is_some() {
        return None;
    }
    let times = cell.response_time_us?;
    let (median_us, value_us) = (times.p50?.estimate, times.figure(figure)?.estimate);
    // The generator, the service and each proxy have a CPU each, as far as the machine has them.
    let cpus = (cell.path.proxies.len() + 2).min(run.summary.host.cpus.max(1));
    let share = reached(&pauses, median_us, value_us - median_us) * cpus as f64;
    let beyond = 1.0 - figure.quantile()?;
    (share >= beyond && run.resolves(cell, figure)).then_some(share.min(1.0))
}

/// The fraction of requests of this length on one CPU that pauses delay by at least `more_us`.
fn reached(pauses: &CpuPauses, request_us: f64, more_us: f64) -> f64 {
    let mut classes = pauses.by_length.iter();
    let Some(long) = classes.find(|long| long.at_least_us >= more_us && long.per_s > 0.0) else { return 0.0 };
    let mean_us = (long.fraction / long.per_s * 1e6).max(long.at_least_us);
    long.per_s * (request_us + mean_us - more_us.max(0.0)) / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::LongPauses;

    fn pauses(by_length: &[(f64, f64, f64)]) -> CpuPauses {
        let long = |(at_least_us, per_s, fraction): &(f64, f64, f64)| LongPauses {
            at_least_us: *at_least_us,
            per_s: *per_s,
            fraction: *fraction,
        };
        CpuPauses { by_length: by_length.iter().map(long).collect(), ..CpuPauses::default() }
    }

    #[test]
    fn long_pauses_delay_requests_that_arrive_meanwhile() {
        // On average nine pauses of 2 ms per second, and many of 60 µs.
        let seen = pauses(&[(50.0, 109.0, 0.024), (1_000.0, 9.0, 0.018), (5_000.0, 0.0, 0.0)]);
        let near = |share: f64, expected: f64| (share - expected).abs() < 1e-9;
        assert!(near(reached(&seen, 100.0, 900.0), 9.0 * 1_200.0 / 1e6), "{}", reached(&seen, 100.0, 900.0));
        assert!(near(reached(&seen, 0.0, 1_000.0), 0.009));
        assert_eq!(reached(&seen, 100.0, 1_500.0), 0.0, "how many are as long is not known");
        assert_eq!(reached(&pauses(&[(50.0, 0.0, 0.0)]), 100.0, 10.0), 0.0);
    }
}
