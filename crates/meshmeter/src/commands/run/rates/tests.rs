use super::*;
use experiment::MeshKind;
use experiment::environment::DeploymentSpec;
use experiment::environment::deploy::{DriverEnd, DriverResult};
use results::Mode;

/// A generator with a rate of 1000/s for 2 s after 1 s of warm-up. `refused` requests per second are rejected
/// with status 429.
fn driver(refused: u64, failed: u64) -> DriverRun {
    let text = include_str!("../../../../tests/load-result.json");
    let mut result: LoadResult = serde_json::from_str(text).expect("a result as the generator writes it");
    result.duration_s = 2.0;
    (result.warmup.sent, result.warmup.completed) = (1000, 1000 - failed);
    (result.requests.sent, result.requests.completed) = (2000, 2000 - 2 * failed);
    result.rate.completed = 1000.0 - failed as f64;
    result.requests.status = [("200", 2000 - 2 * (refused + failed)), ("429", 2 * refused)]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(status, count)| (status.to_owned(), count))
        .collect();
    let end = DriverEnd { exit_code: Some(0), result: Ok(result.into()), last_lines: Vec::new() };
    let generator = super::super::drivers::GeneratorRun { name: "generator".to_owned(), end: Some(end) };
    DriverRun::new("generator".to_owned(), vec![generator])
}

fn gateway(requests: u64, forwarded: u64, retries: u64) -> GatewayRecord {
    let counts = GatewayCounts { requests, forwarded, retries, ..GatewayCounts::default() };
    GatewayRecord {
        name: "gateway".to_owned(),
        targets: vec!["server".to_owned()],
        window_s: 2.02,
        requests_per_s: 1000.0,
        whole_trial: Some(counts),
        ..GatewayRecord::default()
    }
}

fn counted(driver: DriverRun, gateway: Option<GatewayRecord>, destination: Option<u64>) -> Counted {
    let spec = DeploymentSpec::new(MeshKind::Envoy, Mode::Gateway);
    let server = ServiceCount { name: "server".to_owned(), requests: destination, ..ServiceCount::default() };
    let gateways: Vec<GatewayRecord> = gateway.into_iter().collect();
    Counted::new(&[driver], &gateways, &[server], &spec.topology).expect("the driver has a result")
}

fn verdict(counted: &Counted) -> Verdict {
    let mut verdict = Verdict::usable();
    counted.check(&mut verdict);
    verdict
}

#[test]
fn rates_of_three_agreeing_observers_refer_to_generator_window() {
    let counted = counted(driver(0, 0), Some(gateway(3000, 3000, 0)), Some(3000));
    let expected = TrialRates { generator: 1000.0, gateway: Some(1000.0), destination: Some(1000.0) };
    assert_eq!(counted.rates(), expected);
    assert_eq!(verdict(&counted), Verdict::usable());
}

#[test]
fn a_trial_without_a_gateway_has_two_observers() {
    let same = counted(driver(0, 0), None, Some(3000));
    assert_eq!(same.rates(), TrialRates { generator: 1000.0, gateway: None, destination: Some(1000.0) });
    assert!(verdict(&same).reasons.is_empty());
    let fewer = verdict(&counted(driver(0, 0), None, Some(2700)));
    assert_eq!(
        fewer.reasons,
        ["rates-disagree: generator completed 1000/s, destination 900/s: \
          100/s left the generator and did not reach the destination"]
    );
    assert!(!fewer.is_usable(Figure::Throughput) && fewer.valid);
    assert!(verdict(&counted(driver(0, 0), None, None)).reasons.is_empty());
}

#[test]
fn requests_answered_by_gateway_are_accounted_for_and_spoil_nothing() {
    let verdict = verdict(&counted(driver(100, 0), Some(gateway(3000, 2700, 0)), Some(2700)));
    assert_eq!(
        verdict.reasons,
        ["rates-disagree: generator completed 1000/s, gateway received 1000/s, destination 900/s: \
          100/s were answered by the gateway itself (429: 100/s)"]
    );
    assert!(verdict.valid && verdict.spoiled_figures().is_empty());
}

#[test]
fn statuses_are_rates_of_the_window_though_some_responses_came_after_it() {
    let mut late = driver(100, 0);
    let Ok(DriverResult::Load(result)) = &mut late.result else { panic!("a load") };
    // A quarter of the responses.
    (result.rate.completed, result.requests.completed_after_window) = (750.0, 500);
    let verdict = verdict(&counted(late, Some(gateway(3000, 2700, 0)), Some(2700)));
    assert!(
        verdict.reasons[0].ends_with("75.0/s were answered by the gateway itself (429: 75.0/s)"),
        "{verdict:?}"
    );
}

#[test]
fn unaccounted_requests_spoil_throughput() {
    let lost = verdict(&counted(driver(0, 0), Some(gateway(3000, 3000, 0)), Some(2400)));
    assert!(
        lost.reasons[0].ends_with("200/s left the gateway and did not reach the destination"),
        "{lost:?}"
    );
    assert!(!lost.is_usable(Figure::Throughput));
    let past = verdict(&counted(driver(0, 0), Some(gateway(1500, 1500, 0)), Some(3000)));
    assert!(past.reasons[0].contains("500/s did not reach the gateway"), "{past:?}");
    assert!(past.reasons[0].contains("500/s reached the destination besides"), "{past:?}");
}

#[test]
fn retries_and_unanswered_requests_are_reported() {
    let repeated = verdict(&counted(driver(0, 0), Some(gateway(3000, 3300, 300)), Some(3300)));
    assert!(repeated.reasons[0].ends_with(": 100/s were repeated by the gateway"), "{repeated:?}");
    let silent = verdict(&counted(driver(0, 50), Some(gateway(3000, 3000, 0)), Some(3000)));
    assert_eq!(
        silent.reasons,
        ["rates-disagree: generator completed 950/s, gateway received 1000/s, destination 1000/s: \
          50.0/s had no response at the generator"]
    );
}

#[test]
fn gateway_interval_may_differ_by_offset_and_requests_in_flight() {
    let notes = |requests_per_s: f64, window_s: f64| {
        let gateway = GatewayRecord { requests_per_s, window_s, ..gateway(3000, 3000, 0) };
        let mut verdict = Verdict::usable();
        counted(driver(0, 0), Some(gateway.clone()), Some(3000)).note_intervals(&[gateway], &mut verdict);
        verdict.notes.len()
    };
    assert_eq!(notes(1000.0, 2.0), 0);
    assert_eq!(notes(960.0, 2.08), 0);
    assert_eq!(notes(960.0, 2.0), 1);
}
