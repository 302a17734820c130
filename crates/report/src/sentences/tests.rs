//! What runs of known figures are said to have found.

use experiment::schema::finding::figures;
use experiment::schema::{
    ComponentUsage, ConfigurationCounts, ConfigurationPush, EdgeSummary, Estimate, Finding, FindingKind,
    FindingVerdict, HopProof, HopProtocol, Host, LOAD_SCHEMA, LoadResult, NetworkUsage, PathProof,
    ProxyConfiguration, ProxyHoldings, ProxyProof, Rates, RequestCounts, Retake, Role, Summary, TRIAL_SCHEMA,
    TrialOutcome, TrialRecord, UnavailableMode, Verdict,
};
use experiment::{Experiment, Mode, Plan, PlannedTrial};
use statistics::{LatencyHistogram, objective_met};
use std::collections::BTreeMap;
use std::time::Duration;

/// A summary whose findings have their texts.
fn summarize(
    experiment: &Experiment,
    seed: u64,
    planned: usize,
    host: &Host,
    trials: &[TrialRecord],
) -> Summary {
    let mut summary = statistics::summarize(experiment, seed, planned, host, trials);
    super::fill(experiment, &mut summary);
    summary
}

const THREE_MODES: &str = "{name: t, question: 'What does a sidecar cost?', modes: [none, gateway, sidecar], \
                           load: {rate: [500, 1000], duration: 2500ms}, repeats: 5, \
                           published: {source: Somebody 1.2, differs: hardware, figures: [\
                           {figure: cpu, mode: sidecar, rate: 1000, value: 0.20}, \
                           {figure: memory, mode: sidecar, component: server-proxy, value: 60MB}, \
                           {figure: p99, mode: gateway, rate: 500, value: 1ms}, \
                           {figure: added-p90, mode: sidecar, rate: 1000, value: 2.5ms}, \
                           {figure: added-p90, mode: sidecar, rate: 750, value: 2.2ms}, \
                           {figure: cpu, mode: ambient, rate: 1000, value: 0.06}]}}";

/// Median response time of a mode in a repeat, microseconds.
fn median_us(mode: Mode, repeat: usize) -> f64 {
    let base = match mode {
        Mode::None => 62.0,
        Mode::Gateway => 190.0,
        _ => 440.0,
    };
    base + [0.0, 4.0, -3.0, 1.0, -2.0][repeat % 5] * base / 100.0
}

/// A histogram of so many requests around a median: 1 in 50 takes five times as long.
fn histogram(count: usize, median_us: f64, stalled_us: Option<f64>) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::new();
    for request in 0..count {
        let share = request as f64 / count as f64;
        let us = match stalled_us {
            Some(stalled_us) if share > 0.9 => stalled_us * (share - 0.9) * 10.0,
            _ if share > 0.98 => median_us * 5.0,
            _ => median_us * (0.5 + share),
        };
        histogram.record(Duration::from_nanos((us * 1000.0) as u64));
    }
    histogram
}

