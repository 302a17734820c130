//! Growth of the backlog of an open loop. A target slightly slower than the offered rate answers less than is due in every part of
//! the window, and its response times describe the length of the run.
//!
//! The backlog is counted: requests on many connections overtake each other, so that some are answered at once however many wait.
//! Answers are compared with what the schedule offers and not with what was due: requests that come close together by chance are
//! worked off later. The part of the window after its beginning is judged, by Student's t of its slices.
//!
//! Left out is what a growing backlog looks like without a slow target: response times about as long as the window, of which the
//! first end in its last slices. There the number under way grows, and the times do not. `crates/load/src/recorder/trend/` has
//! queues of known capacity that show the rates of error.

use results::Backlog;
use std::ops::Range;

/// Slices of the window.
pub const SLICES: usize = 16;
/// The first slices may be a beginning: connections, caches, the first responses. The rest is judged.
pub const JUDGED: Range<usize> = 4..SLICES;
/// Slices whose response times are compared, early and late.
const EARLY: Range<usize> = 2..6;
const LATE: Range<usize> = 12..SLICES;
/// Number of standard errors by which the answers missing per slice exceed zero. With 11 degrees of freedom, chance exceeds it in
/// one of two thousand windows in which the target keeps up just so.
const MIN_T: f64 = 4.5;
/// Variance of a slice's answers at least: those of evenly spaced requests differ by one between slices.
const COUNTING_VARIANCE: f64 = 0.25;
/// The backlog grows by so many requests …
const MIN_REQUESTS: f64 = 12.0;
/// … and by more than this part of those due: by 1 ms per second.
const MIN_SHARE: f64 = 0.001;
/// Late requests typically take so many times as long as early ones …
const MIN_RATIO: f64 = 1.5;
/// … and longer by this, nanoseconds.
const NEGLIGIBLE: f64 = 1e6;

/// A backlog that grows throughout the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Requests without an answer after the beginning of the window, and at its end.
    pub requests: [u64; 2],
    /// Typical response times early and late in the window, nanoseconds.
    pub response_time_ns: [u64; 2],
}

/// The growth of a backlog, if it grows throughout the window.
#[must_use]
pub fn growth(backlog: &Backlog) -> Option<Growth> {
    let judged = backlog.slices.get(JUDGED)?;
    let missing: Vec<f64> = judged.iter().map(|slice| slice.offered - slice.ended as f64).collect();
    let count = missing.len() as f64;
    let mean = missing.iter().sum::<f64>() / count;
    let variance = missing.iter().map(|of_slice| (of_slice - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let is_steady = mean > MIN_T * (variance.max(COUNTING_VARIANCE) / count).sqrt();
    let [from, to] = [JUDGED.start, SLICES].map(|end| backlog_after(backlog, end));
    let grown = to as f64 - from as f64;
    let due = judged.iter().map(|slice| slice.due as f64).sum::<f64>();
    let is_much = grown >= MIN_REQUESTS && grown > MIN_SHARE * due;
    let [early, late] = [EARLY, LATE].map(|of| typical_time(backlog, of));
    let takes_longer = late > MIN_RATIO * early && late - early > NEGLIGIBLE;
    (is_steady && is_much && takes_longer)
        .then_some(Growth { requests: [from, to], response_time_ns: [early as u64, late as u64] })
}

/// Requests without an answer when these many slices are over.
#[must_use]
pub fn backlog_after(backlog: &Backlog, slices: usize) -> u64 {
    let over = || backlog.slices.iter().take(slices);
    let due = over().map(|slice| slice.due).fold(backlog.under_way_at_start, u64::saturating_add);
    due.saturating_sub(over().map(|slice| slice.ended).fold(0, u64::saturating_add))
}

/// Typical time of the requests that were due in these slices, nanoseconds: the square of the mean root.
fn typical_time(backlog: &Backlog, of: Range<usize>) -> f64 {
    let slices = &backlog.slices[of];
    let due: f64 = slices.iter().map(|slice| slice.due as f64).sum();
    (slices.iter().map(|slice| slice.root_waits).sum::<f64>() / due.max(1.0)).powi(2)
}

/// The backlog of several generators that measured together; absent if one has none.
#[must_use]
pub fn together<'a>(mut backlogs: impl Iterator<Item = Option<&'a Backlog>>) -> Option<Backlog> {
    let mut sum = backlogs.next()??.clone();
    for backlog in backlogs {
        let other = backlog.filter(|other| other.slices.len() == sum.slices.len())?;
        sum.under_way_at_start = sum.under_way_at_start.saturating_add(other.under_way_at_start);
        for (mine, theirs) in sum.slices.iter_mut().zip(&other.slices) {
            mine.offered += theirs.offered;
            mine.due = mine.due.saturating_add(theirs.due);
            mine.root_waits += theirs.root_waits;
            mine.ended = mine.ended.saturating_add(theirs.ended);
        }
    }
    Some(sum)
}
