//! The seconds of a run, put together from what the workers saw.

use crate::clock::{Nanos, SECOND};
use crate::recorder::SecondOfWorker;
use experiment::schema::SeriesPoint;
use statistics::LatencyHistogram;
use std::collections::BTreeMap;

/// How long after its end a second is held for workers that are late: more than their longest pause between looks.
const PATIENCE: Nanos = SECOND / 2;

/// Points of finished seconds, and the few seconds that are not finished. Only a few histograms are ever held.
pub(super) struct Series {
    window_start: Nanos,
    points: BTreeMap<u64, SeriesPoint>,
    unfinished: BTreeMap<u64, LatencyHistogram>,
    next_to_tell: u64,
}

impl Series {
    pub(super) fn new(window_start: Nanos) -> Self {
        Self { window_start, points: BTreeMap::new(), unfinished: BTreeMap::new(), next_to_tell: 0 }
    }

    pub(super) fn add(&mut self, second: &SecondOfWorker) {
        let point = self.points.entry(second.index).or_default();
        point.t_s = second.index as f64;
        point.completed += second.completed;
        point.failed += second.failed;
        self.unfinished.entry(second.index).or_default().merge(&second.response_time);
        let histogram = &self.unfinished[&second.index];
        point.p50_us = histogram.percentile_us(50.0);
        point.p99_us = histogram.percentile_us(99.0);
    }

    /// Seconds that are over at `now` and have not been told yet. Seconds in which nothing ended are told as empty.
    pub(super) fn finished(&mut self, now: Nanos) -> Vec<SeriesPoint> {
        let mut told = Vec::new();
        while now >= self.window_start + (self.next_to_tell + 1) * SECOND + PATIENCE {
            let index = self.next_to_tell;
            self.unfinished.remove(&index);
            told.push(
                *self.points.entry(index).or_insert(SeriesPoint { t_s: index as f64, ..Default::default() }),
            );
            self.next_to_tell += 1;
        }
        told
    }

    pub(super) fn into_points(self) -> Vec<SeriesPoint> {
        self.points.into_values().collect()
    }
}
