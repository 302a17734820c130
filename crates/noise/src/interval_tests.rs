//! Coverage, shown by simulation. At least 93 of 100 simulated studies contain the truth, for a percentile
//! and for an added percentile, with 3, 5 and 10 repeats, under every kind of noise that a run is likely to
//! meet.
//!
//! A simulated study is built like a run. Modes and rates come in a random order within each repeat. The
//! machine drifts from trial to trial. Each trial has its own factor, and its percentile is read off a finite
//! number of requests.

use super::*;
use crate::normal::normal;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

const STUDIES: usize = 1000;
/// Cells of a study; two of them are evaluated.
const CELLS: usize = 6;

/// Noise in the trials of a study.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// Each trial's factor is normal, with this standard deviation.
    Normal(f64),
    /// Log-normal with this sigma; the truth is its mean.
    Skewed(f64),
    /// Student's t with 3 degrees of freedom: an occasional trial is far off.
    HeavyTails(f64),
    /// Gamma-like waiting: 1 + the mean of four exponentials, scaled.
    Waiting(f64),
    /// The machine slows down evenly, by this much over the run.
    Drift(f64),
    /// The machine slows down at a random moment, by this much.
    Step(f64),
}

/// When a disturbed trial is rerun.
#[derive(Clone, Copy, Debug)]
enum Retaken {
    AfterItsRepeat,
    AfterTheRun,
}

/// One simulated study: the percentile of mode `none` and of another mode in each repeat, and their true
/// values.
struct Study {
    pairs: Vec<(f64, f64)>,
    true_with: f64,
    true_added: f64,
}

impl Noise {
    /// The factor of a trial at `moment` of the run (0 to 1), with the step at `step_at`.
    fn factor(self, random: &mut StdRng, moment: f64, step_at: f64) -> f64 {
        let small = 1.0 + 0.03 * normal(random);
        match self {
            Self::Normal(deviation) => 1.0 + deviation * normal(random),
            Self::Skewed(sigma) => (sigma * normal(random)).exp(),
            Self::HeavyTails(scale) => {
                let squares: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
                (1.0 + scale * normal(random) / (squares / 3.0).sqrt()).max(0.05)
            }
            Self::Waiting(scale) => {
                let wait: f64 = (0..4).map(|_| -(1.0 - random.random::<f64>()).ln()).sum();
                1.0 + scale * wait / 4.0
            }
            Self::Drift(by) => small * (1.0 + by * (moment - 0.5)),
            Self::Step(by) => small * if moment > step_at { 1.0 + by } else { 1.0 },
        }
    }

    /// The mean of the factor over the run.
    fn mean(self, step_at: f64) -> f64 {
        match self {
            Self::Normal(_) | Self::HeavyTails(_) | Self::Drift(_) => 1.0,
            Self::Skewed(sigma) => (sigma * sigma / 2.0).exp(),
            Self::Waiting(scale) => 1.0 + scale,
            Self::Step(by) => 1.0 + by * (1.0 - step_at),
        }
    }

    /// A study of two modes whose true percentiles are `truth`.
    fn study(self, random: &mut StdRng, repeats: usize, truth: (f64, f64)) -> Study {
        self.study_with_retakes(random, repeats, truth, (Retaken::AfterItsRepeat, 0.0))
    }

    /// Like [`Noise::study`]; each trial is disturbed, and then rerun, with this probability.
    fn study_with_retakes(
        self,
        random: &mut StdRng,
        repeats: usize,
        (with, without): (f64, f64),
        (retaken, chance): (Retaken, f64),
    ) -> Study {
        let step_at: f64 = random.random();
        let pairs = (0..repeats)
            .map(|repeat| {
                let first = random.random_range(0..CELLS);
                let second = (first + random.random_range(1..CELLS)) % CELLS;
                let mut measure = |cell: usize, truth: f64| {
                    let place = repeat as f64 + (cell as f64 + 0.5) / CELLS as f64;
                    let place = match retaken {
                        _ if chance == 0.0 || random.random::<f64>() >= chance => place,
                        Retaken::AfterItsRepeat => (repeat + 1) as f64,
                        Retaken::AfterTheRun => repeats as f64,
                    };
                    let moment = place / repeats as f64;
                    let within = 1.0 + 0.01 * normal(random);
                    truth * self.factor(random, moment, step_at) * within
                };
                (measure(first, with), measure(second, without))
            })
            .collect();
        let mean = self.mean(step_at);
        Study { pairs, true_with: with * mean, true_added: (with - without) * mean }
    }
}

