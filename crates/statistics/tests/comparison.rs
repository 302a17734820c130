//! Simulated comparisons with known truth: false alarms at any look, effects found, equivalence, and what drift, stalls and a
//! noisy arm do to them. `MESHMETER_STUDIES=5000` simulates that many comparisons of each design.

use noise::normal::normal;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use results::{FigureVerdict, InconclusiveReason};
use statistics::comparison::{ALARM_RATE, ArmValues, DEFAULT_MARGIN, Look, MISS_RATE, Rule, Tests, WorseIf};

/// Weights of the figures of a comparison: median, CPU, p99, memory.
const WEIGHTS: [u32; 4] = [4, 4, 1, 1];
/// Repeats that its budget allows.
const REPEATS: usize = 30;
/// Spread of trials, as a fraction.
const NOISE: f64 = 0.05;
/// Standard deviations of what chance adds to a share of comparisons.
const DEVIATIONS: f64 = 3.0;

/// Truth of simulated comparisons.
#[derive(Clone, Copy)]
struct Design {
    /// Head divided by base, in the first figure.
    effect: f64,
    /// Logarithm of what a trial's place in the run adds; places count from 0 to 1.
    drift: fn(f64) -> f64,
    /// Extra time of a trial, as a fraction, from a uniform random number.
    stall: fn(f64) -> f64,
    /// Spread of the head relative to that of the base.
    spread_of_head: f64,
    /// Logarithm of what the control's deployments have beyond the base's.
    control: f64,
    /// Margin of equivalence.
    margin: f64,
}

const STEADY: Design = Design {
    effect: 1.0,
    drift: |_| 0.0,
    stall: |_| 0.0,
    spread_of_head: 1.0,
    control: 0.0,
    margin: DEFAULT_MARGIN,
};
/// A margin that this noise lets equivalence be shown for.
const WIDE_MARGIN: f64 = 0.05;

fn comparisons() -> u64 {
    let asked = std::env::var("MESHMETER_STUDIES").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(400)
}

/// Verdicts of a comparison.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    /// Figures that were called worse or better at some look.
    alarms: usize,
    /// Of the first figure, at the look at which all figures were decided, or the last one.
    verdict: Option<FigureVerdict>,
    reason: Option<InconclusiveReason>,
    /// Repeats until then.
    repeats: usize,
    /// True if the first figure was called equivalent at some look.
    equivalent: bool,
    /// True if its interval excluded the truth at some look.
    missed: bool,
}

impl Design {
    /// Values of the figures after each repeat: arms in the order of a plan, mirrored from repeat to repeat.
    fn values(&self, seed: u64) -> Vec<ArmValues> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut figures = vec![ArmValues::default(); WEIGHTS.len()];
        let mut order = [0, 1, 2];
        for repeat in 0..REPEATS {
            if repeat % 2 == 0 {
                let first = random.random_range(0..3);
                order = [first, (first + 1) % 3, (first + 2) % 3];
                if random.random::<f64>() < 0.5 {
                    order.swap(1, 2);
                }
            } else {
                order.reverse();
            }
            for (place, arm) in order.into_iter().enumerate() {
                let drift = (self.drift)((repeat * 3 + place) as f64 / (REPEATS * 3) as f64);
                let stall = (self.stall)(random.random());
                for (number, figure) in figures.iter_mut().enumerate() {
                    let spread = if arm == 1 { NOISE * self.spread_of_head } else { NOISE };
                    let effect = if arm == 1 && number == 0 { self.effect } else { 1.0 };
                    let control = if arm == 2 && number == 0 { self.control } else { 0.0 };
                    let value = 100.0
                        * effect
                        * (drift + control + spread * normal(&mut random)).exp()
                        * (1.0 + stall);
                    let of_arm = [&mut figure.base, &mut figure.head, &mut figure.control];
                    of_arm.into_iter().nth(arm).expect("three arms").insert(repeat, value);
                }
            }
        }
        figures
    }

    fn comparison(&self, tests: &Tests, seed: u64) -> Said {
        let all = self.values(seed);
        let mut said = Said::default();
        for number in 1..=REPEATS {
            let look = Look { number, is_last: number == REPEATS };
            let judge = |(values, weight): (&ArmValues, u32)| {
                let first = |values: &std::collections::BTreeMap<usize, f64>| {
                    values.range(..number).map(|(repeat, value)| (*repeat, *value)).collect()
                };
                let seen = ArmValues {
                    base: first(&values.base),
                    head: first(&values.head),
                    control: first(&values.control),
                };
                let rule = Rule { weight, worse_if: WorseIf::Higher, margin: self.margin, resolution: 0.0 };
                tests.judge(&seen, rule, look)
            };
            let judged: Vec<_> = all.iter().zip(WEIGHTS).map(judge).collect();
            let is_alarm = |verdict| matches!(verdict, FigureVerdict::Worse | FigureVerdict::Better);
            said.alarms = said.alarms.max(judged.iter().filter(|one| is_alarm(one.verdict)).count());
            said.equivalent |= judged[0].verdict == FigureVerdict::Equivalent;
            said.missed |= judged[0].ratio.is_some_and(|ratio| {
                ratio.low.is_some_and(|low| low > self.effect)
                    || ratio.high.is_some_and(|high| high < self.effect)
            });
            let has_ended = judged.iter().all(|one| one.verdict != FigureVerdict::Inconclusive);
            if said.verdict.is_none() && (has_ended || look.is_last) {
                said.verdict = Some(judged[0].verdict);
                said.reason = judged[0].reason;
                said.repeats = number;
            }
        }
        said
    }

    fn all(&self) -> Vec<Said> {
        let tests = Tests::new(&WEIGHTS, REPEATS);
        (0..comparisons()).map(|seed| self.comparison(&tests, seed)).collect()
    }
}

