//! Trials whose driver is a fleet.

use super::*;
use experiment::environment::deploy::{Argument, DriverEventKind, DriverVerb};
use experiment::settings::fleet::FleetSettings;
use results::{Figure, FleetAsk, FleetProgress, FleetProxies, FleetResult, FleetVerdict, HistogramSummary};

const ONE_FLEET: &str = "{name: f, mesh: istio, modes: [control-plane], repeats: 1, retakes: 1, \
                         fleet: {proxies: 20, changes: [endpoint-added=2, istiod-restart]}, \
                         istio: {istiod: {cpu: 500m}}}";

fn result(reasons: &[&str]) -> FleetResult {
    let times = HistogramSummary { count: 40, max: Some(9000.0), ..HistogramSummary::default() };
    FleetResult {
        proxies: FleetProxies { wanted: 20, connected: 20, converged: 20, ..FleetProxies::default() },
        convergence_us: times,
        first_configuration_us: HistogramSummary { count: 20, ..HistogramSummary::default() },
        verdict: FleetVerdict {
            valid: reasons.is_empty(),
            reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
            notes: Vec::new(),
        },
        ..FleetResult::default()
    }
}

fn fleet(reasons: &[&str]) -> ScriptedTrial {
    with_driver(ScriptedDriver::fleet_completes(result(reasons), 4 * SECOND))
}

fn run_fleet(trials: impl IntoIterator<Item = ScriptedTrial>) -> Ran {
    run_plan(&plan(ONE_FLEET), trials)
}

#[test]
fn a_fleet_is_started_with_its_settings_and_its_result_is_the_drivers() {
    let ran = run_fleet([fleet(&[])]);
    let [start] = started(&ran) else { panic!("one driver") };
    assert_eq!((start.driver.as_str(), &start.verb), ("fleet", &DriverVerb::Fleet));
    let [_, Argument::File { content, .. }] = start.arguments.as_slice() else { panic!("{start:?}") };
    let given = FleetSettings::from_yaml(str::from_utf8(content).unwrap(), "fleet.yaml").unwrap();
    let changes: Vec<String> = given.changes.iter().map(ToString::to_string).collect();
    assert_eq!((given.proxies, changes.join(" ").as_str()), (20, "endpoint-added=2 istiod-restart"));
    let trial = &ran.trials[0];
    assert!(trial.verdict.valid && trial.result.is_none(), "{:?}", trial.verdict);
    assert_eq!((trial.drivers.len(), trial.drivers[0].name.as_str()), (1, "fleet"));
    assert_eq!(trial.fleet().unwrap().proxies.converged, 20);
    assert!(trial.load.is_fleet());
    assert!(ran.ended.is_ok());
}

#[test]
fn requests_of_a_fleet_are_performed() {
    let mut driver = ScriptedDriver::fleet_completes(result(&[]), 4 * SECOND);
    let ask = FleetProgress::Ask(FleetAsk::IstiodRestart);
    driver.events.insert(1, (SECOND, DriverEventKind::Fleet(ask)));
    let ran = run_fleet([with_driver(driver)]);
    let asked = Request::Act("fleet".to_owned(), FleetAsk::IstiodRestart);
    assert_eq!(ran.count(|request| *request == asked), 1);
}

#[test]
fn proxies_never_reached_leave_the_figures_usable() {
    let ran = run_fleet([fleet(&["not-converged: 1 of 20 proxies"])]);
    assert_eq!(ran.first_reason(0), "not-converged: 1 of 20 proxies");
    assert!(ran.trials[0].verdict.valid);
    assert_eq!(ran.reruns(), [None]);
}

#[test]
fn a_late_fleet_runs_again_and_others_spoil_its_times() {
    let ran = run_fleet([fleet(&["fleet-late: 70 ms at p99"]), fleet(&[])]);
    assert_eq!(ran.reruns(), [None, Some(0)]);
    assert!(!ran.trials[0].verdict.is_usable(Figure::P50) && ran.trials[0].verdict.is_usable(Figure::Cpu));
    let ran = run_fleet([ScriptedTrial { other_processes_cores: 3.0, ..fleet(&[]) }, fleet(&[])]);
    assert!(ran.first_reason(0).starts_with("other-processes: "), "{}", ran.first_reason(0));
    assert!(!ran.trials[0].verdict.is_usable(Figure::P99) && ran.trials[1].verdict.valid);
}

#[test]
fn istiod_at_cpu_limit_of_experiment_stays_valid() {
    let throttled = |name: &str| ScriptedComponent {
        name: name.to_owned(),
        role: Role::ControlPlane,
        cpu_cores: 0.5,
        throttled_periods_per_s: 5.0,
    };
    let ran = run_fleet([ScriptedTrial { components: vec![throttled("istiod")], ..fleet(&[]) }]);
    assert!(ran.trials[0].verdict.reasons.is_empty(), "{:?}", ran.trials[0].verdict);
    let ran = run_fleet([ScriptedTrial { components: vec![throttled("etcd")], ..fleet(&[]) }]);
    assert!(ran.first_reason(0).starts_with("throttled: etcd"), "{}", ran.first_reason(0));
}

#[test]
fn a_run_that_is_stopped_keeps_what_its_fleet_has() {
    let ran = run_fleet([ScriptedTrial { stop_at: Some(2 * SECOND), ..fleet(&[]) }]);
    let trial = &ran.trials[0];
    assert_eq!(trial.outcome, TrialOutcome::Interrupted);
    assert!(trial.fleet().is_some_and(|fleet| fleet.duration_s < 4.0));
    assert!(ran.first_reason(0).starts_with("interrupted: "));
}

#[test]
fn a_fleet_that_never_ends_is_killed() {
    let mut driver = ScriptedDriver::fleet_completes(result(&[]), 4 * SECOND);
    driver.events.truncate(1);
    driver.ignores_interrupt = true;
    let ran = run_fleet([with_driver(driver)]);
    assert_eq!(ran.trials[0].outcome, TrialOutcome::Failed);
    assert!(ran.first_reason(0).contains("did not end in time"), "{}", ran.first_reason(0));
    assert_eq!(ran.count(|request| matches!(request, Request::Kill(_))), 1);
}

#[test]
fn a_fleet_without_a_result_is_named() {
    let mut driver = ScriptedDriver::fleet_completes(result(&[]), 4 * SECOND);
    if let Some((_, DriverEventKind::Ended(end))) = driver.events.last_mut() {
        (end.exit_code, end.result) = (Some(3), Err("it wrote none".to_owned()));
    }
    let ran = run_fleet([with_driver(driver)]);
    let trial = &ran.trials[0];
    assert!(!trial.verdict.valid && trial.fleet().is_none());
    assert!(ran.first_reason(0).contains("ended with status 3"), "{}", ran.first_reason(0));
}
