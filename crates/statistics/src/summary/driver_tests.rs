//! Drivers and services of trials with several of each.

use super::*;
use crate::merge_drivers;
use crate::objective::{ObjectiveOutcome, objective_met};
use experiment::Protocol;
use experiment::environment::ServerSettings;
use experiment::topology::{Resources, pair};
use experiment::{Objective, Plan};
use results::{
    ComponentUsage, DriverObjective, DriverRecord, DriverSummary, Estimate, Figure, Figures, LOAD_SCHEMA,
    LatencyHistogram, LoadPoint, LoadResult, PathProof, Rates, RequestCounts, ResourceGroup, Retake, Role,
    ServiceRecord, ServiceSummary, TRIAL_SCHEMA, TrialOutcome, Verdict, WarmupCounts,
};
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) const EXPERIMENT: &str = "{name: t, modes: [none], load: {rate: 100, duration: 10s, warmup: 2s}, repeats: 5, \
                          objective: {p99: 2ms, errors: 1%}}";
pub(super) const WINDOW_S: f64 = 10.0;
pub(super) const WARMUP_REQUESTS: u64 = 200;

pub(super) fn result(rate: f64, median_us: f64) -> LoadResult {
    let mut times = LatencyHistogram::new();
    let count = (rate * WINDOW_S) as u64;
    for request in 0..count {
        let us = median_us * (0.5 + request as f64 / count as f64);
        times.record(Duration::from_nanos((us * 1000.0) as u64));
    }
    LoadResult {
        schema: LOAD_SCHEMA.to_owned(),
        started_at: "2026-11-20T10:00:01Z".to_owned(),
        duration_s: WINDOW_S,
        rate: Rates { offered: Some(rate), sent: rate, completed: rate },
        requests: RequestCounts { scheduled: count, sent: count, completed: count, ..Default::default() },
        warmup: WarmupCounts { sent: WARMUP_REQUESTS, completed: WARMUP_REQUESTS, ..WarmupCounts::default() },
        response_time_us: times.summary(),
        service_time_us: times.summary(),
        verdict: Verdict { valid: true, ..Verdict::default() },
        ..LoadResult::default()
    }
}

pub(super) fn driver(tenant: usize, median_us: f64) -> DriverRecord {
    DriverRecord {
        fleet: None,
        name: format!("tenant-{tenant}/generator"),
        namespace: format!("tenant-{tenant}"),
        target: format!("tenant-{tenant}/a"),
        result: Some(result(100.0, median_us)),
        verdict: Verdict { valid: true, ..Verdict::default() },
    }
}

/// `a` receives what the driver sends, `c` twice as much: 2 pods each, with 0.05 cores per pod.
fn services(tenant: usize) -> [ServiceRecord; 2] {
    let requests = 1000 + WARMUP_REQUESTS;
    [("a", requests), ("c", 2 * requests)].map(|(name, requests)| ServiceRecord {
        name: name.to_owned(),
        namespace: format!("tenant-{tenant}"),
        replicas: 2,
        requests: Some(requests),
        requests_per_s: None,
        components: (1..=2).map(|pod| format!("tenant-{tenant}/{name}-{pod}")).collect(),
    })
}

/// The result of a trial and its drivers, in the form in which a trial stores them.
fn stored(mut drivers: Vec<DriverRecord>) -> (Option<LoadResult>, Vec<DriverRecord>) {
    if let [driver] = drivers.as_mut_slice() {
        return (driver.result.take(), drivers);
    }
    let part = |driver: &DriverRecord| {
        Some(crate::merge::MergeInput { name: driver.name.clone(), result: driver.result.clone()? })
    };
    let result = merge_drivers(drivers.iter().filter_map(part).collect());
    (result.expect("results that can be added up"), drivers)
}

pub(super) fn trial(load: &LoadPoint, index: usize, drivers: Vec<DriverRecord>) -> TrialRecord {
    let services: Vec<ServiceRecord> = (1..=drivers.len()).flat_map(services).collect();
    let pods = services.iter().flat_map(|service| &service.components);
    let components = pods
        .map(|pod| ComponentUsage { cpu_user_s: 0.5, ..ComponentUsage::new(pod, Role::App, WINDOW_S) })
        .collect();
    let mut verdict = Verdict::usable();
    for reason in drivers.iter().flat_map(|driver| &driver.verdict.reasons) {
        verdict.spoil(reason, Figures::all());
    }
    let (result, drivers) = stored(drivers);
    TrialRecord {
        schema: TRIAL_SCHEMA.to_owned(),
        index,
        repeat: index,
        mode: Mode::None,
        factors: results::Factors::new(),
        load: load.clone(),
        started_at: "2026-11-20T10:00:00Z".to_owned(),
        deployment: None,
        outcome: TrialOutcome::Finished,
        verdict,
        result,
        drivers,
        services,
        edges: Vec::new(),
        gateways: Vec::new(),
        rates: None,
        components,
        path: PathProof { proven: true, ..PathProof::default() },
        machine: None,
        nodes: Vec::new(),
        log_tails: BTreeMap::new(),
        hints: Vec::new(),
        push: None,
        further_domain: None,
        versions: Vec::new(),
        proxies: None,
        retake: None,
    }
}

