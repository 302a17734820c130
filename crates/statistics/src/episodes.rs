//! Episodes of slow requests: how many separate events lie beyond a percentile.
//!
//! One stall makes many requests slow. Each worker keeps a bounded number of its slowest requests. At the
//! end, those beyond a percentile are sorted by due time. Slow requests of one worker with no faster request
//! between them are one episode. So are slow requests that overlap: one was due before another was answered.
//! Results carry their slowest requests ([`text`]), so that episodes can be counted over several generators.

mod text;

use crate::summary::resolution_us;
use results::{Figure, HistogramSummary};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// Slow requests kept per worker: enough for the p99 of 800 000 requests. Beyond that, episodes at p99 are
/// unknown.
const MAX_KEPT: usize = 8192;
/// Percentiles beyond which episodes are counted.
const FIGURES: [Figure; 3] = [Figure::P99, Figure::P99_9, Figure::P99_99];

/// Time in nanoseconds.
type Nanos = u64;

/// A slow request, ordered by its time.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Slow {
    /// Response time in nanoseconds; `Nanos::MAX` without a response.
    time: Nanos,
    due: Nanos,
    end: Nanos,
    /// Position among all requests of its worker, by time of completion.
    place: u64,
    worker: usize,
}

/// The slowest requests of one or several workers. Times are nanoseconds of one clock.
#[derive(Clone, Debug)]
pub struct Slowest {
    kept: BinaryHeap<Reverse<Slow>>,
    /// Requests that took this long or less are not kept.
    floor: Nanos,
    /// Number of requests that ended.
    ended: u64,
    workers: usize,
}

impl Default for Slowest {
    fn default() -> Self {
        Self::new()
    }
}

impl Slowest {
    /// Without any requests.
    #[must_use]
    pub fn new() -> Self {
        Self { kept: BinaryHeap::with_capacity(MAX_KEPT + 1), floor: 0, ended: 0, workers: 1 }
    }

    /// Records a request that was due at `due` and answered `time` later.
    #[inline]
    pub fn answered(&mut self, due: Nanos, time: Nanos) {
        self.ended += 1;
        if time > self.floor {
            self.keep(Slow { time, due, end: due + time, place: self.ended, worker: 0 });
        }
    }

    /// Records a request that was due at `due` and had no response by `end`.
    #[inline]
    pub fn failed(&mut self, due: Nanos, end: Nanos) {
        self.ended += 1;
        self.keep(Slow { time: Nanos::MAX, due, end, place: self.ended, worker: 0 });
    }

    fn keep(&mut self, slow: Slow) {
        self.kept.push(Reverse(slow));
        if self.kept.len() > MAX_KEPT {
            self.floor = self.kept.pop().map_or(0, |Reverse(fastest)| fastest.time);
        }
    }

    /// Adds the requests of another worker.
    pub fn merge(&mut self, other: &Self) {
        let first = self.workers;
        let of_other =
            other.kept.iter().map(|Reverse(slow)| Reverse(Slow { worker: first + slow.worker, ..*slow }));
        self.kept.extend(of_other);
        self.floor = self.floor.max(other.floor);
        self.workers += other.workers;
        self.ended += other.ended;
    }

    /// Number of episodes at and beyond each upper percentile of these response times, by the figure's name.
    /// Leaves out percentiles for which not all slow requests were kept.
    #[must_use]
    pub fn episodes(&self, times: &HistogramSummary) -> BTreeMap<String, u64> {
        let beyond = |figure: Figure| {
            // A histogram value stands for every value in its bucket.
            let value_us = |us: f64| (us - resolution_us(us)).max(0.0);
            let slower_than = times.figure(figure).map(|us| (value_us(us) * 1000.0) as Nanos);
            Some((figure.name().to_owned(), self.slower_than(slower_than)?))
        };
        FIGURES.into_iter().filter_map(beyond).collect()
    }

    /// Episodes of requests slower than `threshold`; without a threshold, of requests without a response.
    /// `None` if not all of these requests were kept.
    fn slower_than(&self, threshold: Option<Nanos>) -> Option<u64> {
        let threshold = threshold.unwrap_or(Nanos::MAX - 1);
        if threshold < self.floor {
            return None;
        }
        let slow = self.kept.iter().map(|Reverse(slow)| *slow).filter(|slow| slow.time > threshold);
        let mut slow: Vec<Slow> = slow.collect();
        slow.sort_unstable_by_key(|slow| (slow.due, slow.place));
        let (mut episodes, mut end) = (0, 0);
        let mut last_places: HashMap<usize, u64> = HashMap::new();
        for slow in slow {
            let follows = last_places.get(&slow.worker).is_some_and(|last| slow.place.abs_diff(*last) == 1);
            if episodes == 0 || (slow.due > end && !follows) {
                episodes += 1;
                last_places.clear();
            }
            end = end.max(slow.end);
            last_places.insert(slow.worker, slow.place);
        }
        Some(episodes)
    }
}

#[cfg(test)]
mod tests;
