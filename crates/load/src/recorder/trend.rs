//! Trend of the backlog over the window: requests and answers by slice. [`statistics::backlog`] judges it.

use crate::clock::Nanos;
use results::{Backlog, BacklogSlice};
use statistics::backlog::SLICES;

#[cfg(test)]
mod simulated;

/// Requests and answers by slice of the window.
#[derive(Clone, Debug)]
pub(super) struct Trend {
    window_start: Nanos,
    slice: Nanos,
    slices: [Slice; SLICES],
    /// Requests from before the window that were under way when it began.
    under_way_at_start: u64,
}

/// Counts of one slice of the window: see [`BacklogSlice`].
#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    due: u64,
    roots: f64,
    ended: u64,
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

    /// The backlog in the form of the result schema. `offered`: requests that the schedule offers between two times of the
    /// window, on average.
    pub(super) fn backlog(&self, offered: impl Fn(Nanos, Nanos) -> f64) -> Backlog {
        let at = |index: usize| index as Nanos * self.slice;
        let slices = self.slices.iter().enumerate().map(|(index, slice)| BacklogSlice {
            offered: offered(at(index), at(index + 1)),
            due: slice.due,
            root_waits: slice.roots,
            ended: slice.ended,
        });
        Backlog { under_way_at_start: self.under_way_at_start, slices: slices.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statistics::backlog::{Growth, growth};

    /// 1000 requests in a second, with these response times.
    fn growth_with(response_time: impl Fn(Nanos) -> Nanos) -> Option<Growth> {
        let (start, end) = (5_000_000_000, 6_000_000_000);
        let mut two = [Trend::new(start, end), Trend::new(start, end)];
        for index in 0..1000 {
            let due = start + index * 1_000_000;
            two[index as usize % 2].ended(due, due + response_time(index));
        }
        let [mut all, other] = two;
        all.merge(&other);
        growth(&all.backlog(|from, until| (until - from) as f64 / 1e6))
    }

    #[test]
    fn target_that_lags_ever_more_is_found_whatever_its_noise() {
        // 2 % over its capacity, and up to 3 ms of noise.
        let found = growth_with(|index| 300_000 + index * 20_000 + index * 1_919_003 % 3_000_000).unwrap();
        assert!(found.requests[0] < 10 && found.requests[1] > 18, "{found:?}");
        assert!(found.response_time_ns[0] < 7_000_000 && found.response_time_ns[1] > 18_000_000, "{found:?}");
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
            assert_eq!(growth_with(times), None, "{what}");
        }
        assert_eq!(growth(&Trend::new(0, 0).backlog(|_, _| 0.0)), None, "no response");
    }
}
