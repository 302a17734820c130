//! A hundred simulated comparisons of each kind; `tests/comparison.rs` has more, and more kinds.

use super::{ArmValues, Look, Rule, Tests, WorseIf};
use noise::normal::normal;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use results::FigureVerdict;

const COMPARISONS: u64 = 100;
const REPEATS: usize = 12;
const NOISE: f64 = 0.02;

/// Verdicts on a single figure at all looks.
fn verdicts(tests: &Tests, effect: f64, seed: u64) -> Vec<FigureVerdict> {
    let mut random = StdRng::seed_from_u64(seed);
    let rule = Rule { weight: 1, worse_if: WorseIf::Higher, margin: 0.03, resolution: 0.0 };
    let mut values = ArmValues::default();
    let look = |number: usize| {
        let mut value = |factor: f64| 100.0 * factor * (NOISE * normal(&mut random)).exp();
        values.base.insert(number, value(1.0));
        values.head.insert(number, value(effect));
        values.control.insert(number, value(1.0));
        tests.judge(&values, rule, Look { number, is_last: number == REPEATS }).verdict
    };
    (1..=REPEATS).map(look).collect()
}

#[test]
fn nothing_is_found_where_nothing_changed_and_effects_are() {
    let tests = Tests::new(&[1], REPEATS);
    let comparisons = |effect: f64| (0..COMPARISONS).map(move |seed| (effect, seed));
    let all = |effect| comparisons(effect).map(|(effect, seed)| verdicts(&tests, effect, seed));
    let says = |verdict: &FigureVerdict| matches!(verdict, FigureVerdict::Worse | FigureVerdict::Better);
    let false_alarms = all(1.0).filter(|looks| looks.iter().any(says)).count();
    assert!(false_alarms <= 5, "{false_alarms}");
    let found = all(1.05).filter(|looks| looks.last() == Some(&FigureVerdict::Worse)).count();
    assert!(found >= 90, "{found}");
    let called_equivalent = all(1.05).filter(|looks| looks.contains(&FigureVerdict::Equivalent)).count();
    assert!(called_equivalent <= 5, "{called_equivalent}");
}
