//! Searches against simulated targets with a known highest good rate: how often is it found?

use super::{Limit, ProbeOutcome, Search, SearchEnd, SearchOutcome, SearchPlan, Step};
use noise::normal::normal;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

const PLAN: SearchPlan = SearchPlan {
    lowest: 10.0,
    highest: 1e6,
    precision: 0.02,
    most_probes: 24,
    confirmations: 2,
    measure_capacity: true,
    curve: true,
};

/// Simulated searches per success rate.
const SEARCHES: u64 = 100;
/// Maximum number of probes of a search, all phases together.
const MAX_PROBES: usize = 70;

fn chance(random: &mut ChaCha8Rng, probability: f64) -> bool {
    random.random::<f64>() < probability
}

/// Runs a search to its end against a target that responds to a rate.
fn search(
    plan: SearchPlan,
    seed: u64,
    capacity: Option<f64>,
    mut target: impl FnMut(&mut ChaCha8Rng, f64) -> ProbeOutcome,
) -> (SearchOutcome, Search) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut search = Search::new(plan);
    loop {
        match search.next() {
            Step::MeasureCapacity => search.record_capacity(capacity),
            Step::Probe { rate, .. } => {
                assert!(rate <= plan.highest, "{rate}");
                let outcome = target(&mut random, rate);
                search.record(outcome);
            }
            Step::Done => break,
        }
        assert!(search.probes().len() <= MAX_PROBES, "every search ends: {:?}", search.probes());
    }
    (search.outcome(), search)
}

/// How many of [`SEARCHES`] are confirmed and within the precision of the truth; and the mean number of
/// probes.
fn successes(
    plan: SearchPlan,
    capacity: Option<f64>,
    truth: f64,
    target: impl Fn(&mut ChaCha8Rng, f64) -> ProbeOutcome,
) -> (usize, f64) {
    let mut probes = 0;
    let good = (0..SEARCHES).filter(|seed| {
        let (outcome, search) = search(SearchPlan { curve: false, ..plan }, *seed, capacity, &target);
        probes += search.probes().len();
        let near = |rate: f64| (rate / truth - 1.0).abs() <= plan.precision;
        outcome.end == SearchEnd::Found
            && outcome.found.is_some_and(|found| found.confirmed && near(found.rate))
    });
    (good.count(), probes as f64 / SEARCHES as f64)
}

fn held(holds: bool) -> ProbeOutcome {
    if holds { ProbeOutcome::Held } else { ProbeOutcome::Failed }
}

/// A single-server queue: the 99th percentile of the response time is ln(100)/(capacity − rate) (M/M/1).
/// `noise`: standard deviation of its logarithm from probe to probe.
fn queue(random: &mut ChaCha8Rng, rate: f64, capacity: f64, bound_s: f64, noise: f64) -> ProbeOutcome {
    if rate >= capacity {
        return ProbeOutcome::Failed;
    }
    let p99_s = 100_f64.ln() / (capacity - rate);
    held(p99_s * (noise * normal(random)).exp() <= bound_s)
}

#[test]
fn queue_capacity_is_found_within_precision_in_95_of_100_searches() {
    let (capacity, bound_s) = (10_000.0, 0.005);
    let truth = capacity - 100_f64.ln() / bound_s;
    for hint in [None, Some(9_800.0), Some(500.0)] {
        let (good, probes) =
            successes(PLAN, hint, truth, |random, rate| queue(random, rate, capacity, bound_s, 0.05));
        assert!(good >= 95, "{good} of 100 with the hint {hint:?}, {probes} probes");
    }
}

#[test]
fn cliff_is_found_in_95_of_100_searches_with_one_wrong_probe_in_twenty() {
    for (truth, lie) in [(823.0, 0.0), (37.0, 0.05), (141_000.0, 0.05)] {
        let (good, probes) = successes(PLAN, Some(truth * 1.1), truth, |random, rate| {
            held((rate <= truth) != chance(random, lie))
        });
        assert!(good >= 95, "{good} of 100 at {truth} with {lie}, {probes} probes");
    }
}

#[test]
fn single_bad_probe_does_not_move_result() {
    let truth = 5_000.0;
    for liar in 0..25 {
        for capacity in [None, Some(6_000.0)] {
            let mut probe = 0;
            let (outcome, search) = search(PLAN, 0, capacity, |_, rate| {
                probe += 1;
                held((rate <= truth) != (probe == liar))
            });
            let found = outcome.found.expect("a rate is found").rate;
            assert!(
                (found / truth - 1.0).abs() <= 0.02,
                "{found} where probe {liar} lies: {:?}",
                search.probes()
            );
        }
    }
}

