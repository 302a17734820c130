//! Comparisons: looks after each repeat, and how they end.

use super::*;
use crate::commands::run::compare::looks::{Looks, Subject};
use experiment::environment::Clock as _;
use experiment::plan::{ComparisonArm, compared_cells};
use report::folder::read_comparison;
use results::{Comparison, ComparisonEnd, ComparisonVerdict, FigureVerdict, InconclusiveReason};
use statistics::comparison::{Judge, Margins};

/// One cell with a median and a p99; a repeat takes some 18 s.
const COMPARED: &str = "{name: t, modes: [gateway], load: {rate: 200, duration: 5s, warmup: 1s, timeout: 2s}, repeats: 8, retakes: 0}";
const LOOKS: usize = 8;
const HOUR: Duration = Duration::from_secs(3600);

struct Compared {
    comparison: Comparison,
    trials: usize,
    elapsed: Duration,
    ended: Result<(), Failure>,
}

impl Compared {
    fn verdicts(&self) -> Vec<FigureVerdict> {
        self.comparison.figures.iter().map(|figure| figure.verdict).collect()
    }
}

/// Compares an experiment with itself; trials end as the script says.
fn compare(budget: Duration, script: impl Fn(ComparisonArm, &PlannedTrial) -> ScriptedTrial) -> Compared {
    let experiment = Experiment::parse(COMPARED, "test").unwrap();
    let cells = compared_cells(&experiment, &experiment, &[]).unwrap();
    let plan = Plan::comparison(&experiment, &experiment, &cells, 1);
    let margins = Margins { user: Some(0.05), calibration: None, window_s: 5.0 };
    let judge = Judge::new(&experiment, &cells, LOOKS, &margins);
    let scratch = tempfile::tempdir().unwrap();
    let mut folder = RunFolder::create(scratch.path(), Existing::Keep).unwrap();
    let mut progress = RunProgress::new(&plan, scratch.path());
    let arm = |planned: &PlannedTrial| ComparisonArm::from_factors(&planned.factors).unwrap();
    let scripted = plan.trials.iter().map(|planned| script(arm(planned), planned));
    let mut environment = InMemory::new(scripted.collect::<Vec<_>>(), good());
    let handle = environment.clone();
    let stop = || handle.stop_requested();
    let context = RunContext { stop: &stop, clock: &handle, live: None };
    let subject = Subject {
        name: "t".to_owned(),
        seed: 1,
        settings: [vec!["proxy.workers=1".to_owned()], vec!["proxy.workers=2".to_owned()]],
        modes_not_compared: Vec::new(),
    };
    let mut looks = Looks::new(subject, &judge, &handle, budget, scratch.path().to_owned());
    let ended = Coordinator::new(&plan, &mut environment, &mut folder, &mut progress, context)
        .followed_by(&mut looks)
        .run();
    let why = if ended.is_err() { ComparisonEnd::Failed } else { ComparisonEnd::Interrupted };
    let comparison = looks.end(why).unwrap();
    // The last digit of a number may change when it is read.
    let said = |of: &Comparison| (of.verdict, of.ended, of.looks, of.figures.len(), of.failures.clone());
    let written = read_comparison(scratch.path()).unwrap().expect("the result is written");
    assert_eq!(said(&written), said(&comparison));
    let text = fs::read_to_string(scratch.path().join(TRIALS_FILE)).unwrap();
    Compared { comparison, trials: text.lines().count(), elapsed: handle.now(), ended }
}

/// A trial whose median is this many times 300 µs, give or take a little from trial to trial.
fn times(factor: f64, planned: &PlannedTrial, noise: f64) -> ScriptedTrial {
    let chance = ((planned.index * 7) % 5) as f64 - 2.0;
    let median = 300.0 * factor * (1.0 + noise * chance);
    with_driver(driver().with_load(|result| result.response_time_us.p50 = Some(median)))
}