/// A valid trial of a planned one.
fn trial(planned: &PlannedTrial) -> TrialRecord {
    let rate = planned.load.rate.unwrap_or(800.0);
    let count = (rate * planned.duration.as_secs_f64()) as usize;
    let times = histogram(count, median_us(planned.mode, planned.repeat), None).summary();
    let proxies: &[&str] = match planned.mode {
        Mode::None => &[],
        Mode::Gateway => &["gateway"],
        _ => &["client-proxy", "server-proxy"],
    };
    let usage = |name: &str, role, cores: f64| ComponentUsage {
        cpu_user_s: cores * 2.0 * (1.0 + planned.repeat as f64 / 100.0),
        cpu_system_s: cores * 0.5,
        cpu_source: "cgroup-v1".into(),
        // A working set counts a program's pages only for the group that touched them first: the greater of both is held.
        memory_resident_bytes: 41_000_000 + planned.repeat as u64 * 100_000,
        memory_working_set_bytes: Some(15_000_000),
        memory_anonymous_bytes: Some(14_000_000 + planned.repeat as u64 * 100_000),
        network: Some(NetworkUsage { received_bytes: 3_000_000, sent_bytes: 2_500_000 }),
        ..ComponentUsage::of(name, role, 2.5)
    };
    let mut components = vec![usage("generator", Role::Generator, rate * 0.0001)];
    components.extend(proxies.iter().map(|name| usage(name, Role::Proxy, 0.02 + rate * 0.00019)));
    TrialRecord {
        schema: TRIAL_SCHEMA.into(),
        index: planned.index,
        repeat: planned.repeat,
        mode: planned.mode,
        factors: planned.factors.clone(),
        load: planned.load.clone(),
        started_at: "2026-11-20T10:00:00Z".into(),
        deployment: None,
        outcome: TrialOutcome::Finished,
        verdict: Verdict { valid: true, ..Verdict::default() },
        result: Some(LoadResult {
            schema: LOAD_SCHEMA.into(),
            urls: vec!["http://10.0.0.2:8080/".into()],
            started_at: "2026-11-20T10:00:01Z".into(),
            duration_s: 2.5,
            threads: 1,
            connections: 4,
            clients: planned.load.clients,
            rate: Rates { offered: planned.load.rate, sent: rate, completed: rate },
            requests: RequestCounts {
                scheduled: count as u64,
                sent: count as u64,
                completed: count as u64,
                ..RequestCounts::default()
            },
            response_time_us: times.clone(),
            service_time_us: times.clone(),
            schedule_lag_us: times.clone(),
            generator_lag_us: times.clone(),
            connect_time_us: times,
            verdict: Verdict { valid: true, ..Verdict::default() },
            ..LoadResult::default()
        }),
        drivers: Vec::new(),
        services: Vec::new(),
        edges: Vec::new(),
        gateways: Vec::new(),
        rates: None,
        components,
        path: PathProof {
            proven: true,
            proxies: proxies
                .iter()
                .map(|name| ProxyProof {
                    name: (*name).into(),
                    requests_received: count as u64,
                    requests_expected: count as u64,
                    streams: None,
                    tls_handshakes: 4,
                    tls_expected: proxies.len() == 2,
                    takes_plain_text: None,
                    counters: Default::default(),
                })
                .collect(),
            ..PathProof::default()
        },
        machine: None,
        log_tails: Default::default(),
        hints: Vec::new(),
        push: None,
        further_domain: None,
        retake: None,
    }
}

fn invalidate(trial: &mut TrialRecord, reason: &str, saturated: bool) {
    trial.verdict = Verdict { valid: false, saturated, reasons: vec![reason.into()], ..Verdict::default() };
}

/// A run of an experiment, each trial changed as the test wants it.
fn run(text: &str, change: impl Fn(&mut TrialRecord)) -> (Experiment, Summary) {
    let experiment =
        Experiment::parse(text, "test").unwrap_or_else(|error| panic!("{}", error.render(false)));
    let plan = Plan::new(&experiment, 1);
    let mut trials: Vec<TrialRecord> = plan.trials.iter().map(trial).collect();
    trials.iter_mut().for_each(change);
    let summary = summarize(&experiment, 1, plan.trials.len(), &Host::default(), &trials);
    (experiment, summary)
}

/// The sentences, each once.
fn told(summary: &Summary) -> String {
    sentences(summary).join("\n")
}

fn sentences(summary: &Summary) -> Vec<&str> {
    let mut sentences: Vec<&str> = Vec::new();
    for finding in &summary.findings {
        if !sentences.contains(&finding.text.as_str()) {
            sentences.push(&finding.text);
        }
    }
    sentences
}

#[test]
fn a_good_run_tells_its_answer_first() {
    let (experiment, summary) = run(THREE_MODES, |_| {});
    insta::assert_snapshot!(told(&summary));
    assert!(objective_met(&experiment, &summary).is_good());
    let order: Vec<_> = summary.cells.iter().map(|cell| (cell.load.rate.unwrap(), cell.mode)).collect();
    assert_eq!(order[0], (500.0, Mode::None));
    assert_eq!(order[5], (1000.0, Mode::Sidecar));
    let json = serde_json::to_string(&summary).unwrap();
    let again = serde_json::from_str::<Summary>(&json).unwrap().findings;
    let told = |findings: &[Finding]| -> Vec<_> {
        findings.iter().map(|finding| (finding.kind, finding.verdict, finding.text.clone())).collect()
    };
    assert_eq!(told(&again), told(&summary.findings));
    insta::assert_snapshot!(serde_json::to_string_pretty(&summary.published).unwrap());
}

#[test]
fn modes_that_could_not_run_are_told_of_and_their_published_figures_stay() {
    let experiment = Experiment::parse(THREE_MODES, "test").unwrap();
    let refused = |mode| UnavailableMode {
        mode,
        reason: "there is no ztunnel".into(),
        hint: Some("name one with --ztunnel".into()),
    };
    let host = Host {
        refused_modes: vec![refused(Mode::Ambient), refused(Mode::AmbientWaypoint)],
        ..Host::default()
    };
    let summary = summarize(&experiment, 1, 30, &host, &[]);
    assert!(told(&summary).contains(
        "Not measured, and nothing stands in for it: ambient and ambient-waypoint: there is no ztunnel (name one with --ztunnel)."
    ), "{}", told(&summary));
    let ambient = summary.published.iter().find(|figure| figure.what.starts_with("ambient:")).unwrap();
    assert_eq!((ambient.value.as_str(), &ambient.measured, ambient.ratio), ("0.060 cores", &None, None));
}

