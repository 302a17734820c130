use super::*;
use crate::trials::usable;
use results::{LoadResult, TRIAL_SCHEMA, Verdict};

fn load() -> LoadPoint {
    LoadPoint {
        protocol: "http/1.1".into(),
        rate: Some(1000.0),
        clients: None,
        connections: 4,
        requests_per_connection: None,
        payload_bytes: 1024,
        stream: None,
        arrival: "uniform".into(),
        surrounding_services: None,
    }
}

const LATE: &str = "schedule-lag: the generator itself was 900 µs late at the p99, of 1000 µs response time";
const LATE_READER: &str =
    "reading-lag: the generator read responses 900 µs late at the p99, of 1000 µs response time";
const OTHERS: &str = "other-processes: others took 0.80 cores (cc 0.80)";

/// A first take with these reasons, on a machine with two CPUs of which the experiment uses one.
pub(crate) fn trial(index: usize, repeat: usize, mode: Mode, reasons: &[&str]) -> TrialRecord {
    let mut result = LoadResult::default();
    result.response_time_us.count = 1000;
    TrialRecord {
        schema: TRIAL_SCHEMA.into(),
        index,
        repeat,
        mode,
        factors: Factors::new(),
        load: load(),
        started_at: String::new(),
        deployment: None,
        outcome: TrialOutcome::Finished,
        verdict: reasons.iter().fold(Verdict::usable(), |mut verdict, reason| {
            verdict.spoil(*reason, Figures::all());
            verdict
        }),
        result: Some(result),
        drivers: Vec::new(),
        services: Vec::new(),
        edges: Vec::new(),
        gateways: Vec::new(),
        rates: None,
        components: vec![],
        path: results::PathProof::default(),
        machine: Some(MachineUsage { cpus: 2, busy_cores: 1.0, ..MachineUsage::default() }),
        nodes: Vec::new(),
        log_tails: [].into(),
        hints: Vec::new(),
        push: None,
        further_domain: None,
        versions: Vec::new(),
        proxies: None,
        retake: None,
    }
}

/// A later take of the same trial.
pub(crate) fn again(index: usize, take: usize, of: &TrialRecord, reasons: &[&str]) -> TrialRecord {
    TrialRecord {
        retake: Some(Retake { take, of: of.index, because: of.verdict.reasons.clone() }),
        ..trial(index, of.repeat, of.mode, reasons)
    }
}

fn noted(of_each: usize, most: usize, trials: &[TrialRecord]) -> Retakes {
    let mut retakes = Retakes::new(of_each, most);
    trials.iter().for_each(|trial| retakes.note(trial));
    retakes
}

/// True if a first take with this outcome is rerun.
fn is_due(change: impl FnOnce(&mut TrialRecord), reasons: &[&str]) -> bool {
    let mut trial = trial(0, 0, Mode::Sidecar, reasons);
    change(&mut trial);
    !noted(1, 5, &[trial]).due(0).is_empty()
}

#[test]
fn only_machine_disturbance_is_rerun() {
    let alone = |reasons: &[&str]| is_due(|_| {}, reasons);
    assert!(alone(&[LATE]) && alone(&[OTHERS]) && alone(&[OTHERS, LATE]) && alone(&[OTHERS, LATE_READER]));
    assert!(!alone(&[]));
    for result in [
        "saturated: 800/s completed of 1000/s offered",
        "errors: 2.00 % of the requests failed",
        "connections: 2 of 4 were open at the start",
        "path-not-proven: server-proxy saw 900 of 1000",
        "throttled: server, in 3 periods for 20 ms by its CPU limit",
        "not-observed: the components were not read",
        "nothing-measured: no request was due",
        "unreachable: the connection was refused",
        "a reason of a later version: what nobody knows",
    ] {
        assert!(!alone(&[result]), "{result}");
        assert!(!alone(&[LATE, result]) && !alone(&[OTHERS, result]), "{result}");
    }
}

#[test]
fn failed_or_stopped_trials_are_not_rerun() {
    for outcome in [TrialOutcome::Failed, TrialOutcome::Interrupted] {
        assert!(!is_due(|trial| trial.outcome = outcome, &[LATE]));
    }
    // Invalid without a reason: nothing shows that it was the machine.
    assert!(!is_due(|trial| trial.verdict.valid = false, &[]));
    assert!(!is_due(|trial| trial.result = None, &[]));
}

#[test]
fn lateness_on_machine_full_of_the_experiment_is_not_rerun() {
    let busy = |busy_cores: f64, other_processes_cores: f64| {
        let machine = MachineUsage { cpus: 2, busy_cores, other_processes_cores, ..MachineUsage::default() };
        is_due(|trial| trial.machine = Some(machine), &[LATE])
    };
    assert!(busy(1.7, 0.0) && !busy(1.85, 0.0));
    // A full machine of which other processes used a little.
    assert!(busy(1.9, 0.15));
    assert!(!is_due(|trial| trial.machine = None, &[LATE]));
}

#[test]
fn reruns_follow_their_repeat_and_state_the_reason() {
    let trials = [
        trial(0, 0, Mode::Sidecar, &[LATE]),
        trial(1, 0, Mode::None, &[OTHERS, LATE]),
        trial(2, 1, Mode::None, &[LATE]),
    ];
    let due = noted(1, 5, &trials).due(0);
    let modes: Vec<Mode> = due.iter().map(|due| due.mode).collect();
    assert_eq!(modes, [Mode::Sidecar, Mode::None]);
    assert_eq!(due[1].retake, Retake { take: 2, of: 1, because: vec![OTHERS.into(), LATE.into()] });
    assert!(noted(0, 0, &trials).due(0).is_empty());
}

