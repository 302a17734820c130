//! Episodes of slow requests: how many separate events lie beyond a percentile.
//!
//! One stall makes many requests slow. Each worker keeps its slowest requests, a bounded number; at the end those beyond a
//! percentile are put in the order in which they were due. Slow requests of one worker without a faster one between them are one
//! episode, and so are slow requests of which one was due before the other was answered.

use crate::clock::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Slow requests that a worker keeps: enough for p99 of 800 000 requests. Beyond that, episodes at p99 are not known.
const KEPT: usize = 8192;

/// A slow request. Ordered by its time.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Slow {
    /// Response time; the greatest number without a response.
    time: Nanos,
    due: Nanos,
    end: Nanos,
    /// Its place among all requests of its worker, by time of completion.
    place: u64,
    worker: usize,
}

/// The slowest requests of one worker, or of several.
#[derive(Clone, Debug)]
pub(crate) struct Slowest {
    kept: BinaryHeap<Reverse<Slow>>,
    /// Requests up to this time are not kept.
    floor: Nanos,
    /// Requests that ended.
    ended: u64,
    workers: usize,
}

impl Slowest {
    pub(crate) fn new() -> Self {
        Self { kept: BinaryHeap::with_capacity(KEPT + 1), floor: 0, ended: 0, workers: 1 }
    }

    /// A request that was due then was answered after this time.
    pub(crate) fn answered(&mut self, due: Nanos, time: Nanos) {
        self.ended += 1;
        if time > self.floor {
            self.keep(Slow { time, due, end: due + time, place: self.ended, worker: 0 });
        }
    }

    /// A request that was due then got no response until `end`.
    pub(crate) fn failed(&mut self, due: Nanos, end: Nanos) {
        self.ended += 1;
        self.keep(Slow { time: Nanos::MAX, due, end, place: self.ended, worker: 0 });
    }

    fn keep(&mut self, slow: Slow) {
        self.kept.push(Reverse(slow));
        if self.kept.len() > KEPT {
            self.floor = self.kept.pop().map_or(0, |Reverse(fastest)| fastest.time);
        }
    }

    /// Adds those of another worker.
    pub(crate) fn merge(&mut self, other: &Self) {
        let first = self.workers;
        let of_other =
            other.kept.iter().map(|Reverse(slow)| Reverse(Slow { worker: first + slow.worker, ..*slow }));
        self.kept.extend(of_other);
        self.floor = self.floor.max(other.floor);
        self.workers += other.workers;
    }

    /// Episodes of requests slower than this; without a threshold, of requests without a response. Absent where not all of
    /// them were kept.
    pub(crate) fn episodes(&self, slower_than: Option<Nanos>) -> Option<u64> {
        let threshold = slower_than.unwrap_or(Nanos::MAX - 1);
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
mod tests {
    use super::*;
    use crate::clock::SECOND;

    const MS: Nanos = SECOND / 1000;

    /// Requests at 1000/s, each answered after the time that is given for its place.
    fn worker(count: u64, time: impl Fn(u64) -> Nanos) -> Slowest {
        let mut slowest = Slowest::new();
        (0..count).for_each(|index| slowest.answered(index * MS, time(index)));
        slowest
    }

    #[test]
    fn a_stall_is_one_episode_however_many_requests_it_makes_slow() {
        let stalled = |index: u64| (100..150).contains(&index).then(|| (150 - index) * MS);
        let one = worker(1000, |index| stalled(index).unwrap_or(MS / 10));
        assert_eq!(one.episodes(Some(MS)), Some(1));
        // Ten requests that are slow each by itself are ten.
        let ten = worker(1000, |index| if index % 100 == 50 { 5 * MS } else { MS / 10 });
        assert_eq!(ten.episodes(Some(MS)), Some(10));
        assert_eq!(ten.episodes(Some(5 * MS)), Some(0));
    }

    #[test]
    fn slow_requests_that_follow_each_other_are_one_episode_though_they_do_not_overlap() {
        let mut sparse = Slowest::new();
        (0..20).for_each(|index| sparse.answered(index * SECOND, if index / 5 == 1 { 5 * MS } else { MS }));
        assert_eq!(sparse.episodes(Some(2 * MS)), Some(1));
    }

    #[test]
    fn a_stall_that_all_workers_meet_is_one_episode() {
        let stalled = |index: u64| if (100..150).contains(&index) { (150 - index) * MS } else { MS / 10 };
        let mut both = worker(1000, stalled);
        both.merge(&worker(1000, stalled));
        assert_eq!(both.episodes(Some(MS)), Some(1));
    }

    #[test]
    fn requests_without_a_response_are_the_slowest() {
        let mut slowest = worker(1000, |_| MS);
        slowest.failed(2 * SECOND, 3 * SECOND);
        slowest.failed(2 * SECOND + MS, 3 * SECOND + MS);
        slowest.answered(5 * SECOND, MS);
        slowest.failed(6 * SECOND, 7 * SECOND);
        assert_eq!(slowest.episodes(None), Some(2));
    }

    #[test]
    fn episodes_that_were_not_kept_are_not_known() {
        let rising = worker(2 * KEPT as u64, |index| index + 1);
        assert_eq!(rising.kept.len(), KEPT);
        assert!(rising.episodes(Some(KEPT as Nanos - 2)).is_none());
        assert_eq!(rising.episodes(Some(KEPT as Nanos)), Some(1));
    }
}
