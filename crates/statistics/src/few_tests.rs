//! The short form of `tests/studies.rs` for two repeats: one figure of modes crossed with conditions.

use super::FigureTable;
use crate::family::{Group, decide};
use noise::normal::normal;
use noise::{Place, Values};
use rand::SeedableRng as _;
use rand::rngs::StdRng;

const RUNS: u64 = 1000;
const DEVIATION: f64 = 0.05;

/// Two modes under some conditions, twice.
#[derive(Clone, Copy, Debug)]
struct Design {
    conditions: usize,
    /// Logarithm of what the second mode takes, relative to the first.
    effect: f64,
    /// Multiplier of the deviation of the second mode's last cell.
    noisy: f64,
}

/// Fractions of intervals that contain the truth, of runs that show nothing, and of true effects that are shown.
#[derive(Debug)]
struct Outcome {
    covered: f64,
    silent: f64,
    found: f64,
}

impl Design {
    fn table(self, random: &mut StdRng) -> FigureTable {
        let cell = |mode: usize, conditions: usize, random: &mut StdRng| -> (Place, Values) {
            let is_last = (mode, conditions) == (1, self.conditions - 1);
            let deviation = DEVIATION * if is_last { self.noisy } else { 1.0 };
            let mut value = || (self.effect * mode as f64 + deviation * normal(random)).exp();
            (Place { mode, conditions }, (0..2).map(|repeat| (repeat, value())).collect())
        };
        let places = (0..2).flat_map(|mode| (0..self.conditions).map(move |at| (mode, at)));
        FigureTable::new(places.map(|(mode, at)| cell(mode, at, random)).collect())
    }

    fn outcome(self) -> Outcome {
        let mut random = StdRng::seed_from_u64(1);
        let (mut covered, mut silent, mut found) = (0, 0, 0);
        for _ in 0..RUNS {
            let table = self.table(&mut random);
            for cell in 0..2 * self.conditions {
                let truth = if cell < self.conditions { 1.0 } else { self.effect.exp() };
                let estimate = table.mean(cell, 0.0).expect("two trials");
                let (low, high) = (estimate.low.expect("an interval"), estimate.high.expect("an interval"));
                covered += usize::from(low <= truth && truth <= high);
            }
            let [modes, values] = self.shown(&table);
            found += modes.iter().filter(|shown| **shown).count();
            silent += usize::from(!modes.contains(&true) && !values.contains(&true));
        }
        let share = |count: usize, of_run: usize| count as f64 / (RUNS as usize * of_run) as f64;
        Outcome {
            covered: share(covered, 2 * self.conditions),
            silent: share(silent, 1),
            found: share(found, self.conditions),
        }
    }

    /// Shown differences: between modes under each condition, and between neighbouring conditions of each mode.
    fn shown(self, table: &FigureTable) -> [Vec<bool>; 2] {
        let p_value = |with, without| table.difference(with, without, 0.0)?.p_value;
        let modes = (0..self.conditions).map(|at| p_value(self.conditions + at, at));
        let neighbours = (1..2 * self.conditions).filter(|cell| cell % self.conditions > 0);
        let values = neighbours.map(|cell| p_value(cell, cell - 1));
        let group = |p_values: Vec<Option<f64>>| Group {
            share: 1.0,
            p_values: p_values.into_iter().map(|p_value| p_value.expect("two trials")).collect(),
        };
        let outcomes = decide(&[group(modes.collect()), group(values.collect())]).into_iter();
        outcomes.map(|outcome| outcome.shown).collect::<Vec<_>>().try_into().expect("two groups")
    }
}

#[test]
fn two_repeats_cover_and_show_nothing_without_effect_and_find_ten_deviations() {
    for conditions in [2, 4] {
        for noisy in [1.0, 3.0] {
            let design = Design { conditions, effect: 0.0, noisy };
            let without = design.outcome();
            let with = Design { effect: 10.0 * DEVIATION * noisy, ..design }.outcome();
            println!("{design:?}: {without:?}, {with:?}");
            assert!(without.covered >= 0.93 && without.silent >= 0.94, "{design:?}: {without:?}");
            assert!(with.covered >= 0.93 && with.found >= 0.98, "{design:?}: {with:?}");
        }
    }
}