#[test]
fn head_that_is_worse_is_found_and_ends_the_comparison() {
    let compared = compare(HOUR, |arm, planned| {
        times(if arm == ComparisonArm::Head { 1.2 } else { 1.0 }, planned, 0.004)
    });
    compared.ended.as_ref().unwrap();
    let Comparison { looks, looks_planned, ended, verdict, failures, .. } = &compared.comparison;
    assert_eq!((*verdict, *ended), (ComparisonVerdict::Worse, ComparisonEnd::Decided), "{failures:?}");
    assert!(*looks < LOOKS && *looks_planned == LOOKS, "{looks}");
    assert_eq!(compared.trials, 3 * looks);
    assert_eq!(compared.verdicts(), [FigureVerdict::Worse, FigureVerdict::Equivalent]);
    let worse = &compared.comparison.figures[0];
    assert!(worse.ratio.unwrap().low.unwrap() > 1.0, "{worse:?}");
    assert!(worse.difference.unwrap().estimate > 50.0, "{worse:?}");
    let arms = [&compared.comparison.base, &compared.comparison.head, &compared.comparison.control];
    assert!(arms.iter().all(|arm| arm.trials == *looks && arm.valid == *looks));
    assert_eq!(arms[1].settings, ["proxy.workers=2"]);
    assert_eq!(arms[2].settings, ["proxy.workers=1"]);
}

#[test]
fn equal_arms_are_equivalent_before_the_last_repeat() {
    let compared = compare(HOUR, |_, planned| times(1.0, planned, 0.004));
    assert_eq!(compared.comparison.verdict, ComparisonVerdict::Equivalent);
    assert_eq!(compared.comparison.ended, ComparisonEnd::Decided);
    assert!(compared.comparison.looks < LOOKS && compared.comparison.failures.is_empty());
}

#[test]
fn control_that_differs_is_a_drift_and_accuses_nobody() {
    let compared = compare(HOUR, |arm, planned| {
        times(if arm == ComparisonArm::Control { 1.2 } else { 1.0 }, planned, 0.004)
    });
    let Comparison { verdict, ended, figures, .. } = &compared.comparison;
    assert_eq!((*verdict, *ended), (ComparisonVerdict::Inconclusive, ComparisonEnd::Repeats));
    assert_eq!(figures[0].reason, Some(InconclusiveReason::MachineDrifted));
    assert!(figures[0].control_ratio.unwrap().low.unwrap() > 1.1);
}

#[test]
fn budget_ends_a_comparison_between_repeats() {
    let budget = Duration::from_secs(100);
    let compared = compare(budget, |_, planned| times(1.0, planned, 0.1));
    assert_eq!(compared.comparison.ended, ComparisonEnd::Budget);
    assert_eq!(compared.comparison.verdict, ComparisonVerdict::Inconclusive);
    assert!(compared.elapsed <= budget && compared.elapsed > budget.mul_f64(0.7), "{:?}", compared.elapsed);
    assert_eq!(compared.trials, 3 * compared.comparison.looks);
}

#[test]
fn missing_data_are_a_failure() {
    let compared = compare(HOUR, |arm, planned| match arm {
        ComparisonArm::Head => saturated(),
        _ => times(1.0, planned, 0.004),
    });
    compared.ended.as_ref().unwrap();
    assert_eq!(compared.comparison.verdict, ComparisonVerdict::Failed);
    assert_eq!(compared.comparison.head.valid, 0);
    let failures = &compared.comparison.failures;
    assert!(
        failures[0].starts_with(
            "too few trials: of 8 repeats 8 of the base and 0 of the head have response_time_p50_us"
        ),
        "{failures:?}"
    );
    let short = compare(Duration::from_secs(40), |_, planned| times(1.0, planned, 0.004));
    assert_eq!(short.comparison.verdict, ComparisonVerdict::Failed);
    assert!(
        short.comparison.failures[0].starts_with("too few repeats: 2"),
        "{:?}",
        short.comparison.failures
    );
}

#[test]
fn interrupted_comparison_keeps_its_trials_and_concludes_nothing() {
    let compared = compare(HOUR, |arm, planned| {
        let factor = if arm == ComparisonArm::Head { 1.5 } else { 1.0 };
        let stop_at = (planned.index == 7).then_some(2 * SECOND);
        ScriptedTrial { stop_at, ..times(factor, planned, 0.004) }
    });
    compared.ended.as_ref().unwrap();
    assert_eq!(compared.trials, 8);
    assert_eq!(compared.comparison.ended, ComparisonEnd::Interrupted);
    assert_eq!(compared.comparison.verdict, ComparisonVerdict::Failed);
    assert_eq!(compared.comparison.looks, 2, "a repeat that was cut short is not looked at");
}

#[test]
fn environment_that_fails_ends_the_comparison() {
    let compared = compare(HOUR, |_, _| broken());
    assert!(compared.ended.is_err());
    assert_eq!(compared.comparison.ended, ComparisonEnd::Failed);
    assert_eq!(compared.comparison.verdict, ComparisonVerdict::Failed);
}
