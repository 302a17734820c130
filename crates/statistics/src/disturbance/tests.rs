use super::*;
use crate::retakes::tests::{again, trial};
use proptest::prelude::*;
use results::{MachineUsage, Mode};

const OTHERS: &str = "other-processes: others took 0.80 cores (cc 0.80)";
const LATE: &str = "schedule-lag: the generator itself was 900 µs late at the p99, of 1000 µs response time";
const STOLEN: &str = "steal: the hypervisor took 0.40 cores away";
const SATURATED: &str = "saturated: 40 % of the due requests were never sent";
const UNPROVEN: &str = "path-not-proven: gateway saw no request";
const THROTTLED: &str = "throttled: gateway, in 3 periods for 40 ms by its CPU limit";

fn freed_of(reasons: &[&str]) -> bool {
    !freed(&[&trial(0, 0, Mode::Sidecar, reasons)]).is_empty()
}

#[test]
fn only_noise_of_the_machine_is_freed() {
    for noise in [OTHERS, LATE, STOLEN] {
        assert!(freed_of(&[noise]), "{noise}");
        for other in [SATURATED, UNPROVEN, THROTTLED, "errors: 2 %", "interrupted: stopped", "failed: x died"]
        {
            assert!(!freed_of(&[other]) && !freed_of(&[noise, other]), "{noise} {other}");
        }
    }
    assert!(!freed_of(&[]));
}

#[test]
fn trial_that_did_not_finish_is_not_freed() {
    for outcome in [TrialOutcome::Interrupted, TrialOutcome::Failed] {
        let trial = TrialRecord { outcome, ..trial(0, 0, Mode::Sidecar, &[OTHERS]) };
        assert!(freed(&[&trial]).is_empty());
    }
}

#[test]
fn lateness_for_which_the_experiment_left_no_cpu_is_a_result() {
    let full = |reasons: &[&str]| {
        let machine = MachineUsage { cpus: 2, busy_cores: 1.95, ..MachineUsage::default() };
        let trial = TrialRecord { machine: Some(machine), ..trial(0, 0, Mode::Sidecar, reasons) };
        !freed(&[&trial]).is_empty()
    };
    assert!(!full(&[LATE]));
    assert!(full(&[OTHERS, LATE]), "others may be why it was late");
}

#[test]
fn sound_take_of_a_repeat_is_preferred() {
    let first = trial(0, 0, Mode::Sidecar, &[OTHERS]);
    let good = again(1, 2, &first, &[]);
    assert!(freed(&[&first, &good]).is_empty());
    let twice = again(1, 2, &first, &[OTHERS]);
    let freed = freed(&[&first, &twice]);
    assert_eq!(freed.iter().map(|one| one.trial.index).collect::<Vec<_>>(), [0], "one take per repeat");
}

#[test]
fn accepted_noise_hides_no_other_reason() {
    let trials =
        [trial(0, 0, Mode::Sidecar, &[OTHERS, SATURATED, STOLEN]), trial(1, 1, Mode::Sidecar, &[OTHERS])];
    let (accepted, noise) = accept(&trials);
    assert_eq!(accepted[0].verdict.reasons, [SATURATED, OTHERS, STOLEN]);
    let spoiled: Vec<&str> = accepted[0].verdict.spoiled.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(spoiled, ["saturated", "other-processes", "steal"]);
    assert_eq!(crate::trials::reason_kind(&accepted[0]), "saturated");
    assert_eq!((noise.trials, noise.of), (1, 2));
}

/// Reasons with the figures that they spoil.
fn reasons() -> impl Strategy<Value = Vec<(&'static str, Figures)>> {
    let kinds = prop::sample::select(vec![OTHERS, LATE, STOLEN, SATURATED, UNPROVEN, THROTTLED]);
    let figures = prop::collection::vec(prop::sample::select(Figure::ALL.to_vec()), 0..=13);
    prop::collection::vec((kinds, figures.prop_map(Figures::from)), 0..4)
}

/// Up to three takes of each of three repeats.
fn takes() -> impl Strategy<Value = Vec<TrialRecord>> {
    let of_repeat = prop::collection::vec(reasons(), 1..=3);
    prop::collection::vec(of_repeat, 1..=3).prop_map(|repeats| {
        let mut trials: Vec<TrialRecord> = Vec::new();
        for (repeat, takes) in repeats.into_iter().enumerate() {
            let first = trial(trials.len(), repeat, Mode::Sidecar, &[]);
            for (take, reasons) in takes.into_iter().enumerate() {
                let index = trials.len();
                let mut one = if take == 0 { first.clone() } else { again(index, take + 1, &first, &[]) };
                reasons.into_iter().for_each(|(reason, figures)| one.verdict.spoil(reason, figures));
                trials.push(one);
            }
        }
        trials
    })
}

fn is_of_noise(reason: &str) -> bool {
    [OTHERS, LATE, STOLEN].contains(&reason)
}

proptest! {
    #[test]
    fn accepting_adds_exactly_what_noise_alone_keeps_out(trials in takes()) {
        let (accepted, noise) = accept(&trials);
        let has_note = |one: &TrialRecord| one.verdict.notes.iter().any(|note| note.starts_with(ACCEPTED));
        let noted = accepted.iter().filter(|one| has_note(one)).count();
        prop_assert_eq!((noise.trials, noise.of), (noted, trials.len()));
        for (before, after) in trials.iter().zip(&accepted) {
            let figures = |one: &TrialRecord| one.verdict.spoiled_figures();
            prop_assert_eq!(has_note(after), figures(before) != figures(after));
            let mut noise_last = before.verdict.reasons.clone();
            noise_last.sort_by_key(|reason| is_of_noise(reason));
            prop_assert_eq!(&noise_last, &after.verdict.reasons);
            let others = |trial: &TrialRecord| -> Vec<(String, Figures)> {
                let reasons = trial.verdict.reasons_with_figures().filter(|(reason, _)| !is_of_noise(reason));
                reasons.map(|(reason, figures)| (reason.to_owned(), figures)).collect()
            };
            prop_assert_eq!(others(before), others(after), "no other reason changes");
        }
        for repeat in 0..3 {
            let of_repeat = |trials: &[TrialRecord]| -> Vec<TrialRecord> {
                trials.iter().filter(|trial| trial.repeat == repeat).cloned().collect()
            };
            let (before, after) = (of_repeat(&trials), of_repeat(&accepted));
            for figure in Figure::ALL {
                let usable = |trials: &[TrialRecord]| trials.iter().filter(|one| is_usable(one, figure)).count();
                let spoiling = |one: &TrialRecord| -> Vec<bool> {
                    let reasons = one.verdict.reasons_with_figures().filter(|(_, figures)| figures.contains(figure));
                    reasons.map(|(reason, _)| is_of_noise(reason)).collect()
                };
                let by_noise = |one: &&TrialRecord| !spoiling(one).is_empty() && spoiling(one).into_iter().all(|is| is);
                let is_offered = before.iter().any(|one| by_noise(&one));
                let expected = if usable(&before) == 0 && is_offered { 1 } else { usable(&before) };
                prop_assert_eq!(usable(&after), expected, "{:?} of repeat {}", figure, repeat);
            }
        }
    }
}
