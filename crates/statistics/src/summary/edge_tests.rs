//! Calls between the services of five tenants: `a` calls `b1` and `b2`, each of which calls `c`.

use super::driver_tests::{WARMUP_REQUESTS, WINDOW_S, five_tenants, result, spoil, summary};
use super::*;
use results::finding::{Greatest, GreatestAdded, OfCell, Trials};
use results::{
    ComponentUsage, DriverRecord, EdgeProof, EdgeRecord, EdgeSummary, Figure, Finding, FindingKind,
    FindingVerdict, LatencyHistogram, MachineUsage, Role, ServiceRecord, ServiceSummary, TopProcess,
};
use std::time::Duration;

const EDGES: [(&str, &str); 4] = [("a", "b1"), ("a", "b2"), ("b1", "c"), ("b2", "c")];
/// Requests of a tenant's driver in a trial, including the warm-up.
const SENT: u64 = 1000 + WARMUP_REQUESTS;

fn edge(tenant: usize, (from, to): (&str, &str), median_us: f64) -> EdgeRecord {
    EdgeRecord {
        from: format!("tenant-{tenant}/{from}"),
        to: format!("tenant-{tenant}/{to}"),
        requests: SENT,
        answered: SENT,
        connections: 4,
        response_time_us: Some(result(100.0, median_us).response_time_us),
        ..EdgeRecord::default()
    }
}

fn service(tenant: usize, name: &str) -> ServiceRecord {
    ServiceRecord {
        name: name.to_owned(),
        namespace: format!("tenant-{tenant}"),
        replicas: 1,
        requests: Some(if name == "c" { 2 * SENT } else { SENT }),
        requests_per_s: None,
        components: vec![format!("tenant-{tenant}/{name}")],
    }
}

/// A service using 0.05 cores and its sidecar using 0.1 cores, in one pod.
fn pod(service: &ServiceRecord) -> [ComponentUsage; 2] {
    let name = &service.components[0];
    let usage = |name: &str, role, cpu_user_s| ComponentUsage {
        pod: Some(service.components[0].replace('/', "--")),
        cpu_user_s,
        ..ComponentUsage::new(name, role, WINDOW_S)
    };
    [usage(name, Role::App, 0.5), usage(&format!("{name}-proxy"), Role::Proxy, 1.0)]
}

fn tiered(change: impl Fn(usize, usize, &mut DriverRecord)) -> (Experiment, Vec<TrialRecord>) {
    let (experiment, mut trials) = five_tenants(change);
    for trial in &mut trials {
        let tenants = || 1..=5;
        trial.services =
            tenants().flat_map(|tenant| ["a", "b1", "b2", "c"].map(|name| service(tenant, name))).collect();
        trial.components = trial.services.iter().flat_map(pod).collect();
        let shared = ComponentUsage {
            pod: Some("ztunnel".to_owned()),
            cpu_user_s: 5.0,
            ..ComponentUsage::new("ztunnel", Role::Proxy, WINDOW_S)
        };
        trial.components.push(shared);
        let median_us = 200.0 + 2.0 * trial.index as f64;
        trial.edges =
            tenants().flat_map(|tenant| EDGES.map(|edge| self::edge(tenant, edge, median_us))).collect();
    }
    (experiment, trials)
}

fn find<'a>(edges: &'a [EdgeSummary], from: &str, to: &str) -> &'a EdgeSummary {
    edges.iter().find(|edge| edge.from == from && edge.to == to).expect("the edge")
}

#[test]
fn edge_and_service_counts_match_graph() {
    let (experiment, trials) = tiered(|_, _, _| {});
    let summary = summary(&experiment, &trials);
    let cell = &summary.cells[0];
    assert_eq!((cell.edges.len(), cell.services.len()), (20, 20));
    let names: Vec<&str> = cell.edges[..4].iter().map(|edge| edge.to.as_str()).collect();
    assert_eq!(
        names,
        ["tenant-1/b1", "tenant-1/b2", "tenant-1/c", "tenant-1/c"],
        "in the order of the topology"
    );
    let per_s = |service: &ServiceSummary| service.requests_per_s.unwrap().estimate;
    let [a, b1, b2, c] = &cell.services[..4] else { panic!("four services") };
    assert!((per_s(a) - 100.0).abs() < 1e-9, "{a:?}");
    assert!((per_s(c) / (per_s(b1) + per_s(b2)) - 1.0).abs() < 0.01);
    assert!((per_s(c) / (2.0 * per_s(a)) - 1.0).abs() < 0.01);
    let into_c: f64 = cell
        .edges
        .iter()
        .filter(|edge| edge.to == "tenant-1/c")
        .map(|edge| edge.requests_per_s.unwrap().estimate)
        .sum();
    assert!((into_c / per_s(c) - 1.0).abs() < 1e-9, "edges count as services do");
    let edge = find(&cell.edges, "tenant-1/a", "tenant-1/b1");
    let times = edge.response_time_us.unwrap();
    let (p50, p99) = (times.p50.unwrap(), times.p99.unwrap());
    assert_eq!((p50.n, edge.errors, edge.proven), (5, 0.0, true));
    assert!(p50.low.unwrap() < 204.0 && 204.0 < p50.high.unwrap(), "{times:?}");
    assert!(p99.estimate > p50.estimate);
}