#[test]
fn estimates_are_those_of_the_trials() {
    let (_, summary) = run(THREE_MODES, |_| {});
    let cell = &summary.cells[5];
    let p50 = cell.response_time_us.unwrap().p50.unwrap();
    assert!((p50.estimate - 440.0).abs() < 5.0, "{p50:?}");
    assert!(p50.low.unwrap() < 440.0 && p50.high.unwrap() > 440.0);
    let added = cell.added_us.unwrap().p50.unwrap();
    assert!((added.estimate - 378.0).abs() < 5.0, "{added:?}");
    let proxy = cell.components.iter().find(|component| component.name == "client-proxy").unwrap();
    assert!((proxy.cpu_cores.estimate - 0.21).abs() < 0.01, "{proxy:?}");
    assert!((proxy.cpu_cores_per_1000_rps.estimate - proxy.cpu_cores.estimate).abs() < 1e-9);
    assert_eq!(proxy.memory_bytes.unwrap().estimate, 41_200_000.0);
    assert_eq!(proxy.network_bytes_received_s.unwrap().estimate, 1_200_000.0);
    assert_eq!(cell.path.mtls, Some(true));
    assert_eq!(summary.cells[4].path.mtls, None, "a gateway claims no mutual TLS");
}

#[test]
fn the_time_until_configuration_is_in_force_is_estimated_for_the_proxy_that_it_is_of() {
    let (_, summary) = run(THREE_MODES, |trial| {
        if trial.mode == Mode::Sidecar {
            let in_force_s = BTreeMap::from([("client-proxy".to_owned(), 0.17)]);
            trial.push = Some(ConfigurationPush { objects: 3, written_s: 0.02, in_force_s });
        }
    });
    let sidecar = summary.cells.iter().find(|cell| cell.mode == Mode::Sidecar).unwrap();
    let time = |name: &str| {
        let component = sidecar.components.iter().find(|component| component.name == name).unwrap();
        component.configured_in_s
    };
    assert!((time("client-proxy").unwrap().estimate - 0.17).abs() < 1e-9);
    assert_eq!(time("server-proxy"), None);
}

#[test]
fn what_the_proxies_hold_before_the_load_is_told_and_what_they_refused() {
    let (_, summary) = run(THREE_MODES, |trial| {
        for usage in trial.components.iter_mut().filter(|usage| usage.role == Role::Proxy) {
            usage.memory_before_load_bytes = Some(38_000_000 + trial.repeat as u64 * 50_000);
            let counts = ConfigurationCounts {
                clusters: Some(41),
                listeners: Some(3),
                routes: Some(80),
                endpoints: Some(60),
                rejected_updates: Some(u64::from(trial.repeat == 2 && usage.name == "server-proxy")),
                ..ConfigurationCounts::default()
            };
            let size_bytes = if usage.name == "client-proxy" { 310_000 } else { 20_000 };
            let configuration = ProxyConfiguration { size_bytes, dump_bytes: 2 * size_bytes, counts };
            usage.holdings =
                Some(ProxyHoldings { configuration: Some(configuration), ..ProxyHoldings::default() });
        }
    });
    let mut findings = sentences(&summary);
    findings.retain(|finding| finding.contains("first request") || finding.contains("rejected"));
    insta::assert_snapshot!(findings.join("\n"));
}

