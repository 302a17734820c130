//! Trend of the response times over the window. A target slightly slower than the offered rate lags behind by a little more each
//! second, and its response times describe the length of the run.

use crate::clock::Nanos;

/// Slices of the window.
const SLICES: usize = 8;
/// The first slices may be a beginning: connections, caches.
const FIRST_SLICES: usize = 2;
/// Each slice adds at least this part of a steady growth.
const STEADY: f64 = 0.25;
/// The last slice's shortest time is this many times the first one's …
const GROWTH: u64 = 4;
/// … and longer by this.
const NEGLIGIBLE: Nanos = 1_000_000;

/// The shortest response time of each slice of the window, by when requests were due. A target that keeps up answers some request
/// of each slice at once, whatever the others wait for.
#[derive(Clone, Debug)]
pub(super) struct Trend {
    window_start: Nanos,
    slice: Nanos,
    shortest: [Option<Nanos>; SLICES],
}

impl Trend {
    pub(super) fn new(window_start: Nanos, window_end: Nanos) -> Self {
        let slice = (window_end.saturating_sub(window_start) / SLICES as Nanos).max(1);
        Self { window_start, slice, shortest: [None; SLICES] }
    }

    pub(super) fn answered(&mut self, due: Nanos, response_time: Nanos) {
        let index = due.saturating_sub(self.window_start) / self.slice;
        let shortest = &mut self.shortest[(index as usize).min(SLICES - 1)];
        *shortest = Some(shortest.map_or(response_time, |shortest| shortest.min(response_time)));
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.shortest.iter_mut().zip(other.shortest) {
            *mine = [*mine, theirs].into_iter().flatten().min();
        }
    }

    /// The shortest response times of the first and last slice, if they grow throughout the window.
    pub(super) fn growth(&self) -> Option<(Nanos, Nanos)> {
        let shortest: Vec<Nanos> = self.shortest.iter().copied().collect::<Option<_>>()?;
        let (first, last) = (shortest[0], shortest[SLICES - 1]);
        let from = &shortest[FIRST_SLICES..];
        let step = last.checked_sub(from[0])? as f64 / (from.len() - 1) as f64;
        let is_steady = from.windows(2).all(|pair| pair[1] as f64 - pair[0] as f64 >= STEADY * step);
        let is_much = last > first.saturating_mul(GROWTH) && last - first > NEGLIGIBLE;
        (is_much && is_steady).then_some((first, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 requests in a second, with these response times.
    fn growth(response_time: impl Fn(Nanos) -> Nanos) -> Option<(Nanos, Nanos)> {
        let (start, end) = (5_000_000_000, 6_000_000_000);
        let mut two = [Trend::new(start, end), Trend::new(start, end)];
        for index in 0..1000 {
            two[index as usize % 2].answered(start + index * 1_000_000, response_time(index));
        }
        let [mut all, other] = two;
        all.merge(&other);
        all.growth()
    }

    #[test]
    fn target_that_lags_ever_more_is_found_whatever_its_noise() {
        // 0.5 % over its capacity, and up to 3 ms of noise.
        let (first, last) = growth(|index| 300_000 + index * 5_000 + index * 1_919_003 % 3_000_000).unwrap();
        assert!((300_000..600_000).contains(&first) && last > 4_600_000, "{first} {last}");
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
        ] {
            assert_eq!(growth(times), None, "{what}");
        }
        assert_eq!(Trend::new(0, 0).growth(), None, "no response");
    }
}
