//! Sentences for runs with known figures.

mod factors;
mod footprint;
mod graph;
mod latency;
mod select;
mod streams;
mod throughput;
mod trials;
mod validity;

use super::{MAX_LINE, fill, opening, others};
use experiment::{Experiment, Plan, PlannedTrial};
use results::{
    ComponentUsage, ConfigurationCounts, ConfigurationPush, CpuPauses, DriverRecord, EdgeSummary, Estimate,
    Figures, Finding, FindingVerdict, Floor, HopProof, HopProtocol, Host, LOAD_SCHEMA, LatencyHistogram,
    LoadResult, LongPauses, Metric, Mode, NetworkUsage, PathProof, Pauses, ProxyConfiguration,
    ProxyFootprint, ProxyProof, Rates, RequestCounts, Retake, Role, ServiceRecord, StatedFinding, Summary,
    TRIAL_SCHEMA, TrialOutcome, TrialRecord, UnavailableMode, Verdict,
};
use statistics::objective_met;
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
    fill(experiment, &mut summary);
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

/// A histogram of `count` requests around a median: 1 in 50 takes five times as long.
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

/// A valid trial for a planned one.
fn trial(planned: &PlannedTrial) -> TrialRecord {
    let rate = planned.load.rate.unwrap_or(800.0);
    let count = (rate * planned.duration.as_secs_f64()) as usize;
    let times = histogram(count, median_us(planned.mode(), planned.repeat), None).summary();
    let proxies: &[&str] = match planned.mode() {
        Mode::None => &[],
        Mode::Gateway => &["gateway"],
        _ => &["client-proxy", "server-proxy"],
    };
    let usage = |name: &str, role, cores: f64| ComponentUsage {
        cpu_user_s: cores * 2.0 * (1.0 + planned.repeat as f64 / 100.0),
        cpu_system_s: cores * 0.5,
        cpu_source: "cgroup-v1".into(),
        // A working set counts the pages of a program only in the cgroup that touched them first, so memory
        // is the greater of both.
        memory_resident_bytes: 41_000_000 + planned.repeat as u64 * 100_000,
        memory_working_set_bytes: Some(15_000_000),
        memory_anonymous_bytes: Some(14_000_000 + planned.repeat as u64 * 100_000),
        network: Some(NetworkUsage { received_bytes: 3_000_000, sent_bytes: 2_500_000 }),
        ..ComponentUsage::new(name, role, 2.5)
    };
    let mut components = vec![usage("generator", Role::Generator, rate * 0.0001)];
    components.extend(proxies.iter().map(|name| usage(name, Role::Proxy, 0.02 + rate * 0.00019)));
    TrialRecord {
        schema: TRIAL_SCHEMA.into(),
        index: planned.index,
        repeat: planned.repeat,
        mode: planned.mode(),
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
        drivers: vec![DriverRecord {
            name: "generator".to_owned(),
            target: "server".to_owned(),
            ..DriverRecord::default()
        }],
        services: vec![ServiceRecord {
            name: "server".to_owned(),
            replicas: 1,
            components: vec!["app".to_owned()],
            ..ServiceRecord::default()
        }],
        edges: Vec::new(),
        gateways: Vec::new(),
        rates: None,
        further_domain: None,
        versions: Vec::new(),
        proxies: None,
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
        nodes: Vec::new(),
        log_tails: Default::default(),
        hints: Vec::new(),
        push: None,
        retake: None,
    }
}

fn invalidate(trial: &mut TrialRecord, reason: &str, saturated: bool) {
    trial.verdict.spoil(reason, Figures::all());
    trial.verdict.saturated = saturated;
}

/// A run of an experiment; `change` adjusts each trial.
fn run(text: &str, change: impl Fn(&mut TrialRecord)) -> (Experiment, Summary) {
    let experiment =
        Experiment::parse(text, "test").unwrap_or_else(|error| panic!("{}", error.render(false)));
    let plan = Plan::new(&experiment, 1);
    let mut trials: Vec<TrialRecord> = plan.trials.iter().map(trial).collect();
    trials.iter_mut().for_each(change);
    let summary = summarize(&experiment, 1, plan.trials.len(), &Host::default(), &trials);
    (experiment, summary)
}

/// The distinct texts.
fn reported(summary: &Summary) -> String {
    sentences(summary).join("\n")
}

/// Each distinct line with its detail beneath it.
fn sentences(summary: &Summary) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for StatedFinding { text, detail, .. } in &summary.findings {
        assert!(text.chars().count() <= MAX_LINE, "{text}");
        let said = if detail.is_empty() { text.clone() } else { format!("{text}\n    {detail}") };
        if !sentences.contains(&said) {
            sentences.push(said);
        }
    }
    sentences
}

const WAYS_OUT: &str = "{name: t, mesh: istio, modes: [egress-bypass, egress-sidecar, egress-gateway, egress-sni], \
                        load: {clients: [1, 20], duration: 1s}, repeats: 3, \
                        published: {source: A study, differs: everything, figures: [\
                        {figure: throughput, mode: egress-sidecar, to: egress-bypass, clients: 20, value: alike}, \
                        {figure: throughput, mode: egress-bypass, to: egress-sni, clients: 20, value: 50%}, \
                        {figure: throughput, mode: egress-sni, to: egress-bypass, clients: 20, value: -40%}, \
                        {figure: cpu, mode: egress-sni, to: egress-gateway, clients: 20, value: higher}, \
                        {figure: cpu, mode: egress-sidecar, to: egress-gateway, clients: 30, value: lower}]}}";

/// A closed loop in which the throughput of each mode is a fraction of its baseline's.
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
    trial.machine = Some(results::MachineUsage { cpus: 2, busy_cores: 1.97, ..Default::default() });
}