/// A proxy's memory rises by 90 kB with each other service, and a change comes into force later; requests feel nothing.
#[test]
fn what_the_size_of_the_mesh_costs_is_told() {
    let sizes = "{name: t, mesh: istio, modes: [sidecar], load: {rate: [100, 1000], duration: 2500ms}, repeats: 3, \
                 istio: {surroundings: {services: [200, 0, 1000]}}}";
    let grown = |trial: &mut TrialRecord| {
        let services = trial.load.surrounding_services.unwrap() as u64;
        let in_force_s = 0.13 + 0.000_13 * services as f64 + 0.001 * trial.repeat as f64;
        trial.push = Some(ConfigurationPush {
            objects: 3,
            written_s: 0.02,
            in_force_s: BTreeMap::from([("client-proxy".to_owned(), in_force_s)]),
        });
        for usage in trial.components.iter_mut().filter(|usage| usage.role == Role::Proxy) {
            let noise = (trial.index as u64 * 7919) % 13 * 10_000;
            usage.memory_anonymous_before_load_bytes = Some(28_000_000 + 90_000 * services + noise);
        }
    };
    let (_, summary) = run(sizes, grown);
    insta::assert_snapshot!(sentences(&summary)[..3].join("\n"));
    let cells: Vec<_> =
        summary.cells.iter().map(|cell| (&cell.load.surrounding_services, cell.load.rate)).collect();
    assert_eq!(cells.len(), 6);
    assert!(cells.is_sorted_by(|one, other| one.0 <= other.0), "{cells:?}");
    let again: Summary = serde_json::from_str(&serde_json::to_string(&summary).unwrap()).unwrap();
    assert_eq!(again.size_effects.len(), summary.size_effects.len());
    assert!(
        told(&summary)
            .contains("at 100 requests/s among no other services and 0.21 cores at 1000 requests/s among no")
    );
    let one_size = sizes.replace("[200, 0, 1000]", "200");
    let (_, single) = run(&one_size, |_| ());
    assert!(single.size_effects.is_empty() && single.cells[0].load.surrounding_services.is_none());
}

/// Connections cost nothing, workers make proxies faster; the cells of a run with two factors are told apart.
#[test]
fn what_a_hop_costs_is_said_of_each_mode() {
    let text = "{name: t, modes: [none, sidecar], load: {rate: 1000, duration: 2500ms}, repeats: 3, \
                topology: {shape: chain, hops: [1, 2, 4]}}";
    let (_, summary) = run(text, |trial| {
        let hops = trial.factors["topology.hops"].quantity("topology.hops").unwrap();
        let each_us = if trial.mode == Mode::Sidecar { 400.0 } else { 50.0 };
        let result = trial.result.as_mut().unwrap();
        result.response_time_us = histogram(2500, 100.0 + each_us * hops, None).summary();
        result.response_time_us.p50 = Some(100.0 + each_us * hops + (trial.index % 3) as f64);
    });
    let said = |mode: &str, what: &str| {
        let sentences = sentences(&summary).into_iter();
        sentences
            .filter(|finding| finding.contains(&format!("mode {mode} under")))
            .any(|finding| finding.contains("topology.hops 4 instead of 1") && finding.contains(what))
    };
    assert!(said("sidecar", "Each further hop: 0.40 ms"), "{:?}", summary.findings);
    assert!(said("none", "Each further hop: 50 µs"), "{:?}", summary.findings);
}

#[test]
fn findings_name_the_values_of_factors() {
    let text = "{name: t, modes: [none, sidecar], load: {rate: 1000, connections: [2, 16], duration: 2500ms}, repeats: 3, \
                proxy: {workers: [1, 2, 4]}}";
    let faster = |trial: &mut TrialRecord| {
        let workers = trial.factors["proxy.workers"].quantity("proxy.workers").unwrap();
        if trial.mode == Mode::Sidecar {
            let result = trial.result.as_mut().unwrap();
            result.response_time_us = histogram(2500, 600.0 - 50.0 * workers, None).summary();
            let noise = (trial.index * 7919 % 13) as f64 * 0.2;
            result.response_time_us.p50 = result.response_time_us.p50.map(|us| us + noise);
        }
    };
    let (_, summary) = run(text, faster);
    assert_eq!(summary.cells.len(), 2 * 2 * 3);
    assert!(summary.cells.iter().all(|cell| cell.valid == 3 && cell.factors.len() == 2));
    assert_eq!(summary.comparisons.len(), 6);
    let slope = |mode: Mode, connections: &str| {
        let found = summary.factor_effects.iter().find(|effect| {
            (effect.factor.as_str(), effect.mode) == ("proxy.workers", mode)
                && effect.figure == experiment::schema::SizedFigure::ResponseTimeP50Us
                && effect.factors["load.connections"].to_string() == connections
        });
        found.unwrap().per_unit
    };
    for connections in ["2", "16"] {
        assert!((slope(Mode::Sidecar, connections).estimate + 50.0).abs() < 2.0);
        assert!(!slope(Mode::None, connections).excludes_zero());
    }
    assert!(summary.size_effects.is_empty());
    let mut named = sentences(&summary);
    named.retain(|finding| finding.contains("proxy.workers"));
    insta::assert_snapshot!(named.join("\n"));
    let again: Summary = serde_json::from_str(&serde_json::to_string(&summary).unwrap()).unwrap();
    assert_eq!(again.cells[5].factors, summary.cells[5].factors);
}