#[test]
fn noisy_target_widens_interval() {
    // At half its capacity the figure hardly depends on the rate: 10 % noise blurs the border by 10 %.
    let (capacity, bound_s) = (10_000.0, 100_f64.ln() / 5_000.0);
    let mut covered = 0;
    for seed in 0..100 {
        let (outcome, _) =
            search(PLAN, seed, Some(9_500.0), |random, rate| queue(random, rate, capacity, bound_s, 0.10));
        let Some(found) = outcome.found else { continue };
        covered += usize::from(found.likely.0 <= 5_000.0 && 5_000.0 <= found.likely.1);
        assert!((found.rate / 5_000.0 - 1.0).abs() < 0.35, "{found:?}");
    }
    assert!(covered >= 80, "the interval holds the truth in {covered} of 100 searches");
}

#[test]
fn target_that_never_holds_is_reported_after_several_probes() {
    for capacity in [None, Some(700.0)] {
        let (outcome, search) = search(PLAN, 0, capacity, |_, _| ProbeOutcome::Failed);
        assert_eq!((outcome.end, outcome.found), (SearchEnd::NotHeld, None));
        let at_lowest = search.probes().iter().filter(|probe| probe.rate == PLAN.lowest).count();
        assert!(at_lowest >= 2, "{:?}", search.probes());
    }
}

#[test]
fn target_that_always_holds_is_found_at_end_of_range() {
    let plan = SearchPlan { highest: 3_000.0, measure_capacity: false, ..PLAN };
    let (outcome, search) = search(plan, 0, None, |_, _| ProbeOutcome::Held);
    let found = outcome.found.expect("a rate");
    assert_eq!((outcome.end, found.rate, found.limit), (SearchEnd::Found, 3_000.0, Limit::Range));
    assert_eq!((found.held, found.of, found.failed_at), (2, 2, None));
    assert!(search.probes().len() < 20, "{:?}", search.probes());
}

#[test]
fn generator_limit_is_not_attributed_to_target() {
    let generator = |limit: f64, target: f64| {
        search(PLAN, 0, Some(2_000.0), |_, rate| match rate {
            rate if rate > limit => ProbeOutcome::GeneratorLimited,
            rate => held(rate <= target),
        })
    };
    let (outcome, _) = generator(1_500.0, 1e9);
    let found = outcome.found.expect("a rate");
    assert_eq!(found.limit, Limit::Generator);
    assert!((found.rate / 1_500.0 - 1.0).abs() <= 0.02, "{found:?}");
    let (outcome, _) = generator(1_500.0, 900.0);
    let found = outcome.found.expect("a rate");
    assert_eq!(found.limit, Limit::Target);
    assert!((found.rate / 900.0 - 1.0).abs() <= 0.02, "{found:?}");
    let (outcome, _) = generator(1.0, 900.0);
    assert_eq!((outcome.end, outcome.found), (SearchEnd::GeneratorLimited, None));
}

#[test]
fn curve_covers_range_below_and_one_step_above() {
    let (outcome, search) = search(PLAN, 0, Some(1_100.0), |_, rate| held(rate <= 1_000.0));
    let found = outcome.found.expect("a rate").rate;
    for fraction in super::CURVE {
        let wanted = fraction * found;
        assert!(search.probes().iter().any(|probe| (probe.rate / wanted - 1.0).abs() < 0.05), "{wanted}");
    }
    assert_eq!(outcome.holes, Vec::<f64>::new());
}

#[test]
fn hole_below_found_rate_is_reported() {
    let (outcome, _) =
        search(PLAN, 0, Some(1_100.0), |_, rate| held(rate <= 1_000.0 && !(330.0..370.0).contains(&rate)));
    let found = outcome.found.expect("a rate").rate;
    assert!((found / 1_000.0 - 1.0).abs() <= 0.02);
    assert_eq!(outcome.holes.len(), 1, "{outcome:?}");
}

#[test]
fn interrupted_search_returns_best_rate_so_far() {
    let mut search = Search::new(SearchPlan { measure_capacity: false, highest: 16_000.0, ..PLAN });
    for outcome in [ProbeOutcome::Held, ProbeOutcome::Held, ProbeOutcome::Failed] {
        search.record(outcome);
    }
    search.interrupt();
    assert_eq!(search.next(), Step::Done);
    let outcome = search.outcome();
    let found = outcome.found.expect("two probes held");
    assert_eq!(outcome.end, SearchEnd::Interrupted);
    assert_eq!((found.rate, found.failed_at, found.confirmed), (2_000.0, Some(4_000.0), false));
}
