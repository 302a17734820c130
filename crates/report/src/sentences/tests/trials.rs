use super::*;

#[test]
fn exclusions_in_many_cells_are_listed_by_mode() {
    let (_, summary) = run(WAYS_OUT, |trial| invalidate(trial, "other-processes: others took 1 core", false));
    let reported = reported(&summary);
    assert!(reported.contains("other-processes: 6 of egress-bypass, 6 of egress-gateway, "), "{reported}");
}

#[test]
fn rerun_trial_counts_once() {
    let text = THREE_MODES.replace("repeats: 5", "repeats: 5, retakes: 1");
    let experiment = Experiment::parse(&text, "test").unwrap();
    let plan = Plan::new(&experiment, 1);
    let good: Vec<TrialRecord> = plan.trials.iter().map(trial).collect();
    let is_one = |trial: &&mut TrialRecord| {
        trial.mode == Mode::Sidecar && trial.load.rate == Some(1000.0) && trial.repeat == 2
    };
    let mut trials = good.clone();
    let disturbed = trials.iter_mut().find(is_one).unwrap();
    let mut again = disturbed.clone();
    invalidate(disturbed, "schedule-lag: late", false);
    let times = &mut disturbed.result.as_mut().unwrap().response_time_us;
    times.p50 = times.p50.map(|us| us * 9.0);
    again.index = trials.len();
    again.retake = Some(Retake { take: 2, of: 0, because: vec!["schedule-lag: late".into()] });
    trials.push(again);
    let summarize = |trials: &[TrialRecord]| summarize(&experiment, 1, 30, &Host::default(), trials);
    let (summary, undisturbed) = (summarize(&trials), summarize(&good));
    let cell = &summary.cells[5];
    assert_eq!((cell.trials, cell.places(), cell.valid, cell.retakes), (6, 5, 5, 1));
    assert_eq!((summary.trials_recorded, summary.places_recorded()), (31, 30));
    // Compared within each repeat, regardless of which mode came last.
    assert_eq!(summary.comparisons, undisturbed.comparisons);
    assert_eq!(cell.added_us, undisturbed.cells[5].added_us);
    let reported = reported(&summary);
    assert!(!reported.contains("cut short"), "{reported}");
    assert!(
        reported.contains(
            "1 of 31 trials is excluded from the estimates: schedule-lag 1.\n    schedule-lag: 1 of sidecar (1000/s).\n1 trial \
             was rerun.\n    Disturbed by the machine: 1 of sidecar (1000/s). 1 of these reruns is in the estimates; 30 of 30 \
             trials are valid."
        ),
        "{reported}"
    );
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["retakes"]["taken"], 1);
    let untouched = serde_json::to_value(&undisturbed.cells[5]).unwrap();
    assert!(untouched.get("retakes").is_none());
}

#[test]
fn noisy_machine_is_reported() {
    let text = "{name: t, modes: [none, sidecar], load: {rate: 1000, duration: 1s}, repeats: 2, retakes: 1}";
    let (_, summary) = run(text, |trial| invalidate(trial, "other-processes: others took 1 core", false));
    // No rerun yet: the run was killed, or there was no time.
    assert!(!summary.retakes.unwrap().too_noisy);
    let experiment = Experiment::parse(text, "test").unwrap();
    let mut trials: Vec<TrialRecord> = Plan::new(&experiment, 1).trials.iter().map(trial).collect();
    trials.iter_mut().for_each(|trial| invalidate(trial, "other-processes: others took 1 core", false));
    let mut again = trials[0].clone();
    again.index = 4;
    again.retake = Some(Retake { take: 2, of: 0, because: again.verdict.reasons.clone() });
    trials.push(again);
    let summary = summarize(&experiment, 1, 4, &Host::default(), &trials);
    for said in ["This machine is too noisy for this experiment", "1 trial was rerun; limit reached."] {
        assert!(reported(&summary).contains(said), "{}", reported(&summary));
    }
}

#[test]
fn mode_with_significantly_late_generator_is_named() {
    let late_with = |modes: &[Mode], repeats: usize| {
        let late = |trial: &mut TrialRecord| {
            if modes.contains(&trial.mode) && trial.repeat < repeats {
                invalidate(trial, "schedule-lag: late", false);
            }
        };
        reported(&run(THREE_MODES, late).1)
    };
    // Six of six late trials with one mode of three: a chance of one in 243.
    let reported = late_with(&[Mode::Sidecar], 3);
    assert!(
        reported.contains("With a sidecar pair the generator was late in 6 of 10 trials, in 0 of all others: more than by chance"),
        "{reported}"
    );
    assert!(!late_with(&[Mode::Sidecar], 1).contains("by chance"), "two trials are no sign");
    assert!(!late_with(&[Mode::None, Mode::Gateway, Mode::Sidecar], 3).contains("by chance"));
    assert!(!late_with(&[], 3).contains("by chance"));
}