#[test]
fn memory_that_comes_with_the_load_is_not_called_the_configurations() {
    let (_, summary) = run(THREE_MODES, |trial| {
        for usage in trial.components.iter_mut().filter(|usage| usage.role == Role::Proxy) {
            usage.memory_before_load_bytes = Some(19_000_000);
        }
    });
    let told = told(&summary);
    assert!(told.contains("before the first request") && !told.contains("most of what"), "{told}");
}

#[test]
fn a_rough_run_says_what_is_wrong_with_it() {
    let objective = THREE_MODES.replace("repeats: 5", "repeats: 5, objective: {p99: 1ms, errors: 0.1%}");
    let (experiment, summary) = run(&objective, |trial| {
        if trial.mode == Mode::Sidecar && trial.load.rate == Some(1000.0) {
            invalidate(trial, "saturated: 612 of 1000 requests/s were answered", true);
            trial.result.as_mut().unwrap().rate.completed = 612.0;
        }
        if trial.mode == Mode::Gateway && trial.repeat == 0 {
            invalidate(trial, "generator-lag: 3 ms at the 99th percentile", false);
        }
        if trial.mode == Mode::None && trial.load.rate == Some(500.0) {
            trial.result.as_mut().unwrap().response_time_us = histogram(1250, 60.0, Some(1e6)).summary();
        }
        if trial.mode == Mode::Sidecar && trial.repeat == 1 {
            trial.result.as_mut().unwrap().requests.failed = 30;
        }
    });
    insta::assert_snapshot!(told(&summary));
    assert_eq!(summary.cells[5].verdict, "saturated");
    assert!(summary.cells[5].response_time_us.is_none());
    insta::assert_snapshot!(format!("{:#?}", objective_met(&experiment, &summary)));
}

#[test]
fn saturation_is_not_claimed_where_another_process_took_the_cpu() {
    let (_, summary) = run(THREE_MODES, |trial| {
        if trial.mode == Mode::Sidecar {
            invalidate(trial, "other-processes: others took 1.70 cores (rustc 1.70)", true);
        }
    });
    assert!(told(&summary).contains("other-processes"), "{}", told(&summary));
    assert!(!told(&summary).contains("saturated"), "{}", told(&summary));
}

#[test]
fn no_difference_is_called_so() {
    let (_, summary) = run(THREE_MODES, |trial| {
        let us = 60.0 + ((trial.index * 7) % 11) as f64;
        trial.result.as_mut().unwrap().response_time_us = histogram(2500, us, None).summary();
    });
    assert!(summary.findings[0].text.contains("no difference is shown"), "{}", summary.findings[0].text);
    assert!(!told(&summary).contains("adds"), "{}", told(&summary));
}

#[test]
fn a_single_repeat_and_a_run_cut_short_claim_nothing() {
    let (_, single) = run(&THREE_MODES.replace("repeats: 5", "repeats: 1"), |_| {});
    insta::assert_snapshot!(told(&single));
    assert!(single.cells.iter().all(|cell| cell.response_time_us.unwrap().p50.unwrap().low.is_none()));

    let experiment = Experiment::parse(THREE_MODES, "test").unwrap();
    let nothing = summarize(&experiment, 1, 30, &Host::default(), &[]);
    assert_eq!(nothing.findings[0].text, "Nothing can be said: no trial is valid.");
    assert!(told(&nothing).contains("0 of 30 trials"));
    assert!(nothing.cells.iter().all(|cell| cell.verdict == "not-measured"));
    assert!(!objective_met(&experiment, &nothing).is_good());
}

#[test]
fn closed_loops_and_runs_without_a_floor_have_headlines_too() {
    let (_, closed) = run("{name: c, modes: [none, sidecar], load: {clients: [2, 8]}, repeats: 3}", |_| {});
    assert!(
        closed.findings[0].text.starts_with("With 8 clients in this run a sidecar pair adds"),
        "{}",
        closed.findings[0].text
    );
    let (_, alone) = run("{name: a, modes: [gateway], load: {rate: 900}, repeats: 3}", |_| {});
    insta::assert_snapshot!(alone.findings[0].text, @"At 900 requests/s in this run the median response time through a gateway is 0.19 ms (0.17–0.21); it uses 0.19 cores a proxy.");
    let (_, floor) = run("{name: a, modes: [none], load: {rate: 900}, repeats: 3}", |_| {});
    insta::assert_snapshot!(floor.findings[0].text, @"At 900 requests/s in this run the median response time without a mesh is 62 µs (57–68).");
}