/// Five tenants, the fifth three times as slow, in five trials. `change` is called for each driver with its
/// tenant and trial.
pub(super) fn five_tenants(
    change: impl Fn(usize, usize, &mut DriverRecord),
) -> (Experiment, Vec<TrialRecord>) {
    let experiment = Experiment::parse(EXPERIMENT, "test").expect("a good experiment");
    let load = Plan::new(&experiment, 1).trials[0].load.clone();
    let trials = (0..5).map(|index| {
        let drivers = (1..=5).map(|tenant| {
            let median_us = if tenant == 5 { 1500.0 } else { 500.0 } + 3.0 * (index % 3) as f64;
            let mut driver = driver(tenant, median_us + tenant as f64);
            change(tenant, index, &mut driver);
            driver
        });
        trial(&load, index, drivers.collect())
    });
    let trials = trials.collect();
    (experiment, trials)
}

pub(super) fn summary(experiment: &Experiment, trials: &[TrialRecord]) -> Summary {
    summarize(experiment, 1, 5, &Host::default(), trials)
}

pub(super) fn spoil(driver: &mut DriverRecord, reason: &str) {
    driver.verdict.spoil(reason, Figures::all());
}

fn objectives(drivers: &[DriverSummary]) -> Vec<DriverObjective> {
    drivers.iter().filter_map(|driver| driver.objective).collect()
}

fn p99(driver: &DriverSummary) -> Estimate {
    driver.response_time_us.and_then(|times| times.p99).expect("a valid trial")
}

#[test]
fn each_driver_and_service_has_own_estimates() {
    let (experiment, trials) = five_tenants(|_, _, _| {});
    let summary = summary(&experiment, &trials);
    let cell = &summary.cells[0];
    assert_eq!((cell.valid, cell.drivers.len(), cell.services.len()), (5, 5, 10));
    assert!((cell.rate_completed.unwrap().estimate - 500.0).abs() < 1e-9, "the sum of all");
    for driver in &cell.drivers {
        assert_eq!((driver.valid, driver.verdict.as_str()), (5, VALID));
        assert_eq!(
            driver.rate_completed,
            Some(Estimate { estimate: 100.0, low: Some(100.0), high: Some(100.0), n: 5, alone: None })
        );
    }
    assert!(p99(&cell.drivers[4]).low.unwrap() > 2.0 * p99(&cell.drivers[0]).high.unwrap());
    let [a, c] = [&cell.services[0], &cell.services[1]];
    assert_eq!(
        (a.namespace.as_str(), a.name.as_str(), a.replicas, a.cpu_cores.unwrap().n),
        ("tenant-1", "a", 2, 5)
    );
    assert!((a.cpu_cores.unwrap().estimate - 0.1).abs() < 1e-9, "both pods together");
    // 1200 requests in 12 s, warm-up included, of which 1000 in the window of 10 s.
    let per_s = |service: &ServiceSummary| service.requests_per_s.unwrap().estimate;
    assert!((per_s(a) - 100.0).abs() < 1e-9 && (per_s(c) - 200.0).abs() < 1e-9, "{a:?} {c:?}");
}

