//! Comparisons: looks after each repeat, and how they end.

use super::*;
use crate::commands::run::compare::looks::{Looks, Subject};
use experiment::environment::Clock as _;
use experiment::plan::{ComparisonArm, compared_cells};
use report::folder::{read_comparison, recorded_trials};
use results::{Comparison, ComparisonEnd, ComparisonVerdict, FigureVerdict, InconclusiveReason, Metric};
use statistics::comparison::{Judge, Margins};

/// One cell with a median and a p99; a repeat takes some 18 s.
const COMPARED: &str = "{name: t, modes: [gateway], load: {rate: 200, duration: 5s, warmup: 1s, timeout: 2s}, repeats: 8, retakes: 0}";
const LOOKS: usize = 8;
const HOUR: Duration = Duration::from_secs(3600);

struct Compared {
    comparison: Comparison,
    trials: Vec<TrialRecord>,
    elapsed: Duration,
    ended: Result<(), Failure>,
}

impl Compared {
    fn verdicts(&self) -> Vec<FigureVerdict> {
        self.comparison.figures.iter().map(|figure| figure.verdict).collect()
    }
}

/// A comparison of [`COMPARED`] with a head, in an environment in memory.
struct Setup<'a> {
    head: &'a str,
    budget: Duration,
    /// Trials before it was killed.
    recorded: &'a [TrialRecord],
    /// Measuring time up to each look before, seconds.
    elapsed_s: &'a [f64],
}

/// Compares an experiment with itself; trials end as the script says.
fn compare(budget: Duration, script: impl Fn(ComparisonArm, &PlannedTrial) -> ScriptedTrial) -> Compared {
    compare_as(&Setup { head: COMPARED, budget, recorded: &[], elapsed_s: &[] }, script)
}