#[test]
fn differences_pair_by_repeat_and_fall_back_where_no_repeat_is_whole() {
    // A machine that slows down by half from repeat to repeat: pairs still agree.
    let slowing = |trial: &mut TrialRecord| {
        let slow = 1.5_f64.powi(i32::try_from(trial.repeat).unwrap());
        let us = if trial.mode == Mode::None { 100.0 * slow } else { 100.0 * slow + 50.0 };
        trial.result.as_mut().unwrap().response_time_us = histogram(2500, us, None).summary();
    };
    let (_, paired) = run(THREE_MODES, slowing);
    let added = paired.cells[5].added_us.unwrap().p50.unwrap();
    assert!(added.excludes_zero() && (added.estimate - 50.0).abs() < 2.0, "{added:?}");

    // Mode none is valid in the first repeats alone, the sidecar in the others.
    let (_, unpaired) = run(THREE_MODES, |trial| {
        if (trial.mode == Mode::None) == (trial.repeat >= 2) {
            invalidate(trial, "steal: 0.3 cores", false);
        }
    });
    let added = unpaired.cells[5].added_us.unwrap().p50.unwrap();
    assert!((added.estimate - 378.0).abs() < 20.0 && added.low.is_some(), "{added:?}");
    assert_eq!(unpaired.cells[3].verdict, "steal");
}

#[test]
fn cells_of_the_plan_are_those_of_the_summary() {
    let (experiment, summary) = run(THREE_MODES, |_| {});
    let planned = experiment::plan::cells(&experiment);
    assert_eq!(planned.len(), summary.cells.len());
    for one in planned {
        assert_eq!(summary.cells.iter().filter(|cell| cell.key() == one.key()).count(), 1);
    }
}

const WAYS_OUT: &str = "{name: t, mesh: istio, modes: [egress-bypass, egress-sidecar, egress-gateway, egress-sni], \
                        load: {clients: [1, 20], duration: 1s}, repeats: 3, \
                        published: {source: A study, differs: everything, figures: [\
                        {figure: throughput, mode: egress-sidecar, to: egress-bypass, clients: 20, value: alike}, \
                        {figure: throughput, mode: egress-bypass, to: egress-sni, clients: 20, value: 50%}, \
                        {figure: throughput, mode: egress-sni, to: egress-bypass, clients: 20, value: -40%}, \
                        {figure: cpu, mode: egress-sni, to: egress-gateway, clients: 20, value: higher}, \
                        {figure: cpu, mode: egress-sidecar, to: egress-gateway, clients: 30, value: lower}]}}";

/// A closed loop in which each mode lets through a share of what its floor does.
fn closed_loop(trial: &mut TrialRecord) {
    let share = match trial.mode {
        Mode::EgressBypass => 1.0,
        Mode::EgressSidecar => 0.99,
        Mode::EgressGateway => 0.8,
        _ => 0.5,
    };
    let noise =
        1.0 + [0.0, 0.02, -0.015][trial.repeat] * if trial.mode == Mode::EgressSidecar { -1.0 } else { 0.3 };
    let rate = 10_000.0 * share * noise;
    trial.result.as_mut().unwrap().rate.completed = rate;
    for component in trial.components.iter_mut().filter(|component| component.role == Role::Proxy) {
        component.cpu_user_s = 2.5 * 0.4 * noise;
        component.cpu_system_s = 0.0;
    }
    trial.machine =
        Some(experiment::schema::MachineUsage { cpus: 2, busy_cores: 1.97, ..Default::default() });
}

#[test]
fn a_closed_loop_is_told_by_what_it_lets_through() {
    let (_, summary) = run(WAYS_OUT, closed_loop);
    insta::assert_snapshot!(told(&summary));
    let comparison = summary
        .comparisons
        .iter()
        .find(|comparison| {
            comparison.load.clients == Some(20)
                && (comparison.mode, comparison.than) == (Mode::EgressSni, Mode::EgressGateway)
        })
        .unwrap();
    let change = comparison.throughput.unwrap();
    assert!((change.estimate + 0.375).abs() < 1e-9, "{change:?}");
    assert!(change.low.unwrap() < -0.374 && change.high.unwrap() > -0.376, "{change:?}");
    // Half of the CPU for 1.6 times as many requests a second, and two proxies in each.
    let cpu = comparison.proxy_cpu_per_request.unwrap();
    assert!((cpu.estimate - 0.6).abs() < 1e-9, "{cpu:?}");
    let total = summary.cells.last().unwrap().totals[0];
    assert_eq!((total.role, total.components), (Role::Proxy, 2));
    assert!((total.cpu_cores.estimate - 0.8).abs() < 0.01, "{total:?}");
}