#[test]
fn calls_without_response_rank_slowest() {
    let (experiment, mut trials) = tiered(|_, _, _| {});
    let lost = |edge: &mut EdgeRecord| {
        let mut times = LatencyHistogram::new();
        (0..950).for_each(|_| times.record(Duration::from_micros(200)));
        edge.failed = 50;
        edge.response_time_us = Some(times.summary_with(50));
    };
    lost(&mut trials[1].edges[0]);
    let summary = summary(&experiment, &trials);
    let times = summary.cells[0].edges[0].response_time_us.expect("most calls were answered");
    assert!(times.p50.is_some() && times.p99.is_none() && times.max.is_none(), "{times:?}");
    assert!(times.censored(Figure::P99).is_some() && times.censored(Figure::P50).is_none());
}

#[test]
fn pod_proxies_belong_to_service_and_shared_proxies_do_not() {
    let (experiment, mut trials) = tiered(|_, _, _| {});
    for trial in &mut trials {
        trial.components.retain(|usage| usage.name != "tenant-5/c-proxy");
    }
    let summary = summary(&experiment, &trials);
    let services = &summary.cells[0].services;
    assert!(services[..19].iter().all(|service| {
        let (own, proxies) = (service.cpu_cores.unwrap(), service.proxy_cpu_cores.unwrap());
        (own.estimate - 0.05).abs() < 1e-9 && (proxies.estimate - 0.1).abs() < 1e-9 && proxies.n == 5
    }));
    assert_eq!(services[19].proxy_cpu_cores, None);
}

#[test]
fn failures_count_in_all_trials_and_proof_in_valid_trials() {
    let (experiment, mut trials) = tiered(|tenant, index, driver| {
        if tenant == 2 && index == 0 {
            spoil(driver, "schedule-lag: late");
        }
    });
    trials[0].edges[4].failed = SENT / 2;
    // For tenant 3, in a valid trial.
    let unproven = EdgeProof {
        from: "tenant-3/b1".to_owned(),
        to: "tenant-3/c".to_owned(),
        proven: false,
        reasons: vec!["nothing was counted".to_owned()],
    };
    trials[1].path.edges = vec![unproven.clone()];
    // And for tenant 4, in the trial that is not valid.
    trials[0].path.edges =
        vec![EdgeProof { from: "tenant-4/b1".to_owned(), to: "tenant-4/c".to_owned(), ..unproven }];
    let summary = summary(&experiment, &trials);
    let edges = &summary.cells[0].edges;
    let spoiled = find(edges, "tenant-2/a", "tenant-2/b1");
    assert_eq!(spoiled.requests_per_s.unwrap().n, 4, "its own driver was late once");
    assert!((spoiled.errors - 0.1).abs() < 1e-9, "{}", spoiled.errors);
    assert_eq!(find(edges, "tenant-1/a", "tenant-1/b1").requests_per_s.unwrap().n, 5);
    let unproven: Vec<&str> =
        edges.iter().filter(|edge| !edge.proven).map(|edge| edge.from.as_str()).collect();
    assert_eq!(unproven, ["tenant-3/b1"]);
}

#[test]
fn edges_without_measured_times_have_only_counts() {
    let (experiment, mut trials) = tiered(|_, _, _| {});
    for edge in trials.iter_mut().flat_map(|trial| &mut trial.edges) {
        edge.response_time_us = None;
        edge.requests = 0;
    }
    let summary = summary(&experiment, &trials);
    let edge = &summary.cells[0].edges[0];
    assert_eq!((edge.response_time_us, edge.requests_per_s.unwrap().estimate, edge.errors), (None, 0.0, 0.0));
}

