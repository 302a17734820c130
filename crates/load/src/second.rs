//! One second of a run: the view of one worker, and the merged view of all.
//!
//! Workers hand over their seconds with all histograms, and get them back empty: only a few are ever held,
//! however long a run is. Anyone who wants to keep them observes the run.

use crate::clock::{Nanos, SECOND};
use crate::error::ErrorKind;
use results::{LatencyHistogram, SeriesPoint};

/// A second of the measured window, by time of completion. Responses after the window have seconds of their
/// own.
#[derive(Clone, Debug)]
pub struct Second {
    /// Wall-clock time at which the window began.
    pub window_started_at: jiff::Timestamp,
    /// Its usual figures.
    pub point: SeriesPoint,
    /// Its part inside the window, in seconds: the window may end within it. A second after the window is whole.
    pub length_s: f64,
    /// Requests that were due in it by the schedule; `None` in closed loop.
    pub due: Option<f64>,
    /// All errors in it by kind, including those outside of requests.
    pub errors: Vec<(ErrorKind, u64)>,
    /// Responses by status code.
    pub statuses: Vec<(u16, u64)>,
    /// Connections open at its end.
    pub connections_open: usize,
    /// Bytes of the measured requests written in it.
    pub bytes_sent: u64,
    /// Bytes of the measured responses that completed in it.
    pub bytes_received: u64,
    /// Response times of the requests completed in it.
    pub response_time: LatencyHistogram,
    /// Recorded only with [`crate::LoadSpec::whole_seconds`].
    pub detail: Option<SecondDetail>,
}

/// The other distributions of one second.
#[derive(Clone, Debug, Default)]
pub struct SecondDetail {
    /// Service times of the requests completed in it.
    pub service_time: LatencyHistogram,
    /// Schedule lag of the requests sent in it.
    pub schedule_lag: LatencyHistogram,
}

impl SecondDetail {
    fn clear(&mut self) {
        self.service_time.clear();
        self.schedule_lag.clear();
    }

    fn merge(&mut self, other: &Self) {
        self.service_time.merge(&other.service_time);
        self.schedule_lag.merge(&other.schedule_lag);
    }
}

/// Counts of one worker, or of several, in one second.
#[derive(Clone, Debug)]
pub(crate) struct SecondCounts {
    /// Index of the second in the window, from 0.
    pub(crate) index: u64,
    /// Its part inside the window, known when it is finished.
    pub(crate) length: Nanos,
    pub(crate) sent: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    pub(crate) connections_open: usize,
    errors: [u64; ErrorKind::ALL.len()],
    /// Few in practice, so linear search is enough.
    statuses: Vec<(u16, u64)>,
    pub(crate) response_time: LatencyHistogram,
    pub(crate) detail: Option<SecondDetail>,
}

impl SecondCounts {
    pub(crate) fn new(index: u64, with_detail: bool) -> Self {
        Self {
            index,
            length: 0,
            sent: 0,
            completed: 0,
            failed: 0,
            bytes_sent: 0,
            bytes_received: 0,
            connections_open: 0,
            errors: [0; ErrorKind::ALL.len()],
            statuses: Vec::new(),
            response_time: LatencyHistogram::new(),
            detail: with_detail.then(SecondDetail::default),
        }
    }

    /// Clears the counts and keeps the memory.
    pub(crate) fn clear(&mut self) {
        let mut statuses = std::mem::take(&mut self.statuses);
        statuses.clear();
        self.response_time.clear();
        if let Some(detail) = &mut self.detail {
            detail.clear();
        }
        (self.length, self.sent, self.completed, self.failed) = (0, 0, 0, 0);
        (self.bytes_sent, self.bytes_received, self.connections_open) = (0, 0, 0);
        self.errors = [0; ErrorKind::ALL.len()];
        self.statuses = statuses;
    }

    /// True if nothing happened in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.sent + self.completed + self.failed == 0 && self.errors.iter().all(|count| *count == 0)
    }

    pub(crate) fn error(&mut self, kind: ErrorKind) {
        self.errors[kind as usize] += 1;
    }

    pub(crate) fn status(&mut self, code: u16, count: u64) {
        match self.statuses.iter_mut().find(|(known, _)| *known == code) {
            Some((_, known)) => *known += count,
            None => self.statuses.push((code, count)),
        }
    }

    /// Adds the counts of another worker for the same second.
    pub(crate) fn merge(&mut self, other: &Self) {
        // Workers may end at different times if they share a fixed number of requests.
        self.length = self.length.max(other.length);
        self.sent += other.sent;
        self.completed += other.completed;
        self.failed += other.failed;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.connections_open += other.connections_open;
        for (mine, theirs) in self.errors.iter_mut().zip(&other.errors) {
            *mine += theirs;
        }
        for (code, count) in &other.statuses {
            self.status(*code, *count);
        }
        self.response_time.merge(&other.response_time);
        if let (Some(mine), Some(theirs)) = (&mut self.detail, &other.detail) {
            mine.merge(theirs);
        }
    }

    pub(crate) fn point(&self) -> SeriesPoint {
        let times = &self.response_time;
        let percentile = |percentile| times.percentile_with(percentile, self.failed);
        SeriesPoint {
            t_s: self.index as f64,
            sent: self.sent,
            completed: self.completed,
            failed: self.failed,
            p50_us: percentile(50.0),
            p90_us: percentile(90.0),
            p99_us: percentile(99.0),
            p99_9_us: percentile(99.9),
            max_us: (self.failed == 0).then(|| times.max_us()),
        }
    }

    /// Converts to the form for observers. `due`: by the schedule, in open loop.
    pub(crate) fn told(self, window_started_at: jiff::Timestamp, due: Option<f64>) -> Second {
        let point = self.point();
        let errors = ErrorKind::ALL.into_iter().map(|kind| (kind, self.errors[kind as usize]));
        let mut statuses = self.statuses;
        // 0 means a response of a protocol without statuses.
        statuses.retain(|(code, _)| *code > 0);
        statuses.sort_unstable();
        Second {
            window_started_at,
            point,
            length_s: if self.length > 0 { self.length as f64 / SECOND as f64 } else { 1.0 },
            due,
            errors: errors.filter(|(_, count)| *count > 0).collect(),
            statuses,
            connections_open: self.connections_open,
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            response_time: self.response_time,
            detail: self.detail,
        }
    }
}