#[test]
fn relative_figures_of_others_agree_or_not_by_the_interval() {
    let (_, summary) = run(WAYS_OUT, closed_loop);
    let agreement: Vec<(&str, Option<&str>, Option<bool>)> = summary
        .published
        .iter()
        .map(|figure| (figure.value.as_str(), figure.measured.as_deref(), figure.agrees))
        .collect();
    insta::assert_debug_snapshot!(agreement);
    assert!(summary.published.iter().all(|figure| figure.ratio.is_none()), "a ratio of changes says nothing");
}

#[test]
fn an_order_is_claimed_only_as_far_as_intervals_show_it() {
    let text = "{name: t, mesh: istio, modes: [none, sidecar, ambient, ambient-waypoint], \
                load: {rate: [500, 1000], duration: 2500ms}, repeats: 3}";
    let (_, summary) = run(text, |trial| {
        let noise = [0.0, 10.0, -8.0][trial.repeat];
        let median_us = match (trial.mode, trial.load.rate) {
            (Mode::None, _) => 60.0,
            // At the lower rate it cannot be told from no mesh.
            (Mode::Ambient, Some(500.0)) => 62.0 + noise,
            (Mode::Ambient, _) => 110.0 + noise,
            (Mode::Sidecar, _) => 480.0 + noise,
            _ => 475.0 - noise,
        };
        trial.result.as_mut().unwrap().response_time_us = histogram(2000, median_us, None).summary();
    });
    let order = sentences(&summary).into_iter().find(|finding| finding.starts_with("Order in")).unwrap();
    insta::assert_snapshot!(order);
}

#[test]
fn a_node_proxy_of_both_sides_is_one_proxy() {
    let text = "{name: t, mesh: istio, modes: [none, ambient], load: {rate: 1000, duration: 1s}, repeats: 2}";
    let (_, summary) = run(text, |trial| {
        for proof in &mut trial.path.proxies {
            proof.name = "ztunnel".into();
        }
    });
    let told = told(&summary);
    assert!(told.contains("Path of mode ambient: ztunnel, on both sides, saw every request"), "{told}");
}

#[test]
fn a_path_says_what_its_hops_spoke() {
    let text = "{name: t, mesh: istio, modes: [none, sidecar], load: {rate: 1000, duration: 1s}, repeats: 2}";
    let path = |second: HopProtocol| {
        let hop = |from: &str, to: &str, spoken| HopProof {
            from: from.to_owned(),
            to: to.to_owned(),
            spoken: vec![spoken],
            ..HopProof::default()
        };
        let (_, summary) = run(text, |trial| {
            let hops =
                [hop("client", "client-proxy", HopProtocol::Http1), hop("client-proxy", "server", second)];
            trial.path.hops = hops.into();
        });
        told(&summary).lines().find(|line| line.starts_with("Path of")).unwrap().to_owned()
    };
    insta::assert_snapshot!(path(HopProtocol::Http1), @"Path of a sidecar pair: both proxies saw every request, over mutual TLS, by their own counters; every hop spoke HTTP/1.1.");
    insta::assert_snapshot!(path(HopProtocol::Http2), @"Path of a sidecar pair: both proxies saw every request, over mutual TLS, by their own counters; spoken was HTTP/1.1 from client to client-proxy and HTTP/2 from client-proxy to server.");
}

#[test]
fn what_was_left_out_in_many_places_is_told_by_mode() {
    let (_, summary) = run(WAYS_OUT, |trial| invalidate(trial, "other-processes: others took 1 core", false));
    let told = told(&summary);
    assert!(told.contains("other-processes (6 of egress-bypass, 6 of egress-gateway, "), "{told}");
}

#[test]
fn a_trial_that_was_taken_again_counts_once_where_it_stood() {
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
    // Repeat by repeat, so whichever came last.
    assert_eq!(summary.comparisons, undisturbed.comparisons);
    assert_eq!(cell.added_us, undisturbed.cells[5].added_us);
    let told = told(&summary);
    assert!(!told.contains("cut short"), "{told}");
    assert!(
        told.contains(
            "1 of 31 trials is excluded from the estimates: schedule-lag (1 of sidecar, 1000 requests/s).\n1 trial was run \
             again, since the machine had disturbed it (1 of sidecar, 1000 requests/s): 1 of these reruns is valid; 30 of 30 \
             trials are in all."
        ),
        "{told}"
    );
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["retakes"]["taken"], 1);
    let untouched = serde_json::to_value(&undisturbed.cells[5]).unwrap();
    assert!(untouched.get("retakes").is_none());
}

