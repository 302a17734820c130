//! The seconds of a run, merged from all workers.

use crate::clock::SECOND;
use crate::second::SecondCounts;
use results::SeriesPoint;
use std::collections::BTreeMap;

/// Points of the finished seconds, and the few seconds that are not finished.
///
/// A second is finished once every worker has handed over that second or a later one: nothing can be added to
/// it any more.
pub(super) struct Series {
    /// Seconds of the window; the last one may be partial.
    window_seconds: u64,
    points: Vec<SeriesPoint>,
    unfinished: BTreeMap<u64, SecondCounts>,
    /// Per worker: the first second that it has not handed over.
    handed_over: Vec<u64>,
    next_to_tell: u64,
}

impl Series {
    pub(super) fn new(window_seconds: u64, workers: usize) -> Self {
        Self {
            window_seconds,
            points: Vec::new(),
            unfinished: BTreeMap::new(),
            handed_over: vec![0; workers],
            next_to_tell: 0,
        }
    }

    /// Adds a second of one worker. Each worker hands over its seconds in order. Seconds after the window
    /// hold late responses; without any there is no such second.
    pub(super) fn add(&mut self, worker: usize, second: &SecondCounts) {
        self.handed_over[worker] = second.index + 1;
        if second.index >= self.window_seconds && second.is_empty() {
            return;
        }
        let whole = self
            .unfinished
            .entry(second.index)
            .or_insert_with(|| SecondCounts::new(second.index, second.detail.is_some()));
        whole.merge(second);
    }

    /// Marks a worker as done: it will hand over no more seconds.
    pub(super) fn worker_done(&mut self, worker: usize) {
        self.handed_over[worker] = u64::MAX;
    }

    /// Next finished second that has not been reported. A second without events is reported as empty, unless
    /// it comes after the last one.
    pub(super) fn next_finished(&mut self) -> Option<SecondCounts> {
        let over = self.handed_over.iter().copied().min().unwrap_or(u64::MAX);
        let last = self.unfinished.last_key_value().map(|(index, _)| *index);
        let index = self.next_to_tell;
        if index >= over || last.is_none_or(|last| index > last) {
            return None;
        }
        let missed = || {
            let mut second = SecondCounts::new(index, false);
            second.length = if index < self.window_seconds { SECOND } else { 0 };
            second
        };
        let second = self.unfinished.remove(&index).unwrap_or_else(missed);
        self.points.push(second.point());
        self.next_to_tell += 1;
        Some(second)
    }

    pub(super) fn into_points(self) -> Vec<SeriesPoint> {
        self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn second(index: u64, completed: u64) -> SecondCounts {
        let mut second = SecondCounts::new(index, true);
        second.completed = completed;
        for _ in 0..completed {
            second.response_time.record(Duration::from_millis(1));
        }
        second
    }

    fn told(series: &mut Series) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| series.next_finished()).map(|second| (second.index, second.completed)).collect()
    }

    #[test]
    fn second_is_reported_once_every_worker_is_past_it() {
        let mut series = Series::new(10, 2);
        series.add(0, &second(0, 3));
        series.add(0, &second(1, 5));
        assert_eq!(told(&mut series), []);
        series.add(1, &second(0, 4));
        assert_eq!(told(&mut series), [(0, 7)]);
        // The other worker was silent for three seconds.
        series.add(1, &second(3, 1));
        assert_eq!(told(&mut series), [(1, 5)]);
        series.worker_done(0);
        assert_eq!(told(&mut series), [(2, 0), (3, 1)]);
        series.worker_done(1);
        assert_eq!(told(&mut series), []);
        assert_eq!(series.into_points().len(), 4);
    }

    #[test]
    fn seconds_after_window_exist_only_for_late_responses() {
        let mut series = Series::new(1, 1);
        for (index, completed) in [(0, 0), (1, 0), (2, 1), (3, 0)] {
            series.add(0, &second(index, completed));
        }
        assert_eq!(told(&mut series), [(0, 0), (1, 0), (2, 1)]);
    }

    #[test]
    fn percentiles_of_second_cover_all_workers() {
        let mut series = Series::new(10, 2);
        for worker in 0..2 {
            series.add(worker, &second(0, 2));
            series.worker_done(worker);
        }
        let whole = series.next_finished().expect("it is over");
        assert_eq!(whole.response_time.count(), 4);
        assert_eq!(series.into_points()[0].p50_us, Some(1000.0));
    }
}
