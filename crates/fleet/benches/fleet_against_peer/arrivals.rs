//! Times of arrival at a fleet under churn, compared with the stub's write times: same machine, same clock.

use crate::contest::Outcome;
use crate::contest::process::{Place, pinned};
use crate::fleet_process::{FleetOrder, FleetProcess};
use crate::stub_process::{StubOrder, StubProcess, Write};
use std::time::Instant;
use std::{env, fmt};

/// Number of proxies whose arrivals are checked one by one.
const SAMPLED: usize = 100;

/// Size of the measurement.
#[derive(Clone, Debug)]
pub struct Effort {
    pub clients: usize,
    pub bytes: usize,
    pub connect_rate: f64,
    /// Changes per second that all clients receive.
    pub churn_per_s: f64,
    /// Number of changes that are checked.
    pub marks: u32,
}

/// Errors of times of arrival.
pub struct Arrivals {
    effort: Effort,
    /// Distance of each arrival from the interval of its write, in microseconds, ascending.
    errors_us: Vec<f64>,
    /// The fleet's p99 read delay, as reported by the fleet.
    lag_p99_us: f64,
    /// Error bound that the fleet reports, and the part of it found by its check of kernel timestamps.
    stated_p99_us: f64,
    checked_p99_us: f64,
    /// Arrivals that were followed by further bytes in the same read.
    followed: f64,
}

impl Arrivals {
    /// Runs the measurement.
    ///
    /// # Errors
    /// Returns an error if a client does not complete, or if a mark does not arrive.
    pub fn run(effort: Effort) -> Outcome<Self> {
        let order = StubOrder { bytes: effort.bytes, churn_per_s: effort.churn_per_s, tls: false };
        let mut stub = StubProcess::start(&order)?;
        let order = FleetOrder {
            address: stub.listening.address.clone(),
            roots: None,
            proxies: effort.clients,
            connect_rate: effort.connect_rate,
        };
        let mut fleet = FleetProcess::start(pinned(Place::Generator, &env::current_exe()?)?, &order)?;
        let completion = fleet.completion()?;
        if completion.complete != effort.clients as u64 {
            return Err(format!("{completion:?}").into());
        }
        let sampled = SAMPLED.min(effort.clients);
        let mut errors_us = Vec::new();
        for number in 1..=effort.marks {
            fleet.expect(number, sampled)?;
            let commanded = Instant::now();
            stub.mark(number)?;
            fleet.ask_for_arrivals(commanded)?;
            let arrivals = fleet.arrivals()?;
            errors_us.extend(errors(&arrivals, &stub.writes(number)?)?);
        }
        errors_us.sort_by(f64::total_cmp);
        let result = fleet.finish()?;
        let figure = |value: &serde_json::Value| value.as_f64().unwrap_or(f64::NAN);
        Ok(Self {
            effort,
            errors_us,
            lag_p99_us: figure(&result["fleet"]["lag_us"]["p99"]),
            stated_p99_us: figure(&result["fleet"]["timestamp_error_p99_us"]),
            checked_p99_us: figure(&result["fleet"]["timestamp_check_p99_us"]),
            followed: figure(&result["fleet"]["arrivals_followed"]),
        })
    }

    /// p99 error in microseconds.
    pub fn error_p99_us(&self) -> f64 {
        self.percentile_us(0.99)
    }

    /// Ratio of the p99 error to the bound that the fleet reports; the bound holds if this is at most 1.
    pub fn error_over_stated(&self) -> f64 {
        self.error_p99_us() / self.stated_p99_us
    }

    fn percentile_us(&self, part: f64) -> f64 {
        let rank = (self.errors_us.len() as f64 * part).ceil() as usize;
        self.errors_us.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }
}

/// Errors in microseconds, in the order of the proxies.
fn errors(arrivals: &[u64], writes: &[Write]) -> Outcome<Vec<f64>> {
    let errors = arrivals.iter().enumerate().map(|(proxy, arrival_ns)| {
        let name = format!("~proxy-{proxy:05}.");
        let write = writes.iter().find(|write| write.node.contains(&name));
        let write = write.ok_or_else(|| format!("no write to proxy {proxy} was noted"))?;
        let early_ns = write.before_ns.saturating_sub(*arrival_ns);
        let late_ns = arrival_ns.saturating_sub(write.after_ns);
        Ok(early_ns.max(late_ns) as f64 / 1e3)
    });
    errors.collect()
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Effort { clients, churn_per_s, marks, .. } = self.effort;
        writeln!(
            f,
            "{clients} clients, {churn_per_s} changes/s to all of them, {marks} marks: times of arrival"
        )?;
        let [median, p99, max] = [0.5, 0.99, 1.0].map(|part| self.percentile_us(part));
        writeln!(
            f,
            "error, us: p50 {median:.1}, p99 {p99:.1}, max {max:.1}; stated bound of p99 {:.1}, of which the check of the \
             kernel's times found {:.1}; {} arrivals were followed by others in the same read",
            self.stated_p99_us,
            self.checked_p99_us,
            if self.followed.is_nan() { 0.0 } else { self.followed }
        )?;
        writeln!(f, "the fleet read {:.0} us after the arrival at p99", self.lag_p99_us)
    }
}