/// Fractions of studies whose intervals contain the truth: for a percentile, and for an added percentile.
fn coverage(noise: Noise, repeats: usize, truth: (f64, f64)) -> (f64, f64) {
    let mut random = StdRng::seed_from_u64(20_261_120);
    let contains = |interval: Estimate, truth: f64| {
        interval.low.is_some_and(|low| low <= truth) && interval.high.is_some_and(|high| truth <= high)
    };
    let (mut of_percentile, mut of_added) = (0, 0);
    for _ in 0..STUDIES {
        let study = noise.study(&mut random, repeats, truth);
        let with: Vec<f64> = study.pairs.iter().map(|(with, _)| *with).collect();
        of_percentile += usize::from(contains(mean(&with, 0.0).unwrap(), study.true_with));
        of_added += usize::from(contains(paired_difference(&study.pairs, 0.0).unwrap(), study.true_added));
    }
    (of_percentile as f64 / STUDIES as f64, of_added as f64 / STUDIES as f64)
}

#[test]
fn intervals_contain_the_truth_in_93_of_100_studies() {
    let noises = [
        Noise::Normal(0.02),
        Noise::Normal(0.1),
        Noise::Normal(0.3),
        Noise::Skewed(0.1),
        Noise::Skewed(0.3),
        Noise::Skewed(0.5),
        Noise::HeavyTails(0.1),
        Noise::Waiting(0.3),
        Noise::Drift(0.3),
        Noise::Drift(1.0),
        Noise::Step(0.3),
    ];
    let mut failures = Vec::new();
    for noise in noises {
        for repeats in [3, 5, 10] {
            // A large difference, and one that is smaller than some of the noise.
            for truth in [(480.0, 100.0), (112.0, 100.0)] {
                let (percentile, added) = coverage(noise, repeats, truth);
                if percentile < 0.93 || added < 0.93 {
                    failures.push(format!(
                        "{noise:?}, {repeats} repeats, {truth:?}: {percentile:.3}, {added:.3}"
                    ));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// For studies in which this share of trials was disturbed and rerun: the fraction whose interval of the
/// added percentile contains the truth, and the median width of that interval.
fn coverage_with_retakes(noise: Noise, repeats: usize, retaken: (Retaken, f64)) -> (f64, f64) {
    let mut random = StdRng::seed_from_u64(20_261_122);
    let (mut contained, mut widths) = (0, Vec::new());
    for _ in 0..STUDIES {
        let study = noise.study_with_retakes(&mut random, repeats, (480.0, 100.0), retaken);
        let interval = paired_difference(&study.pairs, 0.0).unwrap();
        let (low, high) = (interval.low.unwrap(), interval.high.unwrap());
        contained += usize::from(low <= study.true_added && study.true_added <= high);
        widths.push(high - low);
    }
    widths.sort_by(f64::total_cmp);
    (contained as f64 / STUDIES as f64, widths[STUDIES / 2])
}

#[test]
fn reruns_after_their_repeat_keep_coverage() {
    let noises = [
        Noise::Normal(0.1),
        Noise::Skewed(0.3),
        Noise::HeavyTails(0.1),
        Noise::Drift(0.3),
        Noise::Drift(1.0),
        Noise::Step(0.3),
    ];
    for noise in noises {
        for repeats in [3, 5, 10] {
            for chance in [0.1, 0.33] {
                let (covered, _) = coverage_with_retakes(noise, repeats, (Retaken::AfterItsRepeat, chance));
                assert!(covered >= 0.93, "{noise:?}, {repeats} repeats, {chance} rerun: {covered:.3}");
            }
        }
    }
}

#[test]
fn reruns_at_the_end_of_the_run_lose_coverage_under_drift() {
    let drift = Noise::Drift(1.0);
    for (repeats, chance) in [(5, 0.33), (10, 0.1), (10, 0.33)] {
        let (with_repeat, _) = coverage_with_retakes(drift, repeats, (Retaken::AfterItsRepeat, chance));
        let (with_run, _) = coverage_with_retakes(drift, repeats, (Retaken::AfterTheRun, chance));
        assert!(with_run < with_repeat, "{repeats} repeats, {chance}: {with_repeat:.3} and {with_run:.3}");
    }
}

/// For studies of three repeats in which one trial of mode `none` is not valid: the fraction whose interval
/// of the added percentile contains the truth. Also the median of its width relative to that from the two
/// remaining pairs.
fn coverage_without_a_floor(noise: Noise, truth: (f64, f64)) -> (f64, f64) {
    let mut random = StdRng::seed_from_u64(20_261_121);
    let (mut contained, mut widths) = (0, Vec::new());
    let width = |interval: Estimate| interval.high.unwrap() - interval.low.unwrap();
    for _ in 0..STUDIES {
        let study = noise.study(&mut random, 3, truth);
        let missing = random.random_range(0..3);
        let with: BTreeMap<usize, f64> = study.pairs.iter().map(|(with, _)| *with).enumerate().collect();
        let mut without: BTreeMap<usize, f64> =
            study.pairs.iter().map(|(_, floor)| *floor).enumerate().collect();
        without.remove(&missing);
        let interval = difference(&with, &without, 0.0).unwrap();
        let (low, high) = (interval.low.unwrap(), interval.high.unwrap());
        contained += usize::from(low <= study.true_added && study.true_added <= high);
        let pairs: Vec<(f64, f64)> = without.iter().map(|(repeat, floor)| (with[repeat], *floor)).collect();
        widths.push(width(interval) / width(paired_difference(&pairs, 0.0).unwrap()));
    }
    widths.sort_by(f64::total_cmp);
    (contained as f64 / STUDIES as f64, widths[STUDIES / 2])
}

#[test]
fn missing_baseline_trial_keeps_coverage_and_width() {
    let noises = [
        Noise::Normal(0.02),
        Noise::Normal(0.3),
        Noise::Skewed(0.3),
        Noise::HeavyTails(0.1),
        Noise::Waiting(0.3),
        Noise::Drift(0.3),
        Noise::Step(0.3),
    ];
    for noise in noises {
        let (covered, _) = coverage_without_a_floor(noise, (112.0, 100.0));
        assert!(covered >= 0.93, "{noise:?} covers {covered:.3} of small differences");
        let (covered, width) = coverage_without_a_floor(noise, (480.0, 100.0));
        assert!(covered >= 0.93, "{noise:?} covers {covered:.3}");
        assert!(width < 0.7, "{noise:?} is {width:.2} times as wide as two pairs");
    }
}

#[test]
fn two_trials_of_the_noisier_mode_are_paired() {
    let side = |values: &[(usize, f64)]| values.iter().copied().collect::<BTreeMap<usize, f64>>();
    let floor = side(&[(0, 100.0), (1, 101.0), (2, 99.0)]);
    let mode = side(&[(0, 480.0), (1, 490.0)]);
    let pairs = paired_difference(&[(480.0, 100.0), (490.0, 101.0)], 0.0);
    assert_eq!(difference(&mode, &floor, 0.0), pairs);
    let few = side(&[(1, 101.0), (2, 99.0)]);
    let all = side(&[(0, 480.0), (1, 490.0), (2, 470.0)]);
    assert_eq!(difference(&all, &few, 0.0), unpaired_difference(&[480.0, 490.0, 470.0], &[101.0, 99.0], 0.0));
    assert_eq!(difference(&side(&[(0, 480.0)]), &side(&[]), 0.0), None);
}

/// A sum of exponentials: a gamma variable with an integer shape. Large shapes are close enough to normal.
fn gamma(random: &mut StdRng, shape: usize) -> f64 {
    if shape > 100 {
        let (shape, deviation) = (shape as f64, (shape as f64).sqrt());
        return shape + deviation * normal(random);
    }
    (0..shape).map(|_| -(1.0 - random.random::<f64>()).ln()).sum()
}

#[test]
fn percentiles_of_short_trials_are_covered_despite_low_bias() {
    let mut random = StdRng::seed_from_u64(7);
    // A trial's 99th percentile is its request of rank k of n. The quantile of that request is a beta
    // variable of k and n + 1 - k. Latencies are exponential above a minimum.
    let (requests, rank) = (1100, 1089);
    let latency_us = |lies_at: f64| 100.0 - 200.0 * (1.0 - lies_at).ln();
    let truth = latency_us(0.99);
    for repeats in [3, 5, 10] {
        let covered = (0..STUDIES).filter(|_| {
            let percentiles: Vec<f64> = (0..repeats)
                .map(|_| {
                    let (below, above) = (gamma(&mut random, rank), gamma(&mut random, requests + 1 - rank));
                    latency_us(below / (below + above)) * (1.0 + 0.02 * normal(&mut random))
                })
                .collect();
            let interval = mean(&percentiles, 0.5).unwrap();
            interval.low.unwrap() <= truth && truth <= interval.high.unwrap()
        });
        let share = covered.count() as f64 / STUDIES as f64;
        assert!(share >= 0.93, "{repeats} repeats: {share:.3}");
    }
}

#[test]
fn intervals_under_normal_noise_are_close_to_minimum_width() {
    for repeats in [3, 5, 10] {
        let (percentile, added) = coverage(Noise::Normal(0.1), repeats, (480.0, 100.0));
        assert!(percentile < 0.98 && added < 0.98, "{repeats} repeats: {percentile:.3}, {added:.3}");
    }
}

#[test]
fn intervals_match_textbook_except_for_allowance() {
    // t(0.975, 4) = 2.776445; the standard deviation of 1..5 is 1.581139. Values of both signs have no
    // logarithms.
    let estimate = mean(&[-2.0, -1.0, 0.0, 1.0, 2.0], 0.0).unwrap();
    let half = 2.776_445 * 1.581_139 / 5.0_f64.sqrt() * ALLOWANCE;
    assert!((estimate.high.unwrap() - half).abs() < 1e-5, "{estimate:?}");
    assert!((estimate.low.unwrap() + half).abs() < 1e-5, "{estimate:?}");
    assert!(!estimate.excludes_zero());
}

#[test]
fn few_or_equal_values_use_resolution_or_no_interval() {
    assert_eq!(mean(&[], 0.0), None);
    assert_eq!(mean(&[7.0], 0.0), Some(Estimate::single(7.0)));
    assert_eq!(
        mean(&[7.0, 7.0], 0.5),
        Some(Estimate { estimate: 7.0, low: Some(6.5), high: Some(7.5), n: 2, alone: None })
    );
    assert_eq!(unpaired_difference(&[1.0], &[], 0.0), None);
    assert_eq!(unpaired_difference(&[3.0], &[1.0, 2.0], 0.0).unwrap().low, None);
    let difference = unpaired_difference(&[10.0, 11.0, 12.0], &[1.0, 2.0, 3.0], 0.0).unwrap();
    assert!(difference.excludes_zero() && (difference.estimate - 9.0).abs() < 1e-9);
    assert!(unpaired_difference(&[5.0, 5.0], &[5.0, 5.0], 1.0).is_some_and(|same| !same.excludes_zero()));
}

#[test]
fn mirrored_values_have_mirrored_intervals() {
    let values = [1.0, 2.0, 9.0];
    let mirrored: Vec<f64> = values.iter().map(|value| -value).collect();
    let (one, other) = (mean(&values, 0.0).unwrap(), mean(&mirrored, 0.0).unwrap());
    assert!((one.low.unwrap() + other.high.unwrap()).abs() < 1e-9);
    assert!((one.high.unwrap() + other.low.unwrap()).abs() < 1e-9);
}

proptest::proptest! {
    #[test]
    fn any_values_have_finite_interval_around_mean(
        values in proptest::collection::vec(-1e9_f64..1e9, 2..20),
    ) {
        let estimate = mean(&values, 0.5).unwrap();
        let (low, high) = (estimate.low.unwrap(), estimate.high.unwrap());
        proptest::prop_assert!(low.is_finite() && high.is_finite());
        proptest::prop_assert!(low <= estimate.estimate && estimate.estimate <= high);
    }
}

#[test]
fn greatest_of_many_has_wider_interval() {
    let values = [10.0, 12.0, 11.0, 13.0];
    assert_eq!(mean_of_greatest(&values, 0.0, 1), mean(&values, 0.0));
    let width = |candidates| {
        let estimate = mean_of_greatest(&values, 0.0, candidates).unwrap();
        estimate.high.unwrap() - estimate.low.unwrap()
    };
    assert!(width(1) < width(5) && width(5) < width(50), "{} {} {}", width(1), width(5), width(50));
    assert_eq!(mean_of_greatest(&[1.0], 0.0, 50).unwrap().low, None);
}

/// Without any difference, the greatest of twenty drivers is shown to differ in at most 5 of 100 runs.
#[test]
fn greatest_of_equals_is_rarely_shown_to_differ() {
    let mut random = StdRng::seed_from_u64(5);
    let shown = (0..400).filter(|_| {
        let drivers: Vec<Vec<f64>> = (0..20).map(|_| (0..4).map(|_| normal(&mut random)).collect()).collect();
        let sum = |values: &Vec<f64>| values.iter().sum::<f64>();
        let greatest = drivers.iter().max_by(|one, other| sum(one).total_cmp(&sum(other))).unwrap();
        mean_of_greatest(greatest, 0.0, drivers.len()).unwrap().low.unwrap() > 0.0
    });
    let shown = shown.count();
    assert!(shown <= 20, "{shown} of 400");
}