#[test]
fn reservations_are_reported_with_usage() {
    let resources = Resources {
        cpu_request_cores: Some(0.7),
        memory_request_bytes: Some(500 << 20),
        ..Resources::default()
    };
    let mut topology = pair(5, 2, Protocol::default(), &ServerSettings::default(), false, None);
    for workload in topology.workloads.iter_mut().filter(|workload| workload.serves()) {
        workload.resources = resources;
    }
    let (_, mut trials) = five_tenants(|_, _, _| {});
    for trial in &mut trials {
        trial.mode = Mode::Ambient;
        let proxies = [("ztunnel", Role::Proxy, "ztunnel"), ("tenant-1-waypoint", Role::Proxy, "waypoint")];
        let others = [("istiod", Role::ControlPlane, "istio"), ("etcd", Role::ControlPlane, "istio")];
        trial.components.extend(proxies.into_iter().chain(others).map(|(name, role, pod)| ComponentUsage {
            pod: Some(pod.to_owned()),
            cpu_user_s: 1.0,
            memory_working_set_bytes: Some(10 << 20),
            ..ComponentUsage::new(name, role, WINDOW_S)
        }));
    }
    trials[3..].iter_mut().for_each(|trial| trial.verdict.valid = false);
    let all: Vec<&TrialRecord> = trials.iter().collect();
    let summary = reservation::reservation(&topology, &all).expect("components were observed");
    // Only the pods of the mesh have a name in the fixture. etcd belongs to a cluster, not to the mesh.
    assert_eq!((summary.namespaces, summary.services, summary.workloads, summary.pods), (5, 5, 10, 3));
    assert_eq!((summary.containers, summary.proxies), (20 + 3, 2));
    let app = summary.group(ResourceGroup::App).unwrap();
    assert!((app.reserved_cpu_cores - 10.0 * 0.7).abs() < 1e-9 && app.containers == 20);
    assert_eq!((app.used_cpu_cores.unwrap().n, app.used_memory_bytes), (3, None));
    let mesh = summary.group(ResourceGroup::Mesh).unwrap();
    assert!((mesh.reserved_cpu_cores - (0.5 + 0.1 + 0.5)).abs() < 1e-9, "{mesh:?}");
    assert!((mesh.reserved_memory_bytes / 1_048_576.0 - (2048.0 + 128.0 + 2048.0)).abs() < 1e-6);
    assert!((mesh.used_cpu_cores.unwrap().estimate - 0.3).abs() < 1e-9);
    assert!((mesh.used_memory_bytes.unwrap().estimate / 1_048_576.0 - 30.0).abs() < 1e-9);
    assert!(summary.is_reserved() && summary.group(ResourceGroup::Generators).is_none());
}

#[test]
fn spoiled_driver_does_not_spoil_others() {
    let (experiment, trials) = five_tenants(|tenant, index, driver| {
        if tenant == 2 && index < 3 {
            spoil(driver, "schedule-lag: late");
        }
    });
    let summary = summary(&experiment, &trials);
    let cell = &summary.cells[0];
    assert_eq!((cell.valid, cell.verdict.as_str()), (2, "schedule-lag"));
    assert_eq!(cell.response_time_us.unwrap().p99.unwrap().n, 2, "all drivers together need all of them");
    let valid: Vec<usize> = cell.drivers.iter().map(|driver| driver.valid).collect();
    assert_eq!(valid, [5, 2, 5, 5, 5]);
    assert_eq!(cell.drivers[1].verdict, "schedule-lag");
    assert_eq!((p99(&cell.drivers[1]).n, p99(&cell.drivers[2]).n), (2, 5));
    let of_services: Vec<usize> =
        cell.services.iter().map(|service| service.requests_per_s.unwrap().n).collect();
    assert_eq!(of_services, [5, 5, 2, 2, 5, 5, 5, 5, 5, 5]);
}

#[test]
fn driver_without_result_is_listed_without_figures() {
    let (experiment, trials) = five_tenants(|tenant, _, driver| {
        if tenant == 3 {
            driver.result = None;
            spoil(driver, "failed: the generator was ended by signal 9");
        }
    });
    assert_eq!(trials[0].result.as_ref().unwrap().requests.sent, 4000, "the sum of those that have one");
    let summary = summary(&experiment, &trials);
    let driver = &summary.cells[0].drivers[2];
    assert_eq!((driver.valid, driver.verdict.as_str()), (0, "failed"));
    assert_eq!((driver.response_time_us, driver.rate_completed), (None, None));
    assert_eq!(driver.objective, Some(DriverObjective::NotShown));
    assert_eq!(summary.cells[0].services[4].requests_per_s, None);
}

