//! Series with two modes: runs fall into one of two groups, as when a process keeps one of two layouts for its life.
//!
//! The values are cut in two where the variance within both parts is least. A series is bimodal if the cut explains more of its
//! variance than 99 of 100 series of the same length that are spread evenly, which is the least clear of all with one mode; if both
//! groups have a fair share of the runs; and if they are far enough apart to matter.

use super::tables::Bounds;
use rand::RngExt as _;
use results::Modes;

/// Fewest values for a verdict.
const MIN_VALUES: usize = 8;
/// Fewest values of a group: fewer are outliers.
const MIN_GROUP: usize = 3;
/// Smallest share of a group.
const MIN_SHARE: f64 = 0.15;
/// Smallest distance of the groups, as a fraction.
const MIN_DISTANCE: f64 = 0.01;
const SEED: u64 = 2;

/// Clarity of series that are spread evenly.
static BOUNDS: Bounds = Bounds::new(SEED, |length, random| {
    let values: Vec<f64> = (0..length).map(|_| random.random::<f64>()).collect();
    cut(&values).map_or(0.0, |(_, clarity)| clarity)
});

/// Two groups of logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Groups {
    /// Mean and number of the lower group.
    pub(super) lower: (f64, usize),
    /// Mean and number of the upper group.
    pub(super) upper: (f64, usize),
}

impl Groups {
    /// The groups in the unit of the figure.
    pub(super) fn modes(self) -> Modes {
        Modes {
            lower: self.lower.0.exp(),
            lower_runs: self.lower.1,
            upper: self.upper.0.exp(),
            upper_runs: self.upper.1,
        }
    }
}

/// Groups of a series of logarithms; `None` if it has one mode.
pub(super) fn groups(values: &[f64]) -> Option<Groups> {
    if values.len() < MIN_VALUES {
        return None;
    }
    let (groups, clarity) = cut(values)?;
    let fewest = groups.lower.1.min(groups.upper.1);
    let is_fair = fewest >= MIN_GROUP && fewest as f64 >= MIN_SHARE * values.len() as f64;
    let is_far = groups.upper.0 - groups.lower.0 >= MIN_DISTANCE;
    (is_fair && is_far && clarity > BOUNDS.of(values.len())).then_some(groups)
}

/// The cut with the least variance within both parts, and the part of all variance that it explains. `None` if all values are equal.
fn cut(values: &[f64]) -> Option<(Groups, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let length = sorted.len() as f64;
    let sum = sorted.iter().sum::<f64>();
    let mean = sum / length;
    let all: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
    if all <= 0.0 {
        return None;
    }
    let mut below = 0.0;
    let cuts = (1..sorted.len()).map(|count| {
        below += sorted[count - 1];
        let (lower, upper) = (below / count as f64, (sum - below) / (length - count as f64));
        let between = count as f64 * (length - count as f64) / length * (upper - lower).powi(2);
        (Groups { lower: (lower, count), upper: (upper, sorted.len() - count) }, between / all)
    });
    cuts.max_by(|one, other| one.1.total_cmp(&other.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use noise::normal::normal;
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    fn series(seed: u64, length: usize, value: impl Fn(usize, f64) -> f64) -> Vec<f64> {
        let mut random = StdRng::seed_from_u64(seed);
        (0..length).map(|position| value(position, normal(&mut random))).collect()
    }

    fn found(length: usize, value: impl Fn(usize, f64) -> f64 + Copy) -> usize {
        (0..100).filter(|seed| groups(&series(*seed, length, value)).is_some()).count()
    }

    #[test]
    fn two_groups_are_found_and_one_is_not_cut() {
        let two = found(24, |position, noise| if position % 3 == 0 { 0.2 } else { 0.0 } + 0.02 * noise);
        assert!(two >= 95, "{two}");
        let one = found(24, |_, noise| 0.05 * noise);
        assert!(one <= 3, "{one}");
        let skewed = found(24, |_, noise| (0.5 * noise).exp());
        assert!(skewed <= 5, "{skewed}");
    }

    #[test]
    fn outliers_and_small_distances_are_no_second_mode() {
        assert_eq!(found(24, |position, noise| if position == 5 { 1.0 } else { 0.0 } + 0.02 * noise), 0);
        assert_eq!(
            found(24, |position, noise| if position % 2 == 0 { 0.005 } else { 0.0 } + 1e-5 * noise),
            0
        );
        assert_eq!(groups(&[1.0; 20]), None);
    }

    #[test]
    fn groups_have_their_means_and_numbers() {
        let values = [0.0, 0.01, 1.0, 0.02, 1.01, 0.01, 0.99, 0.0, 0.01, 1.0];
        let found = groups(&values).unwrap();
        assert_eq!((found.lower.1, found.upper.1), (6, 4));
        assert!((found.upper.0 - 1.0).abs() < 1e-9);
    }
}
