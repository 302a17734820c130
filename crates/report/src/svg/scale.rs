//! Scales: from a figure to a position on an axis, and the ticks of that axis.

/// Maps figures to positions on an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    kind: Kind,
    /// Smallest and largest figure.
    domain: (f64, f64),
    /// Their positions in units.
    range: (f64, f64),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Linear,
    Logarithmic,
    /// Percentiles by the logarithm of the remainder: from 90 to 99 is as far as from 99 to 99.9.
    Tail,
}

impl Scale {
    /// A linear scale that covers zero and all finite figures, with round ends.
    pub fn linear(values: impl IntoIterator<Item = f64>, range: (f64, f64)) -> Self {
        let (mut low, mut high) = (0.0f64, 0.0f64);
        for value in values.into_iter().filter(|value| value.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        if low == high {
            high = 1.0;
        }
        let step = round_step((high - low) / 4.0);
        Self { kind: Kind::Linear, domain: ((low / step).floor() * step, (high / step).ceil() * step), range }
    }

    /// A logarithmic scale that covers all positive figures, with ends at 1, 2 or 5 times a power of ten.
    pub fn logarithmic(values: impl IntoIterator<Item = f64>, range: (f64, f64)) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for value in values.into_iter().filter(|value| value.is_finite() && *value > 0.0) {
            low = low.min(value);
            high = high.max(value);
        }
        if high == 0.0 {
            (low, high) = (1.0, 10.0);
        }
        let low = steps_125(low / 10.0, low).last().copied().unwrap_or(low);
        let high = steps_125(high, high * 10.0).first().copied().unwrap_or(high);
        let high = if high > low { high } else { low * 10.0 };
        Self { kind: Kind::Logarithmic, domain: (low, high), range }
    }

    /// A scale of percentiles from 0 to `greatest`, which must be below 100.
    #[must_use]
    pub fn tail(greatest: f64, range: (f64, f64)) -> Self {
        Self { kind: Kind::Tail, domain: (0.0, greatest.clamp(50.0, 99.999)), range }
    }

    /// Logarithmic if the positive figures span more than a factor of 15, otherwise linear.
    pub fn fitting(values: &[f64], range: (f64, f64)) -> Self {
        let positive = || values.iter().copied().filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) =
            positive().fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        if high > low * 15.0 { Self::logarithmic(positive(), range) } else { Self::linear(positive(), range) }
    }

    /// Position of a figure; not finite if the scale cannot show it. Figures beyond the ends are placed at
    /// the ends.
    #[must_use]
    pub fn place(&self, value: f64) -> f64 {
        let (low, high) = (self.measure(self.domain.0), self.measure(self.domain.1));
        let part = (self.measure(value) - low) / (high - low);
        let part = if self.kind == Kind::Logarithmic && value <= 0.0 { 0.0 } else { part.clamp(0.0, 1.0) };
        self.range.0 + part * (self.range.1 - self.range.0)
    }

    /// True if equal distances are equal factors.
    #[must_use]
    pub fn is_logarithmic(&self) -> bool {
        self.kind == Kind::Logarithmic
    }

    fn measure(&self, value: f64) -> f64 {
        match self.kind {
            Kind::Linear => value,
            Kind::Logarithmic => value.log10(),
            Kind::Tail => -(1.0 - value / 100.0).log10(),
        }
    }

    /// Round figures on the axis, at most about `most` of them.
    #[must_use]
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        let (low, high) = self.domain;
        match self.kind {
            Kind::Linear => linear_ticks(low, high, most),
            Kind::Logarithmic => logarithmic_ticks(low, high, most),
            Kind::Tail => [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999]
                .into_iter()
                .filter(|tick| *tick <= high)
                .collect(),
        }
    }
}

fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let step = round_step((high - low) / most.max(1) as f64);
    let (first, last) = ((low / step).round() as i64, (high / step).floor() as i64);
    (first..=last).map(|index| index as f64 * step).filter(|tick| *tick >= low).collect()
}

/// All steps of 1, 2 and 5 if they are few enough; otherwise the powers of ten if there are at least three;
/// otherwise some of the steps.
fn logarithmic_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let all = steps_125(low, high);
    if all.len() <= most {
        return all;
    }
    let powers: Vec<f64> = all.iter().copied().filter(|step| is_power_of_ten(*step)).collect();
    let ticks = if powers.len() >= 3 { powers } else { all };
    let stride = ticks.len().div_ceil(most.max(1));
    ticks.into_iter().step_by(stride).collect()
}

fn is_power_of_ten(value: f64) -> bool {
    (value.log10() - value.log10().round()).abs() < 1e-9
}

/// 1, 2 and 5 times powers of ten from `low` to `high`, inclusive.
fn steps_125(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let mut steps = Vec::new();
    for exponent in first..=last.min(first + 40) {
        for factor in [1.0, 2.0, 5.0] {
            let step = factor * 10f64.powi(exponent);
            if step >= low * (1.0 - 1e-9) && step <= high * (1.0 + 1e-9) {
                steps.push(step);
            }
        }
    }
    steps
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is at least `at_least`.
fn round_step(at_least: f64) -> f64 {
    let power = 10f64.powf(at_least.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0].into_iter().find(|factor| factor * power >= at_least * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_scale_has_round_ends_and_includes_zero() {
        let scale = Scale::linear([0.31, 1.87, f64::NAN], (0.0, 100.0));
        assert_eq!(scale.domain, (0.0, 2.0));
        assert_eq!(scale.ticks(4), [0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!(scale.place(1.0), 50.0);
        assert_eq!(scale.place(9.0), 100.0, "beyond the end is at the end");
        let scale = Scale::linear([-0.3, 1.0], (0.0, 100.0));
        assert!(scale.domain.0 <= -0.3 && scale.ticks(4).contains(&0.0), "{scale:?} {:?}", scale.ticks(4));
        assert!(Scale::linear([], (0.0, 1.0)).place(0.0).is_finite());
    }

    #[test]
    fn logarithmic_scale_ends_at_steps() {
        let scale = Scale::logarithmic([130.0, 3100.0, 0.0, f64::NAN], (100.0, 0.0));
        assert_eq!(scale.domain, (100.0, 5000.0));
        assert_eq!(scale.place(100.0), 100.0);
        assert_eq!(scale.ticks(6), [100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0]);
        assert_eq!(scale.ticks(3), [100.0, 500.0, 2000.0]);
        assert_eq!(Scale::logarithmic([1.0, 1e6], (0.0, 1.0)).ticks(4), [1.0, 100.0, 1e4, 1e6]);
        for lone in [1.0, 200.0, 0.003] {
            let scale = Scale::logarithmic([lone], (0.0, 1.0));
            assert!(scale.place(lone).is_finite() && !scale.ticks(5).is_empty(), "{lone}: {scale:?}");
        }
        assert!(Scale::logarithmic([], (0.0, 1.0)).place(5.0).is_finite());
    }

    #[test]
    fn tail_scale_gives_each_nine_equal_space() {
        let scale = Scale::tail(99.9, (0.0, 300.0));
        let distance = |low: f64, high: f64| scale.place(high) - scale.place(low);
        assert!((distance(90.0, 99.0) - 100.0).abs() < 1e-6 && (distance(99.0, 99.9) - 100.0).abs() < 1e-6);
        assert_eq!(scale.ticks(9), [0.0, 50.0, 90.0, 99.0, 99.9]);
    }
}