fn compare_as(setup: &Setup<'_>, script: impl Fn(ComparisonArm, &PlannedTrial) -> ScriptedTrial) -> Compared {
    let Setup { head, budget, recorded, elapsed_s } = *setup;
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().to_owned();
    let mut folder = RunFolder::create(&path, Existing::Keep).unwrap();
    recorded.iter().for_each(|trial| folder.append_trial(trial).unwrap());
    let [base, head] = [COMPARED, head].map(|text| Experiment::parse(text, "test").unwrap());
    let cells = compared_cells(&base, &head, &[]).unwrap();
    let plan = Plan::comparison(&base, &head, &cells, 1);
    let margins = Margins { user: Some(0.05), calibration: None, window_s: 5.0 };
    let judge = Judge::new([&base, &head], &cells, LOOKS, &margins);
    let mut progress = RunProgress::new(&plan, &path);
    let arm = |planned: &PlannedTrial| ComparisonArm::from_factors(&planned.factors).unwrap();
    let due = plan.trials.iter().filter(|planned| resume::due(planned, recorded).is_some());
    let mut environment =
        InMemory::new(due.map(|planned| script(arm(planned), planned)).collect::<Vec<_>>(), good());
    let handle = environment.clone();
    let stop = || handle.stop_requested();
    let context = RunContext { stop: &stop, clock: &handle, live: None, profile: false };
    let subject = Subject {
        name: "t".to_owned(),
        seed: 1,
        settings: [vec!["proxy.workers=1".to_owned()], vec!["proxy.workers=2".to_owned()]],
        modes_not_compared: Vec::new(),
        budget,
        margin: Some(0.05),
    };
    let mut looks = Looks::new(subject, &judge, &handle, path.clone()).after(recorded, elapsed_s);
    let ended = Coordinator::new(&plan, &mut environment, &mut folder, &mut progress, context)
        .after(recorded.to_vec())
        .followed_by(&mut looks)
        .run();
    let why = if ended.is_err() { ComparisonEnd::Failed } else { ComparisonEnd::Interrupted };
    let comparison = looks.end(why).unwrap();
    // The last digit of a number may change when it is read.
    let said = |of: &Comparison| (of.verdict, of.ended, of.looks, of.figures.len(), of.failures.clone());
    let written = read_comparison(&path).unwrap().expect("the result is written");
    assert_eq!(said(&written), said(&comparison));
    let trials = recorded_trials(&path).unwrap();
    Compared { comparison, trials, elapsed: handle.now(), ended }
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
    assert_eq!(compared.trials.len(), 3 * looks);
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
    assert_eq!(compared.trials.len(), 3 * compared.comparison.looks);
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
            "too few trials: of 8 repeats 8 of the base, 0 of the head and 8 of the control have response_time_p50_us"
        ),
        "{failures:?}"
    );
    let without_control = compare(HOUR, |arm, planned| match arm {
        ComparisonArm::Control => saturated(),
        _ => times(1.0, planned, 0.004),
    });
    assert_eq!(without_control.comparison.verdict, ComparisonVerdict::Failed);
    let failures = &without_control.comparison.failures;
    assert!(
        failures[0]
            .starts_with("too few trials: of 8 repeats 8 of the base, 8 of the head and 0 of the control"),
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
    assert_eq!(compared.trials.len(), 8);
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

/// Verdict, end and looks of each figure: what a continued comparison must not change.
fn said(comparison: &Comparison) -> (ComparisonVerdict, ComparisonEnd, Vec<Vec<FigureVerdict>>) {
    let course = &comparison.course;
    assert_eq!(course.elapsed_s.len(), comparison.looks);
    let verdicts = course.figures.iter().map(|figure| figure.looks.iter().map(|look| look.verdict).collect());
    (comparison.verdict, comparison.ended, verdicts.collect())
}

#[test]
fn continued_comparison_makes_the_planned_looks_and_none_besides() {
    let script = |arm: ComparisonArm, planned: &PlannedTrial| {
        times(if arm == ComparisonArm::Head { 1.04 } else { 1.0 }, planned, 0.02)
    };
    let whole = compare(HOUR, script);
    assert_eq!(whole.comparison.looks, LOOKS, "{:?}", whole.comparison.figures);
    assert_eq!(whole.trials.len(), 3 * LOOKS);
    // Killed after any trial, and perhaps before the look that followed.
    let cuts = (0..=whole.trials.len()).flat_map(|recorded| [(recorded, 0), (recorded, 1)]);
    for (recorded, lost) in cuts {
        let made = (recorded / 3).saturating_sub(lost);
        let elapsed_s = &whole.comparison.course.elapsed_s[..made];
        let recorded = &whole.trials[..recorded];
        let rest = compare_as(&Setup { head: COMPARED, budget: HOUR, recorded, elapsed_s }, script);
        rest.ended.as_ref().unwrap();
        assert_eq!(rest.trials.len(), whole.trials.len());
        assert_eq!(said(&rest.comparison), said(&whole.comparison), "after {} trials", recorded.len());
        assert_eq!(rest.comparison.course.elapsed_s[..made], *elapsed_s);
    }
}

#[test]
fn time_before_a_continuation_counts() {
    let budget = Duration::from_secs(100);
    let script = |_: ComparisonArm, planned: &PlannedTrial| times(1.0, planned, 0.1);
    let whole = compare(budget, script);
    let looks = whole.comparison.looks;
    let elapsed_s = &whole.comparison.course.elapsed_s[..2];
    let recorded = &whole.trials[..6];
    let rest = compare_as(&Setup { head: COMPARED, budget, recorded, elapsed_s }, script);
    assert_eq!((rest.comparison.looks, rest.comparison.ended), (looks, ComparisonEnd::Budget));
    assert_eq!(said(&rest.comparison), said(&whole.comparison));
}

#[test]
fn percentile_that_an_arm_cannot_support_is_inconclusive_and_holds_nothing_up() {
    // 500 requests per trial of the head, 1000 of the others.
    let head = &COMPARED.replace("rate: 200", "rate: 100");
    let setup = Setup { head, budget: HOUR, recorded: &[], elapsed_s: &[] };
    let compared = compare_as(&setup, |_, planned| times(1.0, planned, 0.004));
    let Comparison { figures, failures, ended, looks, verdict, .. } = &compared.comparison;
    let found: Vec<_> = figures.iter().map(|figure| (figure.key, figure.verdict, figure.reason)).collect();
    let p99 =
        (Metric::ResponseTimeP99Us, FigureVerdict::Inconclusive, Some(InconclusiveReason::TooFewRequests));
    assert_eq!(found, [p99, (Metric::ResponseTimeP50Us, FigureVerdict::Equivalent, None)]);
    assert!(failures.is_empty() && *looks < LOOKS, "{failures:?}");
    assert_eq!((*ended, *verdict), (ComparisonEnd::Decided, ComparisonVerdict::Inconclusive));
}
