//! Lateness of requests, by their arrivals at the server against the schedule that fits them best. Pure.
//!
//! No generator sends a request before it is due. So of all schedules with the requested rate, the one that fits is the last one
//! that no arrival precedes, with the k-th arrival for its k-th slot. It hides only what all requests are late by.

use statistics::pauses::nearest_rank;
use std::collections::HashMap;
use std::time::Duration;

/// A request at the server.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub connection: usize,
    /// Since the epoch.
    pub at: Duration,
}

/// Requests that have a schedule with a constant rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Schedule {
    /// All of them.
    Load,
    /// Those of a connection: each connection has a schedule of its own.
    Connection,
}

/// Lateness of the requests of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Lateness {
    pub schedule: Schedule,
    /// Microseconds, ascending.
    late_us: Vec<f64>,
}

impl Lateness {
    /// Lateness of arrivals, which are in order, at a rate in requests per second.
    pub fn fitted(arrivals: &[Arrival], rate: f64, schedule: Schedule) -> Self {
        let mut late_us = match schedule {
            Schedule::Load => fitted_us(arrivals.iter(), rate),
            Schedule::Connection => {
                let mut by_connection = HashMap::<usize, Vec<&Arrival>>::new();
                arrivals
                    .iter()
                    .for_each(|arrival| by_connection.entry(arrival.connection).or_default().push(arrival));
                let rate = rate / by_connection.len() as f64;
                by_connection.into_values().flat_map(|own| fitted_us(own.into_iter(), rate)).collect()
            }
        };
        late_us.sort_by(f64::total_cmp);
        Self { schedule, late_us }
    }

    /// The schedule by which the requests are less late.
    pub fn best(arrivals: &[Arrival], rate: f64) -> Self {
        let [load, connection] =
            [Schedule::Load, Schedule::Connection].map(|schedule| Self::fitted(arrivals, rate, schedule));
        if load.mean_us() <= connection.mean_us() { load } else { connection }
    }

    /// NaN without requests.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        nearest_rank(&self.late_us, percent / 100.0).unwrap_or(f64::NAN)
    }

    fn mean_us(&self) -> f64 {
        self.late_us.iter().sum::<f64>() / self.late_us.len() as f64
    }
}

/// Lateness of each arrival by the schedule that fits all.
fn fitted_us<'a>(arrivals: impl Iterator<Item = &'a Arrival> + Clone, rate: f64) -> Vec<f64> {
    let Some(first) = arrivals.clone().next() else { return Vec::new() };
    let late_us = late_us(arrivals, rate, first.at);
    let hidden_us = least(&late_us);
    late_us.into_iter().map(|late_us| late_us - hidden_us).collect()
}

/// Least lateness of the requests by the schedule that their generator announced, microseconds: the fitted schedule hides it.
/// `skipped`: the slots before the first of these arrivals.
pub fn hidden_us(arrivals: &[Arrival], rate: f64, announced: Duration, skipped: usize) -> f64 {
    let start = announced + Duration::from_secs_f64(skipped as f64 / rate);
    least(&late_us(arrivals.iter(), rate, start))
}

/// Lateness of each arrival by a schedule that starts then.
fn late_us<'a>(arrivals: impl Iterator<Item = &'a Arrival>, rate: f64, start: Duration) -> Vec<f64> {
    let after_start_us = |arrival: &Arrival| match arrival.at.checked_sub(start) {
        Some(after) => after.as_secs_f64() * 1e6,
        None => -((start - arrival.at).as_secs_f64() * 1e6),
    };
    arrivals.enumerate().map(|(slot, arrival)| after_start_us(arrival) - slot as f64 * 1e6 / rate).collect()
}

fn least(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(f64::INFINITY, f64::min)
}
