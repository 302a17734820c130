//! Trend of the backlog over the window. A target slightly slower than the offered rate answers less than is due in every part of
//! the window, and its response times describe the length of the run.
//!
//! The backlog is counted: requests on many connections overtake each other, so that some are answered at once however many wait.
//! Answers are compared with what the schedule offers and not with what was due: requests that come close together by chance are
//! worked off later. The part of the window after its beginning is judged, by Student's t of its slices.
//!
//! Left out is what a growing backlog looks like without a slow target: response times about as long as the window, of which the
//! first end in its last slices. There the number under way grows, and the times do not.

use crate::clock::Nanos;
use std::ops::Range;

#[cfg(test)]
mod simulated;

/// Slices of the window.
const SLICES: usize = 16;
/// The first slices may be a beginning: connections, caches, the first responses. The rest is judged.
const JUDGED: Range<usize> = 4..SLICES;
/// Slices whose response times are compared, early and late.
const EARLY: Range<usize> = 2..6;
const LATE: Range<usize> = 12..SLICES;
/// Number of standard errors by which the answers missing per slice exceed zero. With 11 degrees of freedom, chance exceeds it in
/// one of two thousand windows in which the target keeps up just so; [`simulated`] shows the rates of error.
const MIN_T: f64 = 4.5;
/// Variance of a slice's answers at least: those of evenly spaced requests differ by one between slices.
const COUNTING_VARIANCE: f64 = 0.25;
/// The backlog grows by so many requests …
const MIN_REQUESTS: f64 = 12.0;
/// … and by more than this part of those due: by 1 ms per second.
const MIN_SHARE: f64 = 0.001;
/// Late requests typically take so many times as long as early ones …
const MIN_RATIO: f64 = 1.5;
/// … and longer by this.
const NEGLIGIBLE: f64 = 1e6;

/// Requests and answers by slice of the window.
#[derive(Clone, Debug)]
pub(super) struct Trend {
    window_start: Nanos,
    slice: Nanos,
    slices: [Slice; SLICES],
    /// Requests from before the window that were under way when it began.
    under_way_at_start: u64,
}

/// Counts of one slice of the window.
#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    /// Requests that were due in it, whether or not they were sent.
    due: u64,
    /// Square roots of how long each of those took, or had waited when it was given up, added up. Where requests overtake each
    /// other a few wait very long, which roots keep from deciding a mean.
    roots: f64,
    /// Requests that ended in it, whenever they were due.
    ended: u64,
}

/// A backlog that grows throughout the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Growth {
    /// Requests without an answer after the beginning of the window, and at its end.
    pub(crate) requests: [u64; 2],
    /// Typical response times early and late in the window.
    pub(crate) response_time: [Nanos; 2],
}

impl Trend {
    pub(super) fn new(window_start: Nanos, window_end: Nanos) -> Self {
        let slice = (window_end.saturating_sub(window_start) / SLICES as Nanos).max(1);
        Self { window_start, slice, slices: Default::default(), under_way_at_start: 0 }
    }

    /// A request was answered, or has failed, at this time.
    pub(super) fn ended(&mut self, due: Nanos, at: Nanos) {
        if due >= self.window_start {
            self.took(due, at.saturating_sub(due), 1);
        } else if at >= self.window_start {
            self.under_way_at_start += 1;
        }
        if let Some(since_start) = at.checked_sub(self.window_start)
            && let Some(slice) = self.slices.get_mut((since_start / self.slice) as usize)
        {
            slice.ended += 1;
        }
    }

    /// Requests of the window took this long, or had waited this long when they were given up.
    pub(super) fn took(&mut self, due: Nanos, waited: Nanos, requests: u64) {
        let index = (due.saturating_sub(self.window_start) / self.slice) as usize;
        let slice = &mut self.slices[index.min(SLICES - 1)];
        slice.due += requests;
        slice.roots += (waited as f64).sqrt() * requests as f64;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.under_way_at_start += other.under_way_at_start;
        for (mine, theirs) in self.slices.iter_mut().zip(&other.slices) {
            mine.due += theirs.due;
            mine.roots += theirs.roots;
            mine.ended += theirs.ended;
        }
    }

