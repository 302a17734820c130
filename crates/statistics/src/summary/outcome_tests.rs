//! Saturation, errors and requests without a response in some trials of a cell.

use super::driver_tests::{EXPERIMENT, driver, summary, trial};
use super::*;
use crate::objective::checks;
use experiment::Plan;
use results::{DriverObjective, Figure, Figures, LatencyHistogram, Verdict};
use std::time::Duration;

/// The summary of five trials of one driver, changed by trial.
fn five_trials(change: impl Fn(usize, &mut TrialRecord)) -> Summary {
    let experiment = Experiment::parse(EXPERIMENT, "test").expect("a good experiment");
    let load = Plan::new(&experiment, 1).trials[0].load.clone();
    let trials = (0..5).map(|index| {
        let mut trial = trial(&load, index, vec![driver(1, 500.0 + 3.0 * (index % 3) as f64)]);
        trial.drivers.clear();
        change(index, &mut trial);
        trial
    });
    summary(&experiment, &trials.collect::<Vec<_>>())
}

fn with_reasons(reasons: &[&str]) -> Verdict {
    reasons.iter().fold(Verdict::usable(), |mut verdict, reason| {
        verdict.spoil(*reason, Figures::all());
        verdict
    })
}

#[test]
fn saturation_known_by_any_reason_misses_the_objective() {
    let outcome = |reasons: &[&str]| {
        let summary = five_trials(|index, trial| {
            if index == 2 {
                trial.verdict = with_reasons(reasons);
            }
        });
        (summary.cells[0].saturated_trials, summary.cells[0].objective)
    };
    assert_eq!(outcome(&["saturated: x"]), (1, Some(DriverObjective::Missed)));
    assert_eq!(outcome(&["schedule-lag: late", "saturated: x"]), (1, Some(DriverObjective::Missed)));
    // What is missing from a trial that was cut short says nothing of the target, for or against it.
    let cut_short = outcome(&["interrupted: stopped", "saturated: x"]);
    assert_eq!(cut_short, (0, Some(DriverObjective::NotShown)));
}

/// 40 of 1000 requests time out after 500 ms, so that the median is spoiled too.
fn time_out(trial: &mut TrialRecord) {
    let result = trial.result.as_mut().expect("a result");
    let mut answered = LatencyHistogram::new();
    (0..960).for_each(|index| answered.record(Duration::from_micros(500 + index)));
    result.response_time_us = answered.summary_with(40);
    (result.requests.failed, result.requests.completed) = (40, 960);
    result.censored_above_us = Some(500_000.0);
    trial.verdict = Verdict::usable();
    trial.verdict.spoil("errors: 4 % of requests", Figures::times());
}

#[test]
fn requests_without_a_response_count_where_errors_spoil_every_trial() {
    let summary = five_trials(|_, trial| time_out(trial));
    let cell = &summary.cells[0];
    assert_eq!((cell.valid, cell.censored), (0, 200));
    let p99 = cell.response_time_us.and_then(|times| times.censored(Figure::P99)).expect("it is known");
    assert_eq!(p99.above_us, Some(500_000.0));
    let distribution = cell.distribution.as_ref().expect("trials of an open loop");
    assert_eq!((distribution.trials, distribution.answered), (5, 4800));
    let missed = checks(&"p99=1s".parse().expect("an objective"), cell).remove(1);
    assert_eq!(
        missed.misses,
        ["p99 falls among requests without a response (> 500 ms), which 1 s does not allow"]
    );
}

#[test]
fn a_valid_cell_says_in_how_many_trials_it_was_saturated_or_had_errors() {
    let verdict = |reasons: [&'static str; 5]| {
        let summary = five_trials(|index, trial| {
            let reason = Some(reasons[index]).filter(|reason| !reason.is_empty());
            trial.verdict = reason.map_or_else(Verdict::usable, |reason| with_reasons(&[reason]));
        });
        summary.cells[0].verdict.clone()
    };
    assert_eq!(verdict(["saturated: x", "", "", "saturated: x", ""]), "saturated in 2 of 5");
    assert_eq!(
        verdict(["saturated: x", "", "", "errors: x", ""]),
        "saturated in 1 of 5 and errors in 1 of 5"
    );
    assert_eq!(verdict(["steal: x", "", "", "", ""]), "valid");
    assert_eq!(verdict(["saturated: x", "saturated: x", "saturated: x", "", ""]), "saturated");
}

#[test]
fn few_requests_without_an_error_do_not_meet_a_bound_of_errors() {
    let summary = five_trials(|_, trial| {
        trial.result.as_mut().expect("a result").requests.sent = 100;
    });
    let cell = &summary.cells[0];
    let outcome = |bound: &str| {
        let check = checks(&bound.parse().expect("an objective"), cell).remove(1);
        (check.outcome, check.misses.concat())
    };
    let not_shown = "0.00% of the requests failed, up to 0.60% not excluded, above 0.1%".to_owned();
    assert_eq!(outcome("errors=0.1%"), (DriverObjective::NotShown, not_shown));
    assert_eq!(outcome("errors=1%").0, DriverObjective::Met);
    // A count, which no number of requests shows.
    assert_eq!(outcome("errors=0").0, DriverObjective::Met);
}