/// The same trials with sidecars: calls to `b2` take 600 µs instead of 200, and `c` and its sidecar use one
/// core more.
fn with_sidecars(trials: &[TrialRecord]) -> Vec<TrialRecord> {
    let slower = |trial: &TrialRecord| {
        let mut trial = TrialRecord { mode: Mode::Sidecar, index: trial.index + 5, ..trial.clone() };
        for edge in &mut trial.edges {
            let median_us = if edge.to.ends_with("/b2") { 600.0 } else { 300.0 } + trial.repeat as f64;
            edge.response_time_us = Some(result(100.0, median_us).response_time_us);
        }
        for usage in trial.components.iter_mut().filter(|usage| usage.name.ends_with("/c-proxy")) {
            usage.cpu_user_s += WINDOW_S / 5.0 * (1.0 + 0.01 * trial.repeat as f64);
        }
        trial
    };
    trials.iter().chain(&trials.iter().map(slower).collect::<Vec<_>>()).cloned().collect()
}

fn slowest_driver(summary: &Summary) -> &OfCell<Greatest> {
    let found = summary.findings.iter().find_map(|stated| match &stated.finding {
        Finding::SlowestDriver(driver) if driver.place.mode == Mode::None => Some(driver),
        _ => None,
    });
    found.expect("five drivers")
}

fn added_time(summary: &Summary, mode: Mode) -> Option<&OfCell<GreatestAdded>> {
    summary.findings.iter().find_map(|stated| match &stated.finding {
        Finding::GreatestAddedTime(added) if added.place.mode == mode => Some(added),
        _ => None,
    })
}

fn added_cpu(summary: &Summary, mode: Mode) -> Option<&OfCell<GreatestAdded>> {
    summary.findings.iter().find_map(|stated| match &stated.finding {
        Finding::GreatestAddedCpu(added) if added.place.mode == mode => Some(added),
        _ => None,
    })
}

#[test]
fn slowest_driver_is_named_only_if_interval_shows_it() {
    let (experiment, trials) = tiered(|_, _, _| {});
    let slow = summary(&experiment, &trials);
    let OfCell { trials, content: named, .. } = slowest_driver(&slow);
    assert_eq!(
        (named.subject.as_str(), named.verdict, *trials),
        ("tenant-5/generator", FindingVerdict::Shown, Trials { n: 5, of: 5 })
    );
    assert_eq!((named.value.figure, named.candidates), (Metric::ResponseTimeP99Us, 5));
    assert!(named.difference.low.unwrap() > 1400.0 && named.value.value > 2200.0, "{named:?}");

    // Drivers differ only by chance: another one is the slowest each time.
    let (experiment, trials) = tiered(|tenant, index, driver| {
        driver.result =
            Some(result(100.0, 500.0 + if tenant == index + 1 { 60.0 } else { 3.0 * tenant as f64 }));
    });
    let alike = summary(&experiment, &trials);
    let named = &slowest_driver(&alike).content;
    assert_eq!(named.verdict, FindingVerdict::NotShown, "{named:?}");
}

#[test]
fn call_and_service_with_largest_increase_are_named_across_namespaces() {
    let (experiment, trials) = tiered(|_, _, _| {});
    let repeats_5 = summary(&experiment, &with_sidecars(&trials));
    let GreatestAdded { greatest: time, against } =
        &added_time(&repeats_5, Mode::Sidecar).expect("calls in both modes").content;
    assert_eq!((time.subject.as_str(), time.candidates, *against), ("a → b2", 4, Mode::None));
    assert_eq!(time.verdict, FindingVerdict::Shown);
    assert!((time.difference.estimate - 398.0).abs() < 5.0, "{time:?}");
    let cpu = &added_cpu(&repeats_5, Mode::Sidecar).expect("services in both modes").content.greatest;
    assert_eq!((cpu.subject.as_str(), cpu.candidates, cpu.verdict), ("c", 4, FindingVerdict::Shown));
    assert!((cpu.difference.estimate - 1.02).abs() < 1e-6, "five copies together: {cpu:?}");
    assert_eq!(added_time(&repeats_5, Mode::None), None);

    let single = summary(&experiment, &with_sidecars(&trials[..1]));
    let time = &added_time(&single, Mode::Sidecar).expect("calls in both modes").content.greatest;
    assert_eq!((time.verdict, time.difference.low), (FindingVerdict::CannotTell, None));
}