#[test]
fn objective_is_met_missed_or_not_shown_by_interval() {
    use DriverObjective::{Met, Missed, NotShown};
    let (experiment, trials) = five_tenants(|tenant, index, driver| match tenant {
        // Its p99 is 1.49 times the median: alternately about 1.5 ms and 3 ms.
        2 => driver.result = Some(result(100.0, if index % 2 == 0 { 1000.0 } else { 2000.0 })),
        3 => driver.result.as_mut().unwrap().requests.failed = 50,
        4 if index == 0 => spoil(driver, "saturated: 50/s completed of 100/s offered"),
        5 => driver.result = Some(result(100.0, 5000.0)),
        _ => {}
    });
    let summary = summary(&experiment, &trials);
    assert_eq!(objectives(&summary.cells[0].drivers), [Met, NotShown, Missed, Missed, Missed]);
    let ObjectiveOutcome::Failed(misses) = objective_met(&experiment, &summary) else {
        panic!("{:?}", summary.cells[0].drivers)
    };
    let drivers = misses.iter().find(|miss| miss.contains("drivers")).expect("they are told");
    assert!(
        drivers.contains("3 of 5 drivers missed it, the slowest tenant-5/generator (p99 7.4"),
        "{drivers}"
    );

    let asks_nothing = Experiment { objective: Objective::default(), ..experiment };
    let (_, trials) = five_tenants(|_, _, _| {});
    assert!(objectives(&self::summary(&asks_nothing, &trials).cells[0].drivers).is_empty());
}

#[test]
fn bounds_of_mean_and_max_apply_per_driver() {
    use DriverObjective::{Met, Missed};
    let (experiment, trials) = five_tenants(|tenant, index, driver| {
        let result = driver.result.as_mut().unwrap();
        match tenant {
            // One slow request in one trial, which no interval would show.
            2 if index == 3 => result.response_time_us.max = Some(9000.0),
            // A request without a response is slower than any bound.
            3 if index == 1 => {
                (result.response_time_us.censored, result.response_time_us.max) = (1, None);
            }
            _ => {}
        }
    });
    let objective: Objective = "mean=1ms,max=2ms".parse().unwrap();
    let experiment = Experiment { objective, ..experiment };
    let summary = summary(&experiment, &trials);
    let drivers = &summary.cells[0].drivers;
    assert_eq!(objectives(drivers), [Met, Missed, Missed, Met, Missed]);
    assert_eq!(drivers[1].response_time_us.unwrap().max, Some(Estimate { n: 5, ..Estimate::single(9000.0) }));
    assert_eq!(drivers[2].response_time_us.unwrap().max, None);
    let ObjectiveOutcome::Failed(misses) = objective_met(&experiment, &summary) else {
        panic!("{drivers:?}")
    };
    let text = misses.join("\n");
    assert!(
        text.contains("3 of 5 drivers missed it, the slowest tenant-2/generator (max 9.00 ms)"),
        "{text}"
    );
}

#[test]
fn single_trial_does_not_show_objective() {
    let (experiment, mut trials) = five_tenants(|_, _, _| {});
    trials.truncate(1);
    let drivers = &summary(&experiment, &trials).cells[0].drivers;
    assert_eq!(objectives(drivers), [DriverObjective::NotShown; 5]);
}

#[test]
fn driver_has_one_value_per_repeat_with_several_takes() {
    let late = "schedule-lag: late";
    let (experiment, mut trials) = five_tenants(|tenant, index, driver| {
        if tenant == 2 && index == 1 {
            spoil(driver, late);
        }
    });
    let again = TrialRecord {
        index: 5,
        repeat: 1,
        retake: Some(Retake { take: 2, of: 1, because: vec![late.to_owned()] }),
        ..trials[0].clone()
    };
    // A take after a valid one counts for no driver.
    let superfluous = TrialRecord {
        index: 6,
        repeat: 0,
        retake: Some(Retake { take: 2, of: 0, because: Vec::new() }),
        ..trials[1].clone()
    };
    trials.extend([again, superfluous]);
    let summary = summary(&experiment, &trials);
    let drivers = &summary.cells[0].drivers;
    assert!(drivers.iter().all(|driver| driver.valid == 5 && p99(driver).n == 5), "{drivers:?}");
    assert!(summary.cells[0].services.iter().all(|service| service.requests_per_s.unwrap().n == 5));
}

#[test]
fn single_driver_is_stored_once_and_has_the_figures_of_its_cell() {
    let (experiment, trials) = five_tenants(|_, _, _| {});
    let load = &trials[0].load;
    let trials: Vec<TrialRecord> = (0..5).map(|index| trial(load, index, vec![driver(1, 500.0)])).collect();
    let text = serde_json::to_string(&trials[0]).expect("a trial is plain data");
    assert_eq!(text.matches("\"response_time_us\"").count(), 1, "its histograms stand once");

    let summary = summary(&experiment, &trials);
    let cell = &summary.cells[0];
    assert_eq!(cell.drivers.len(), 1);
    assert_eq!(cell.drivers[0].response_time_us, cell.response_time_us);
    assert_eq!(cell.drivers[0].rate_completed, cell.rate_completed);
    assert!((cell.services[0].requests_per_s.unwrap().estimate - 100.0).abs() < 1e-9);
}

