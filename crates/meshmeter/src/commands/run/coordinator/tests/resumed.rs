//! Runs that are continued.

use super::*;

/// Repeat and mode of each trial.
fn cells(trials: &[TrialRecord]) -> Vec<(usize, Mode)> {
    trials.iter().map(|trial| (trial.repeat, trial.mode)).collect()
}

fn planned(plan: &Plan) -> Vec<(usize, Mode)> {
    plan.trials.iter().map(|planned| (planned.repeat, planned.mode())).collect()
}

#[test]
fn only_what_is_missing_runs_wherever_the_run_was_killed() {
    let plan = plan(TEXT);
    let whole = run_plan(&plan, []).trials;
    for recorded in 0..=whole.len() {
        let ran = run_after(whole[..recorded].to_vec(), &plan, []);
        ran.ended.unwrap();
        assert_eq!(cells(&ran.trials), planned(&plan)[recorded..], "after {recorded} trials");
        let numbers = ran.trials.iter().map(|trial| trial.deployment.as_ref().unwrap().number);
        assert!(numbers.eq(recorded..whole.len()), "deployments keep counting");
    }
}

#[test]
fn trial_that_was_cut_short_is_taken_again_and_kept() {
    let plan = plan(TEXT);
    let stopped = ScriptedTrial { stop_at: Some(2 * SECOND), ..good() };
    let first = run_plan(&plan, [good(), stopped]).trials;
    assert_eq!(first.last().unwrap().outcome, TrialOutcome::Interrupted);
    let rest = run_after(first.clone(), &plan, []);
    assert_eq!(cells(&rest.trials), planned(&plan)[1..]);
    let again = rest.trials[0].retake.as_ref().unwrap();
    assert_eq!((again.take, again.of), (2, 1));
    assert_eq!(again.because, first[1].verdict.reasons);
    assert!(rest.trials[1..].iter().all(|trial| trial.retake.is_none()));
}

#[test]
fn reruns_that_were_due_are_made_up_for_and_count_as_before() {
    let plan = plan(TEXT);
    let all = run_plan(&plan, [disturbed()]);
    assert_eq!(all.reruns()[2], Some(0), "{:?}", all.reruns());
    // Killed after the repeat, before its rerun.
    let ran = run_after(all.trials[..2].to_vec(), &plan, []);
    assert_eq!(ran.reruns()[0], Some(0));
    assert_eq!(cells(&ran.trials)[1..], planned(&plan)[2..]);
    // Killed after the rerun, which is not made again.
    let ran = run_after(all.trials[..3].to_vec(), &plan, []);
    assert_eq!(cells(&ran.trials), planned(&plan)[2..]);
}

#[test]
fn mode_measured_before_counts_as_measured() {
    let plan = plan(TEXT);
    let whole = run_plan(&plan, []).trials;
    // From here on, nothing of one mode comes up: the run says nothing of the mode as a whole.
    let ran = run_after(whole[..5].to_vec(), &plan, [broken()]);
    ran.ended.unwrap();
    assert_eq!(ran.trials[0].outcome, TrialOutcome::Failed);
    // A trial that failed before is a result, and stays one.
    let mut failed = whole;
    failed[0].outcome = TrialOutcome::Failed;
    assert!(run_after(failed, &plan, []).trials.is_empty());
}
