use super::usl::{FittedLaw, Observation, fit};
use noise::normal::normal;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use results::Estimate;

/// A law with the design and the noise of its measurement.
#[derive(Clone, Debug)]
struct Design {
    values: &'static [f64],
    sigma: f64,
    kappa: f64,
    repeats: usize,
    /// Standard deviation of the logarithm between trials; the smallest value has a third of it.
    between: f64,
    /// Standard deviation of the effect that all trials of a repeat share.
    repeat: f64,
}

const LAMBDA: f64 = 4000.0;

impl Design {
    fn throughput(&self, at: f64) -> f64 {
        LAMBDA * at / (1.0 + self.sigma * (at - 1.0) + self.kappa * at * (at - 1.0))
    }

    fn observations(&self, seed: u64) -> Vec<Observation> {
        let mut random = StdRng::seed_from_u64(seed);
        let levels: Vec<f64> = (0..self.repeats).map(|_| self.repeat * normal(&mut random)).collect();
        let mut values: Vec<(f64, noise::Values)> = Vec::new();
        for (index, at) in self.values.iter().enumerate() {
            let deviation = self.between / if index == 0 { 3.0 } else { 1.0 };
            let trial = |repeat: usize, random: &mut StdRng| {
                self.throughput(*at) * (levels[repeat] + deviation * normal(random)).exp()
            };
            values
                .push((*at, (0..self.repeats).map(|repeat| (repeat, trial(repeat, &mut random))).collect()));
        }
        super::observations(&values)
    }

    fn fitted(&self, seed: u64) -> FittedLaw {
        fit(&self.observations(seed)).expect("a law")
    }
}

fn design(values: &'static [f64], sigma: f64, kappa: f64) -> Design {
    Design { values, sigma, kappa, repeats: 5, between: 0.04, repeat: 0.03 }
}

const CORES: &[f64] = &[1.0, 2.0, 4.0, 8.0];
const FRACTIONS: &[f64] = &[0.1, 0.2, 0.4];

#[test]
fn noise_free_law_is_found() {
    for (values, sigma, kappa) in [
        (CORES, 0.0, 0.0),
        (CORES, 0.05, 0.0),
        (CORES, 0.1, 0.01),
        (FRACTIONS, 0.3, 0.0),
        (FRACTIONS, 0.0, 0.0),
        (&[0.25, 0.5, 1.0, 2.0, 4.0][..], 0.2, 0.05),
        (CORES, 1.0, 0.0),
        (&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0][..], 0.02, 0.0002),
    ] {
        let design = Design { between: 0.0, repeat: 0.0, ..design(values, sigma, kappa) };
        let FittedLaw { parameters: found, lack_of_fit, .. } = design.fitted(1);
        let near = |estimate: Estimate, truth: f64| (estimate.estimate - truth).abs() < 1e-3 * (1.0 + truth);
        assert!(near(found.lambda, LAMBDA), "{design:?}: {found:?}");
        assert!(near(found.sigma, sigma) && near(found.kappa, kappa), "{design:?}: {found:?}");
        assert!(lack_of_fit.is_none_or(|lack| !lack.shown), "{design:?}: {lack_of_fit:?}");
    }
}

#[test]
fn intervals_of_parameters_contain_the_truth_in_93_of_100() {
    let base = design(CORES, 0.05, 0.0);
    let designs = [
        base.clone(),
        Design { repeats: 3, ..base.clone() },
        Design { between: 0.1, repeat: 0.0, ..base.clone() },
        Design { sigma: 0.0, ..base.clone() },
        Design { kappa: 0.02, ..base },
        design(&[0.1, 0.2, 0.4], 0.3, 0.0),
        design(&[0.5, 1.0, 2.0, 4.0], 0.1, 0.01),
        Design { repeats: 10, ..design(&[1.0, 2.0, 3.0], 0.1, 0.0) },
    ];
    const SEEDS: u64 = 150;
    for design in designs {
        let mut covered = [0.0; 4];
        for seed in 0..SEEDS {
            let law = design.fitted(seed);
            let holds = |estimate: Estimate, truth: f64| {
                estimate.low.is_some_and(|low| low <= truth) && estimate.high.is_none_or(|high| truth <= high)
            };
            let peak = ((1.0 - design.sigma) / design.kappa).sqrt();
            let all = [
                holds(law.parameters.lambda, LAMBDA),
                holds(law.parameters.sigma, design.sigma),
                holds(law.parameters.kappa, design.kappa),
                law.peak.is_none_or(|estimate| holds(estimate, peak)),
            ];
            all.into_iter().zip(&mut covered).for_each(|(right, sum)| *sum += f64::from(u8::from(right)));
        }
        let slack = 3.1 * (0.93 * 0.07 / SEEDS as f64).sqrt();
        for (name, covered) in ["lambda", "sigma", "kappa", "peak"].into_iter().zip(covered) {
            let share = covered / SEEDS as f64;
            assert!(share >= 0.93 - slack, "{name}: {share:.3} in {design:?}");
        }
    }
}

#[test]
fn parameter_at_bound_has_one_sided_interval() {
    let law = design(CORES, 0.0, 0.0).fitted(3);
    assert_eq!(law.parameters.kappa.low, Some(0.0));
    assert!(law.peak.is_none(), "no peak is shown: {law:?}");
    assert!(law.parameters.sigma.high.unwrap() < 0.1, "{law:?}");
}

#[test]
fn greatest_contention_is_met_exactly() {
    let fitted: Vec<f64> =
        (0..10).map(|seed| design(CORES, 1.0, 0.0).fitted(seed).parameters.sigma.estimate).collect();
    let near: Vec<f64> = fitted.iter().copied().filter(|sigma| *sigma > 0.999_999).collect();
    assert!(!near.is_empty() && near.iter().all(|sigma| *sigma == 1.0), "{fitted:?}");
}

#[test]
fn peak_is_found_if_throughput_falls() {
    let law = design(&[1.0, 2.0, 4.0, 8.0, 16.0], 0.05, 0.02).fitted(2);
    let peak = law.peak.expect("a peak");
    assert!(peak.low.unwrap() > 5.5 && peak.high.unwrap() < 8.5, "{peak:?}");
}

#[test]
fn lack_of_fit_is_reported() {
    let design = design(CORES, 0.05, 0.0);
    let mut wrong = 0;
    for seed in 0..200 {
        wrong += usize::from(design.fitted(seed).lack_of_fit.expect("enough values").shown);
    }
    assert!(wrong <= 25, "{wrong} of 200 with the law");
    let mut observations = design.observations(1);
    // A step between two and four cores.
    observations.iter_mut().filter(|one| one.at >= 4.0).for_each(|one| one.logarithm += 0.5);
    assert!(fit(&observations).unwrap().lack_of_fit.unwrap().shown);
}

#[test]
fn single_repeat_of_three_values_has_no_interval() {
    let law = Design { repeats: 1, ..design(&[1.0, 2.0, 4.0], 0.05, 0.0) }.fitted(1);
    assert_eq!((law.parameters.lambda.low, law.parameters.sigma.high, law.deviation), (None, None, None));
    assert!(law.lack_of_fit.is_none());
}