/// Share of comparisons of which this is true.
fn share(all: &[Said], is: impl Fn(&Said) -> bool) -> f64 {
    all.iter().filter(|said| is(said)).count() as f64 / all.len() as f64
}

/// Share that chance lets exceed the true one.
fn upper(rate: f64) -> f64 {
    rate + DEVIATIONS * (rate * (1.0 - rate) / comparisons() as f64).sqrt()
}

fn assert_quiet(name: &str, design: &Design) {
    let all = design.all();
    let alarms = share(&all, |said| said.alarms > 0);
    assert!(alarms <= upper(ALARM_RATE), "{name}: {alarms}");
}

#[test]
fn without_effect_hardly_any_comparison_says_worse_or_better_at_any_look() {
    assert_quiet("steady", &STEADY);
    let noisy = Design { spread_of_head: 3.0, ..STEADY };
    assert_quiet("noisy head", &noisy);
}

#[test]
fn drift_and_stalls_raise_no_alarm() {
    // Twenty per cent over the run, in a line or at once.
    assert_quiet("linear drift", &Design { drift: |place| 0.2 * place, ..STEADY });
    assert_quiet("step", &Design { drift: |place| if place > 0.5 { 0.2 } else { 0.0 }, ..STEADY });
    assert_quiet("waves", &Design { drift: |place| 0.1 * (place * 40.0).sin(), ..STEADY });
    // One trial in ten is slower by a half.
    assert_quiet("stalls", &Design { stall: |random| if random < 0.1 { 0.5 } else { 0.0 }, ..STEADY });
}

#[test]
fn intervals_of_all_looks_cover_the_effect_under_drift_stalls_and_a_noisy_arm() {
    let effect = Design { effect: 1.05, ..STEADY };
    let designs = [
        ("steady", effect),
        ("drift", Design { drift: |place| 0.2 * place, ..effect }),
        ("stalls", Design { stall: |random| if random < 0.1 { 0.5 } else { 0.0 }, ..effect }),
        ("noisy head", Design { spread_of_head: 3.0, ..effect }),
    ];
    let allowed = Tests::new(&WEIGHTS, REPEATS).error_rate(WEIGHTS[0]);
    for (name, design) in designs {
        let missed = share(&design.all(), |said| said.missed);
        println!("{name}: {:.1} % of comparisons have an interval without the truth", 100.0 * missed);
        assert!(missed <= upper(allowed), "{name}: {missed} of at most {allowed}");
    }
}

#[test]
fn effects_of_five_per_cent_are_found_in_either_direction() {
    for (effect, expected) in [(1.05, FigureVerdict::Worse), (1.0 / 1.05, FigureVerdict::Better)] {
        let all = Design { effect, ..STEADY }.all();
        let found = share(&all, |said| said.verdict == Some(expected));
        let repeats = all.iter().map(|said| said.repeats).sum::<usize>() as f64 / all.len() as f64;
        println!("{effect}: {:.1} % found, after {repeats:.1} repeats in the mean", 100.0 * found);
        assert!(found >= 0.9, "{effect}: {found}");
    }
}

#[test]
fn large_effects_are_found_early() {
    let all = Design { effect: 1.5, ..STEADY }.all();
    assert!(share(&all, |said| said.verdict == Some(FigureVerdict::Worse)) >= 0.98);
}

#[test]
fn equivalence_is_right() {
    let wide = Design { margin: WIDE_MARGIN, ..STEADY };
    let none = wide.all();
    let reached = share(&none, |said| said.verdict == Some(FigureVerdict::Equivalent));
    let repeats = none.iter().map(|said| said.repeats).sum::<usize>() as f64 / none.len() as f64;
    println!("no effect: {:.1} % equivalent, after {repeats:.1} repeats in the mean", 100.0 * reached);
    assert!(reached >= 0.95, "{reached}");
    // The effect is exactly the margin: calling it equivalent is wrong.
    let wrong = share(&Design { effect: 1.0 + WIDE_MARGIN, ..wide }.all(), |said| said.equivalent);
    println!("effect of the margin: {:.1} % equivalent", 100.0 * wrong);
    assert!(wrong <= upper(MISS_RATE), "{wrong}");
}

#[test]
fn control_that_differs_leads_to_no_verdict_but_drift() {
    let all = Design { control: 0.08, effect: 1.04, ..STEADY }.all();
    let accused = share(&all, |said| said.verdict == Some(FigureVerdict::Worse));
    let drifted = share(&all, |said| said.reason == Some(InconclusiveReason::MachineDrifted));
    println!(
        "control 8 % above the base: {:.1} % accused, {:.1} % drifted",
        100.0 * accused,
        100.0 * drifted
    );
    assert!(accused <= 0.02 && drifted >= 0.9, "{accused} {drifted}");
}
