use super::super::drivers::{self, GeneratorRun};
use super::*;
use experiment::environment::deploy::DriverEnd;
use results::{ComponentUsage, Throttling, TopProcess};

fn proven() -> PathProof {
    PathProof { proven: true, ..PathProof::default() }
}

fn quiet() -> WindowUsage {
    WindowUsage {
        machine: Some(MachineUsage { cpus: 2, ..MachineUsage::default() }),
        ..WindowUsage::default()
    }
}

fn busy() -> WindowUsage {
    let top_other_processes = vec![TopProcess { name: "rustc".into(), cpu_cores: 0.5 }];
    let machine =
        MachineUsage { cpus: 2, other_processes_cores: 0.5, top_other_processes, ..MachineUsage::default() };
    WindowUsage { machine: Some(machine), ..quiet() }
}

fn throttled(component: &str, role: Role) -> WindowUsage {
    let component = ComponentUsage {
        throttling: Some(Throttling { periods: 3, of_periods: Some(10), time_s: 0.1 }),
        ..ComponentUsage::new(component, role, 1.0)
    };
    WindowUsage { components: vec![component], ..quiet() }
}

fn result() -> LoadResult {
    let text = include_str!("../../../../tests/load-result.json");
    let result: LoadResult = serde_json::from_str(text).expect("a result as the generator writes it");
    LoadResult { verdict: Verdict { valid: true, ..Verdict::default() }, ..result }
}

fn driver(name: &str, result: LoadResult) -> DriverRun {
    let end = DriverEnd { exit_code: Some(0), result: Ok(result.into()), last_lines: Vec::new() };
    DriverRun::new(name.to_owned(), vec![GeneratorRun { name: name.to_owned(), end: Some(end) }])
}