#[test]
fn run_with_one_driver_and_no_calls_has_no_graph_findings() {
    let (experiment, mut trials) = tiered(|_, _, _| {});
    for trial in &mut trials {
        trial.drivers.clear();
        trial.services.clear();
        trial.edges.clear();
    }
    let without = summary(&experiment, &with_sidecars(&trials));
    for kind in [FindingKind::SlowestDriver, FindingKind::GreatestAddedTime, FindingKind::GreatestAddedCpu] {
        assert!(without.findings.iter().all(|stated| stated.finding.kind() != kind), "{kind:?}");
    }
}

const NOISE: &str = "other-processes: others took 0.80 cores (cc 0.80)";

/// Tenant 2 disturbed in trials 1 to 3.
fn disturbed() -> (Experiment, Vec<TrialRecord>) {
    let (experiment, mut trials) = tiered(|tenant, index, driver| {
        if tenant == 2 && (1..4).contains(&index) {
            spoil(driver, NOISE);
        }
    });
    for (index, trial) in trials.iter_mut().enumerate() {
        let top_other_processes = vec![TopProcess { name: "cc".to_owned(), cpu_cores: 0.8 + index as f64 }];
        let other_processes_cores = 0.8 + index as f64;
        trial.machine =
            Some(MachineUsage { other_processes_cores, top_other_processes, ..Default::default() });
    }
    (experiment, trials)
}

#[test]
fn disturbed_figures_of_drivers_services_and_calls_are_beside_their_estimates() {
    let (experiment, trials) = disturbed();
    let cell = &summary(&experiment, &trials).cells[0];
    let of_cell = cell.disturbed.as_ref().expect("trials were disturbed");
    assert_eq!((of_cell.trials, of_cell.reasons["other-processes"]), (3, 3));
    assert_eq!(of_cell.other_processes_cores, Some([1.8, 3.8]));
    assert_eq!(of_cell.programs, [TopProcess { name: "cc".to_owned(), cpu_cores: 3.8 }]);
    let is_of_tenant = |name: &str| name == "tenant-2" || name.starts_with("tenant-2/");
    for service in &cell.services {
        let n = service.requests_per_s.expect("two trials are sound").n;
        if !is_of_tenant(&service.namespace) {
            assert!(n == 5 && service.disturbed.is_empty(), "{service:?}");
            continue;
        }
        let rate = service.disturbed["requests_per_s"];
        assert_eq!((n, rate.n), (2, 3));
        assert!((rate.value - service.requests_per_s.unwrap().estimate).abs() < 1e-9, "{service:?}");
        assert!((service.disturbed["proxy_cpu_cores"].value - 0.1).abs() < 1e-9);
    }
    let edge = find(&cell.edges, "tenant-2/a", "tenant-2/b1");
    let p50 = edge.disturbed["response_time_p50_us"];
    assert!(p50.least < 203.0 && p50.greatest > 205.0 && (p50.value - 204.0).abs() < 1.0, "{p50:?}");
    assert!(find(&cell.edges, "tenant-3/a", "tenant-3/b1").disturbed.is_empty());
    let drivers: Vec<usize> = cell.drivers.iter().map(|driver| driver.disturbed.len()).collect();
    assert_eq!(drivers, [0, 4, 0, 0, 0]);
}

#[test]
fn accepted_noise_is_in_the_estimates_and_counted() {
    let (experiment, mut trials) = disturbed();
    trials[4].verdict.spoil_by_path("nothing was counted");
    trials[4].drivers.iter_mut().for_each(|driver| driver.verdict.spoil_by_path("nothing was counted"));
    let (summary, accepted) = crate::summarize_accepting_noise(&experiment, 1, 5, &Host::default(), &trials);
    let noise = summary.noise_accepted.as_ref().expect("the user's word is recorded");
    assert_eq!((noise.trials, noise.of, noise.reasons["other-processes"]), (3, 5, 3));
    let cell = &summary.cells[0];
    assert_eq!((cell.valid, cell.noise_accepted, &cell.disturbed), (4, 3, &None));
    assert!(cell.services.iter().all(|service| service.requests_per_s.unwrap().n == 4));
    assert!(cell.edges.iter().all(|edge| edge.response_time_us.unwrap().p99.unwrap().n == 4));
    let notes: Vec<usize> = accepted.iter().map(|trial| trial.verdict.notes.len()).collect();
    assert_eq!(notes, [0, 1, 1, 1, 0], "a note per trial that it changed");
}
