//! Increase of a counter over its samples. A value below the one before it is a reset: the counter began again at 0.

use super::answer::Number;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use std::fmt;

/// Largest value of a counter: bytes of years.
const MAX_VALUE: f64 = 1e18;

/// Samples of a counter, added up as they are read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Samples {
    /// Time of the first sample, seconds.
    pub(super) first: f64,
    /// Time of the last sample, seconds.
    pub(super) last: f64,
    /// Number of samples.
    pub(super) count: u32,
    pub(super) increase: f64,
    pub(super) resets: u32,
    /// Samples without a usable number, or that do not follow the one before in time.
    pub(super) unusable: u32,
    value: f64,
}

/// True for values that a counter can have.
pub(super) fn is_usable(value: f64) -> bool {
    (0.0..=MAX_VALUE).contains(&value)
}

impl Samples {
    pub(super) fn push(&mut self, time: f64, value: f64) {
        if !is_usable(value) || !is_usable(time) || (self.count > 0 && time <= self.last) {
            self.unusable = self.unusable.saturating_add(1);
            return;
        }
        if self.count == 0 {
            self.first = time;
        } else if value < self.value {
            self.resets += 1;
            self.increase += value;
        } else {
            self.increase += value - self.value;
        }
        (self.last, self.value) = (time, value);
        self.count = self.count.saturating_add(1);
    }

    /// Increase within a period: extrapolated to its ends where they are within 1.1 intervals of the samples, and by half an
    /// interval otherwise, as Prometheus' `increase` does.
    pub(super) fn increase_in(&self, (start, end): (f64, f64)) -> f64 {
        let span = self.last - self.first;
        if self.count < 2 || span <= 0.0 {
            return 0.0;
        }
        let interval = span / f64::from(self.count - 1);
        let beyond = |gap: f64| if gap < 1.1 * interval { gap } else { interval / 2.0 };
        let covered = span + beyond((self.first - start).max(0.0)) + beyond((end - self.last).max(0.0));
        self.increase * covered / span
    }
}

impl<'de> Deserialize<'de> for Samples {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values;
        impl<'de> Visitor<'de> for Values {
            type Value = Samples;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("pairs of time and value")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Samples, A::Error> {
                let mut samples = Samples::default();
                while let Some((time, Number(value))) = values.next_element::<(f64, Number)>()? {
                    samples.push(time, value);
                }
                Ok(samples)
            }
        }
        deserializer.deserialize_seq(Values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        let mut samples = Samples::default();
        values.iter().enumerate().for_each(|(index, value)| samples.push(index as f64 * 15.0, *value));
        samples
    }

    #[test]
    fn reset_counter_counts_what_came_before_and_after() {
        let reset = samples(&[100.0, 130.0, 160.0, 20.0, 50.0]);
        assert_eq!((reset.increase, reset.resets), (110.0, 1));
        assert_eq!(reset.increase_in((0.0, 60.0)), 110.0);
    }

    #[test]
    fn gaps_at_the_ends_are_bridged_up_to_an_interval() {
        let steady = samples(&[0.0, 30.0, 60.0]);
        assert_eq!(steady.increase_in((-10.0, 40.0)), 60.0 + 20.0 + 20.0);
        // A pod that began in the middle of the period.
        assert_eq!(steady.increase_in((-1000.0, 30.0)), 60.0 + 15.0);
    }

    #[test]
    fn unusable_samples_are_left_out() {
        let mut found = samples(&[1.0, f64::NAN, f64::INFINITY, -3.0, 5.0]);
        found.push(15.0, 7.0);
        assert_eq!((found.increase, found.resets, found.unusable, found.count), (4.0, 0, 4, 2));
        assert_eq!(samples(&[4.0]).increase_in((0.0, 60.0)), 0.0);
    }
}