    /// The backlog, if it grows throughout the window. `offered_until`: requests that the schedule offers until a time of the
    /// window, on average.
    pub(super) fn growth(&self, offered_until: impl Fn(Nanos) -> f64) -> Option<Growth> {
        let at = |index: usize| index as Nanos * self.slice;
        let missing = JUDGED.map(|index| {
            let offered = offered_until(at(index + 1)) - offered_until(at(index));
            offered - self.slices[index].ended as f64
        });
        let missing: Vec<f64> = missing.collect();
        let count = missing.len() as f64;
        let mean = missing.iter().sum::<f64>() / count;
        let variance = missing.iter().map(|of_slice| (of_slice - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let is_steady = mean > MIN_T * (variance.max(COUNTING_VARIANCE) / count).sqrt();
        let [from, to] = [JUDGED.start, SLICES].map(|end| self.backlog_after(end));
        let grown = to as f64 - from as f64;
        let due = self.slices[JUDGED].iter().map(|slice| slice.due).sum::<u64>() as f64;
        let is_much = grown >= MIN_REQUESTS && grown > MIN_SHARE * due;
        let [early, late] = [EARLY, LATE].map(|of| self.typical_time(of));
        let takes_longer = late > MIN_RATIO * early && late - early > NEGLIGIBLE;
        (is_steady && is_much && takes_longer)
            .then_some(Growth { requests: [from, to], response_time: [early as Nanos, late as Nanos] })
    }

    /// Requests without an answer when these many slices are over.
    fn backlog_after(&self, slices: usize) -> u64 {
        let over = &self.slices[..slices];
        let due: u64 = over.iter().map(|slice| slice.due).sum();
        let ended: u64 = over.iter().map(|slice| slice.ended).sum();
        (self.under_way_at_start + due).saturating_sub(ended)
    }

    /// Typical time of the requests that were due in these slices, nanoseconds: the square of the mean root.
    fn typical_time(&self, of: Range<usize>) -> f64 {
        let slices = &self.slices[of];
        let due: u64 = slices.iter().map(|slice| slice.due).sum();
        (slices.iter().map(|slice| slice.roots).sum::<f64>() / due.max(1) as f64).powi(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 requests in a second, with these response times.
    fn growth(response_time: impl Fn(Nanos) -> Nanos) -> Option<Growth> {
        let (start, end) = (5_000_000_000, 6_000_000_000);
        let mut two = [Trend::new(start, end), Trend::new(start, end)];
        for index in 0..1000 {
            let due = start + index * 1_000_000;
            two[index as usize % 2].ended(due, due + response_time(index));
        }
        let [mut all, other] = two;
        all.merge(&other);
        all.growth(|at| at as f64 / 1e6)
    }

    #[test]
    fn target_that_lags_ever_more_is_found_whatever_its_noise() {
        // 2 % over its capacity, and up to 3 ms of noise.
        let found = growth(|index| 300_000 + index * 20_000 + index * 1_919_003 % 3_000_000).unwrap();
        assert!(found.requests[0] < 10 && found.requests[1] > 18, "{found:?}");
        assert!(found.response_time[0] < 7_000_000 && found.response_time[1] > 18_000_000, "{found:?}");
    }

    #[test]
    fn target_that_keeps_up_is_not() {
        for (what, times) in [
            (
                "steady",
                Box::new(|index: Nanos| 300_000 + index * 1_919_003 % 3_000_000)
                    as Box<dyn Fn(Nanos) -> Nanos>,
            ),
            (
                "slow at the beginning",
                Box::new(|index: Nanos| if index < 250 { 90_000_000 } else { 300_000 }),
            ),
            ("a stall at the end", Box::new(|index: Nanos| 300_000 + index.saturating_sub(700) * 1_000_000)),
            ("a step", Box::new(|index: Nanos| if index < 500 { 300_000 } else { 9_000_000 })),
            ("catching up each second", Box::new(|index: Nanos| 300_000 + index % 100 * 1_000_000)),
            ("times as long as the window", Box::new(|_| 950_000_000)),
            ("times longer than the window", Box::new(|_| 3_000_000_000)),
            ("times that grow by a tenth", Box::new(|index: Nanos| 300_000_000 + index * 30_000)),
        ] {
            assert_eq!(growth(times), None, "{what}");
        }
        assert_eq!(Trend::new(0, 0).growth(|_| 0.0), None, "no response");
    }
}