#[test]
fn requests_sent_after_the_window_are_in_no_rate_of_a_service() {
    let (experiment, trials) = five_tenants(|_, _, _| {});
    let behind_at_end = |index| {
        let mut driver = driver(1, 500.0);
        driver.result.as_mut().expect("drivers have results here").requests.late = 100;
        trial(&trials[0].load, index, vec![driver])
    };
    let summary = summary(&experiment, &(0..5).map(behind_at_end).collect::<Vec<_>>());
    // 1200 requests in all, of which 900 in the window of 10 s.
    let rates = summary.cells[0].services.iter().map(|service| service.requests_per_s.unwrap().estimate);
    let rates: Vec<f64> = rates.collect();
    assert!((rates[0] - 90.0).abs() < 1e-9 && (rates[1] - 180.0).abs() < 1e-9, "{rates:?}");
}

/// One of twenty requests has no response after half a second: too many for times to be usable.
fn times_out(driver: &mut DriverRecord) {
    let result = driver.result.as_mut().expect("drivers have results here");
    let mut times = LatencyHistogram::new();
    (0..950).for_each(|_| times.record(Duration::from_micros(500)));
    result.response_time_us = times.summary_with(50);
    result.requests.failed = 50;
    result.censored_above_us = Some(500_000.0);
    driver.verdict.spoil("errors: 5 % of the requests failed", Figures::times());
}

#[test]
fn percentile_beyond_every_response_is_reported_despite_errors() {
    let (experiment, trials) = five_tenants(|tenant, index, driver| {
        if tenant == 1 || tenant == 2 && index == 0 {
            times_out(driver);
        }
    });
    let of_driver =
        |tenant: usize| summary(&experiment, &trials).cells[0].drivers[tenant - 1].response_time_us;
    let alone: Vec<TrialRecord> = trials
        .iter()
        .map(|trial| {
            let (first, cell) = (trial.drivers[0].clone(), trial.load.clone());
            let verdict = first.verdict.clone();
            TrialRecord { verdict, ..self::trial(&cell, trial.index, vec![first]) }
        })
        .collect();
    let of_cell = summary(&experiment, &alone).cells.remove(0);
    for times in [of_driver(1), of_cell.response_time_us] {
        let times = times.expect("something is known");
        assert_eq!((times.p50, times.p99), (None, None), "nothing is said of half a trial's answers");
        let beyond = times.censored(Figure::P99).expect("beyond the timeout");
        assert_eq!(beyond.above_us, Some(500_000.0));
        assert!(times.censored(Figure::P50).is_none());
    }
    assert_eq!((of_cell.valid, of_cell.objective), (0, Some(DriverObjective::Missed)));
    // Four sound trials count for the median, but not for a tail that the fifth lost.
    let times = of_driver(2).expect("four are sound");
    assert_eq!((times.p50.map(|median| median.n), times.p99), (Some(4), None));
    assert!(times.censored(Figure::P99).is_some());
}

#[test]
fn maximum_spoiled_by_generator_leaves_objective_open() {
    use DriverObjective::{Met, Missed, NotShown};
    let (experiment, trials) = five_tenants(|tenant, index, driver| {
        if tenant == 1 || tenant == 2 && index > 0 {
            driver.verdict.spoil("schedule-lag: late by 1.2 ms", Figures::times_from(Figure::P99));
        }
    });
    let objective: Objective = "max=2ms".parse().unwrap();
    let experiment = Experiment { objective, ..experiment };
    let summary = summary(&experiment, &trials);
    assert_eq!(objectives(&summary.cells[0].drivers), [NotShown, NotShown, Met, Met, Missed]);
}

#[test]
fn trials_on_wrong_path_leave_objective_open() {
    let (experiment, mut trials) = five_tenants(|_, _, _| {});
    for trial in &mut trials[..3] {
        trial.verdict.spoil("path-not-proven: the sidecar counted nothing", Figures::all());
    }
    trials[3].verdict.spoil("other-processes: others took 0.5 cores", Figures::all());
    let experiment = Experiment { objective: "p99=5ms".parse().unwrap(), ..experiment };
    let summary = summary(&experiment, &trials);
    let ObjectiveOutcome::Failed(misses) = objective_met(&experiment, &summary) else {
        panic!("{:?}", summary.cells[0].objective)
    };
    assert!(misses.iter().any(|miss| miss.ends_with("path-not-proven in 3 of 5 trials")), "{misses:?}");
    assert!(!misses.iter().any(|miss| miss.contains("other-processes")), "{misses:?}");
    assert_eq!(summary.cells[0].objective, Some(DriverObjective::NotShown));
}