#[test]
fn a_machine_that_is_too_noisy_is_told_of() {
    let text = "{name: t, modes: [none, sidecar], load: {rate: 1000, duration: 1s}, repeats: 2, retakes: 1}";
    let (_, summary) = run(text, |trial| invalidate(trial, "other-processes: others took 1 core", false));
    // None was taken again yet: the run was killed, or there was no time.
    assert!(!summary.retakes.unwrap().too_noisy);
    let experiment = Experiment::parse(text, "test").unwrap();
    let mut trials: Vec<TrialRecord> = Plan::new(&experiment, 1).trials.iter().map(trial).collect();
    trials.iter_mut().for_each(|trial| invalidate(trial, "other-processes: others took 1 core", false));
    let mut again = trials[0].clone();
    again.index = 4;
    again.retake = Some(Retake { take: 2, of: 0, because: again.verdict.reasons.clone() });
    trials.push(again);
    let summary = summarize(&experiment, 1, 4, &Host::default(), &trials);
    assert!(told(&summary).contains("This machine is too noisy for this experiment"), "{}", told(&summary));
}

#[test]
fn a_mode_with_which_the_generator_is_late_more_often_than_by_chance_is_named() {
    let late_with = |modes: &[Mode], repeats: usize| {
        let late = |trial: &mut TrialRecord| {
            if modes.contains(&trial.mode) && trial.repeat < repeats {
                invalidate(trial, "schedule-lag: late", false);
            }
        };
        told(&run(THREE_MODES, late).1)
    };
    // Six of six late trials with one mode of three: by chance one time in 243.
    let told = late_with(&[Mode::Sidecar], 3);
    assert!(
        told.contains("The generator was late in 6 of 10 trials of a sidecar pair and in 0 of all others, more than by chance"),
        "{told}"
    );
    assert!(!late_with(&[Mode::Sidecar], 1).contains("by chance"), "two trials are no sign");
    assert!(!late_with(&[Mode::None, Mode::Gateway, Mode::Sidecar], 3).contains("by chance"));
    assert!(!late_with(&[], 3).contains("by chance"));
}

#[test]
fn drivers_calls_and_services_are_named_as_far_as_their_interval_shows_it() {
    let (_, summary) = run(THREE_MODES, |_| {});
    let said = |kind: FindingKind, verdict: FindingVerdict| {
        let finding = Finding {
            against: Some(Mode::None),
            candidates: Some(5),
            verdict: Some(verdict),
            estimate: Some(Estimate { estimate: 0.5, low: Some(0.4), high: Some(0.6), n: 5 }),
            ..Finding::of_cell(kind, &summary.cells[5]).about("a").with_value(figures::P99, 2.0)
        };
        let mut alone = summary.clone();
        alone.findings = vec![finding];
        super::fill(&Experiment::parse(THREE_MODES, "test").unwrap(), &mut alone);
        alone.findings[0].text.clone()
    };
    let texts: Vec<String> =
        [FindingKind::SlowestDriver, FindingKind::GreatestAddedTime, FindingKind::GreatestAddedCpu]
            .into_iter()
            .flat_map(|kind| {
                let verdicts = [FindingVerdict::Shown, FindingVerdict::NotShown, FindingVerdict::CannotTell];
                verdicts.map(|verdict| said(kind, verdict))
            })
            .collect();
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn opening_has_the_headline_and_four_findings_and_the_rest_stands_elsewhere() {
    let (_, summary) = run(THREE_MODES, |trial| {
        if trial.mode == Mode::Sidecar && trial.load.rate == Some(500.0) && trial.repeat < 2 {
            invalidate(trial, "saturated: 212 of 500 requests/s were answered", true);
        }
    });
    let (headline, beside) = super::opening(&summary);
    assert_eq!(headline, Some(summary.findings[0].text.as_str()));
    assert_eq!(beside.len(), 4);
    assert!(beside.iter().any(|text| text.contains("is saturated in 2 of 5 trials")), "{beside:?}");
    let others = super::others(&summary);
    assert!(others.iter().all(|text| !beside.contains(text) && Some(*text) != headline));
    assert_eq!(1 + beside.len() + others.len(), sentences(&summary).len());
}

#[test]
fn a_graph_is_no_pair() {
    let (experiment, mut summary) = run(THREE_MODES, |_| {});
    summary.cells[5].edges = vec![EdgeSummary::default()];
    super::fill(&experiment, &mut summary);
    let told = told(&summary);
    assert!(told.contains("a sidecar in every pod adds") && !told.contains("pair"), "{told}");
}