#[test]
fn trial_is_rerun_until_valid_or_limit_reached() {
    let first = trial(0, 0, Mode::Sidecar, &[LATE]);
    let late_again = again(1, 2, &first, &[LATE]);
    let both = [first.clone(), late_again.clone()];
    assert!(noted(1, 5, &both).due(0).is_empty());
    let third = noted(2, 5, &both).due(0);
    assert_eq!((third.len(), third[0].retake.take, third[0].retake.of), (1, 3, 1));
    assert!(noted(2, 5, &[first.clone(), again(1, 2, &first, &[])]).due(0).is_empty());
    // What the mesh itself did in the second take is a result.
    assert!(noted(2, 5, &[first.clone(), again(1, 2, &first, &["saturated: x"])]).due(0).is_empty());
    assert!(noted(2, 5, &[first, late_again.clone(), again(2, 3, &late_again, &[LATE])]).due(0).is_empty());
}

#[test]
fn run_stops_at_retake_limit_and_reports_noisy_machine() {
    let modes = [Mode::None, Mode::Sidecar, Mode::Ambient];
    let first: Vec<TrialRecord> =
        modes.iter().enumerate().map(|(index, mode)| trial(index, 0, *mode, &[LATE])).collect();
    let mut retakes = noted(1, 2, &first);
    assert_eq!(retakes.due(0).len(), 2);
    assert!(!retakes.too_noisy());
    retakes.note(&again(3, 2, &first[0], &[]));
    assert_eq!(retakes.due(0).len(), 1);
    retakes.note(&again(4, 2, &first[1], &[]));
    assert!(retakes.due(0).is_empty() && retakes.too_noisy());
    // The maximum was reached, but no more reruns were needed.
    assert!(!noted(1, 1, &[first[0].clone(), again(1, 2, &first[0], &[])]).too_noisy());
}

#[test]
fn trial_is_rerun_only_while_a_figure_is_missing() {
    let late_at_p99 = |index, take| {
        let mut trial = trial(index, 0, Mode::Sidecar, &[]);
        trial.verdict.spoil(LATE, Figures::times_from(Figure::P99));
        trial.retake = (take > 1).then(|| Retake { take, of: 0, because: vec![LATE.into()] });
        trial
    };
    let first = late_at_p99(0, 1);
    assert!(first.verdict.valid, "the median is sound");
    assert_eq!(noted(2, 9, std::slice::from_ref(&first)).due(0).len(), 1);
    // A second take that is just as late is rerun in turn. One whose median alone is spoiled has the missing
    // tail.
    assert_eq!(noted(2, 9, &[first.clone(), late_at_p99(1, 2)]).due(0).len(), 1);
    let mut tail = again(1, 2, &first, &[]);
    tail.verdict.spoil(OTHERS, Figures::none().with(Figure::P50));
    assert!(noted(2, 9, &[first, tail]).due(0).is_empty());
    // Trials are not rerun for percentiles beyond the 99th.
    let mut beyond = trial(0, 0, Mode::Sidecar, &[]);
    beyond.verdict.spoil(LATE, Figures::times_from(Figure::P99_9));
    assert!(noted(2, 9, &[beyond]).due(0).is_empty());
}

#[test]
fn trials_without_median_are_rerun_first() {
    let mut late = trial(0, 0, Mode::Sidecar, &[]);
    late.verdict.spoil(LATE, Figures::times_from(Figure::P99));
    let trials = [late, trial(1, 0, Mode::None, &[OTHERS])];
    assert_eq!(noted(1, 1, &trials).due(0)[0].retake.of, 1);
}

#[test]
fn each_figure_comes_from_first_usable_take() {
    let mut first = trial(0, 0, Mode::None, &[]);
    first.verdict.spoil(LATE, Figures::times_from(Figure::P99));
    let second = again(1, 2, &first, &[]);
    let takes = [&first, &second];
    let chosen = |figure| usable(&takes, figure).iter().map(|trial| trial.index).collect::<Vec<_>>();
    assert_eq!((chosen(Figure::P50), chosen(Figure::P99), chosen(Figure::Cpu)), (vec![0], vec![1], vec![0]));
}

#[test]
fn rerun_without_recorded_first_take_counts_as_first() {
    let first = trial(0, 0, Mode::None, &[LATE]);
    let second = again(1, 2, &first, &[]);
    assert!(is_another_take(&second, &[&first, &second]));
    assert!(!is_another_take(&second, &[&trial(0, 1, Mode::None, &[]), &second]));
    assert!(!is_another_take(&first, &[&first, &second]));
}

#[test]
fn summary_counts_reruns() {
    let first = trial(0, 0, Mode::None, &[LATE]);
    let trials = [first.clone(), trial(1, 0, Mode::Sidecar, &[LATE]), again(2, 2, &first, &[])];
    let expected = RetakeSummary { of_each: 1, most: 1, taken: 1, valid: 1, too_noisy: true };
    assert_eq!(summary(1, 1, &TrialsByCell::new(&trials)), Some(expected));
    assert_eq!(summary(0, 0, &TrialsByCell::new(&trials[..2])), None);
}