/// Kinds of the reasons against a trial with one driver whose own verdict is valid.
fn reasons(ending: &Ending, path: &PathProof, usage: Option<&WindowUsage>) -> Vec<String> {
    let drivers = [driver("generator", result())];
    let merged = drivers::merged_result(&drivers);
    let verdict =
        check_trial(&Observed { ending, path, usage, limited: &[], scenario: None }, &drivers, &merged);
    assert_eq!(verdict.spoiled.len(), verdict.reasons.len());
    verdict.reasons.iter().map(|reason| reason.split(':').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn trial_without_reasons_is_valid() {
    assert!(reasons(&Ending::Finished, &proven(), Some(&quiet())).is_empty());
    let of_a_cluster = WindowUsage { machine: None, ..quiet() };
    assert!(reasons(&Ending::Finished, &proven(), Some(&of_a_cluster)).is_empty());
}

#[test]
fn each_cause_has_its_reason() {
    let finished = &Ending::Finished;
    assert_eq!(reasons(finished, &PathProof::default(), Some(&quiet())), ["path-not-proven"]);
    assert_eq!(reasons(finished, &proven(), Some(&busy())), ["other-processes"]);
    assert_eq!(reasons(finished, &proven(), Some(&throttled("client-proxy", Role::Proxy))), ["throttled"]);
    assert_eq!(reasons(finished, &proven(), Some(&throttled("generator", Role::Generator))), ["throttled"]);
    assert_eq!(reasons(&Ending::Interrupted, &proven(), Some(&quiet())), ["interrupted"]);
    assert_eq!(reasons(&Ending::Failed("server died".into()), &proven(), Some(&quiet())), ["failed"]);
    assert_eq!(reasons(finished, &proven(), None), ["not-observed"]);
}

/// Spoiled figures of a trial with one driver whose own verdict is valid.
fn spoiled(usage: Option<&WindowUsage>) -> Vec<&'static str> {
    let drivers = [driver("generator", result())];
    let merged = drivers::merged_result(&drivers);
    let observed =
        Observed { ending: &Ending::Finished, path: &proven(), usage, limited: &[], scenario: None };
    let verdict = check_trial(&observed, &drivers, &merged);
    assert_eq!(verdict.valid, verdict.is_usable(Figure::P50));
    verdict.spoiled_figures().iter().map(Figure::name).collect()
}

#[test]
fn cpu_lost_to_others_spoils_by_its_share_of_what_the_experiment_left() {
    let taken = |used_cores: f64, other_processes_cores: f64, steal_cores: f64| {
        let busy_cores = used_cores + other_processes_cores;
        let machine = MachineUsage {
            cpus: 4,
            busy_cores,
            other_processes_cores,
            steal_cores,
            ..MachineUsage::default()
        };
        spoiled(Some(&WindowUsage { machine: Some(machine), ..quiet() }))
    };
    assert!(taken(0.0, 0.4, 0.2).is_empty());
    let stolen = taken(0.0, 0.0, 0.24);
    let beyond = ["mean", "p95", "p99", "p99.9", "p99.99", "max", "throughput"];
    assert!(beyond.iter().all(|figure| stolen.contains(figure)) && !stolen.contains(&"p50"), "{stolen:?}");
    assert!(!taken(0.0, 0.42, 0.0).contains(&"p50"));
    // A fifth of all CPUs is two fifths of what the experiment left: its queues grow by two thirds.
    assert!(taken(1.0, 0.4, 0.0).contains(&"p99") && taken(2.0, 0.8, 0.0).contains(&"p50"));
    let most = taken(0.0, 1.2, 0.0);
    assert!(most.contains(&"p50") && !most.contains(&"cpu") && !most.contains(&"memory"), "{most:?}");
}

#[test]
fn missing_usage_or_throttling_spoils_only_affected_figures() {
    assert_eq!(spoiled(None), ["cpu", "memory", "network"]);
    let throttled = spoiled(Some(&throttled("client-proxy", Role::Proxy)));
    assert!(throttled.contains(&"p50") && !throttled.contains(&"cpu") && !throttled.contains(&"memory"));
}

#[test]
fn gateway_at_its_own_cpu_limit_stays_valid() {
    let drivers = [driver("generator", result())];
    let merged = drivers::merged_result(&drivers);
    let reasons = |component: &str| {
        let usage = throttled(component, Role::Proxy);
        let (ending, path, limited) = (&Ending::Finished, &proven(), &["gateway".to_owned()]);
        let observed = Observed { ending, path, usage: Some(&usage), limited, scenario: None };
        check_trial(&observed, &drivers, &merged).reasons.len()
    };
    assert_eq!((reasons("gateway"), reasons("server-proxy")), (0, 1));
}

#[test]
fn trial_cut_short_has_that_reason_first_and_is_not_saturated() {
    let saturated = Verdict {
        saturated: true,
        reasons: vec!["saturated: 1/s completed of 500/s offered".to_owned()],
        ..Verdict::default()
    };
    let drivers = [driver("generator", LoadResult { verdict: saturated, ..result() })];
    let merged = drivers::merged_result(&drivers);
    for (ending, first) in [(Ending::Interrupted, "interrupted:"), (Ending::Failed("x".into()), "failed: x")]
    {
        let observed =
            Observed { ending: &ending, path: &proven(), usage: Some(&busy()), limited: &[], scenario: None };
        let verdict = check_trial(&observed, &drivers, &merged);
        assert!(verdict.reasons[0].starts_with(first), "{:?}", verdict.reasons);
        assert!(!verdict.saturated && !verdict.valid);
    }
}

#[test]
fn without_a_result_nothing_is_valid() {
    let ending = Ending::Failed("no proxy".into());
    let observed =
        Observed { ending: &ending, path: &PathProof::default(), usage: None, limited: &[], scenario: None };
    let drivers = [DriverRun::without_end("generator")];
    let verdict = check_trial(&observed, &drivers, &Ok(None));
    assert!(!verdict.valid);
    assert_eq!(verdict.reasons, ["failed: no proxy"]);
}

/// Two drivers, one of which is late: the verdicts of the trial and of each driver.
fn of_two(usage: &WindowUsage, reasons: &[&str]) -> (Verdict, [Verdict; 2]) {
    let late = Verdict {
        valid: reasons.is_empty(),
        reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
        notes: vec!["stall: a note".to_owned()],
        ..Verdict::default()
    };
    // Distinct URLs: identical results would count as the same measurement.
    let other = LoadResult { urls: vec!["http://other/".to_owned()], ..result() };
    let drivers = [driver("a", LoadResult { verdict: late, ..result() }), driver("b", other)];
    let merged = drivers::merged_result(&drivers);
    let observed = Observed {
        ending: &Ending::Finished,
        path: &proven(),
        usage: Some(usage),
        limited: &[],
        scenario: None,
    };
    let [a, b] = &drivers;
    let each = [check_driver(&observed, a), check_driver(&observed, b)];
    (check_trial(&observed, &drivers, &merged), each)
}

#[test]
fn reasons_of_one_driver_name_it_and_do_not_affect_others() {
    let (trial, [late, other]) = of_two(&quiet(), &["schedule-lag: it was late"]);
    assert_eq!(trial.reasons, ["schedule-lag: a: it was late"]);
    assert_eq!(trial.notes, ["stall: a: a note"]);
    assert_eq!(late.reasons, ["schedule-lag: it was late"]);
    assert!(!trial.valid && !late.valid && other.valid);
}

#[test]
fn machine_disturbance_spoils_all_drivers_and_throttling_only_its_driver() {
    let (trial, each) = of_two(&busy(), &[]);
    let times_are_spoiled =
        |verdict: &Verdict| !verdict.is_usable(Figure::P99) && verdict.is_usable(Figure::Cpu);
    assert!(times_are_spoiled(&trial) && each.iter().all(times_are_spoiled), "{trial:?}");
    let (trial, [throttled, other]) = of_two(&throttled("a", Role::Generator), &[]);
    assert!(!trial.valid && !throttled.valid && other.valid);
    let (trial, each) = of_two(&quiet(), &[]);
    assert!(trial.valid && each.iter().all(|driver| driver.valid));
}
