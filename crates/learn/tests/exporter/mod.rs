//! Telemetry that Istio would have exported for a topology: simulated requests, histograms with Istio's buckets, scraped
//! counters of two pods per workload, one of which restarts.

#![allow(dead_code, reason = "each test uses a part")]

pub mod spans;

use experiment::Protocol;
use experiment::topology::distribution::Distribution;
use experiment::topology::script::{CallStep, Endpoint, Step};
use experiment::topology::{Runs, Topology, WorkloadId};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

/// Period of the telemetry, seconds.
pub const PERIOD_S: f64 = 3600.0;
/// Time between two scrapes, seconds.
const SCRAPE_S: f64 = 120.0;
const START_S: f64 = 1_800_000_000.0;
/// Bounds of Istio's histograms.
const BOUNDS: [f64; 20] = [
    0.5,
    1.0,
    5.0,
    10.0,
    25.0,
    50.0,
    100.0,
    250.0,
    500.0,
    1e3,
    2.5e3,
    5e3,
    1e4,
    3e4,
    6e4,
    3e5,
    6e5,
    1.8e6,
    3.6e6,
    f64::INFINITY,
];
/// Network and proxies between caller and callee, seconds.
const NETWORK_S: f64 = 0.000_2;

/// Values of a histogram.
#[derive(Clone, Debug, Default)]
pub struct Values(pub Vec<f64>);

impl Values {
    pub fn median(&self) -> f64 {
        let mut values = self.0.clone();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    }
}

/// Events on an edge.
#[derive(Clone, Debug, Default)]
pub struct EdgeTruth {
    /// Requests per second.
    pub rate: f64,
    pub errors: f64,
    pub request_bytes: Values,
    pub response_bytes: Values,
    /// Seconds at the callee.
    pub durations: Values,
}

/// Events in a topology.
#[derive(Debug, Default)]
pub struct Truth {
    pub edges: BTreeMap<(WorkloadId, WorkloadId), EdgeTruth>,
    /// Own times of a service, seconds.
    pub own: BTreeMap<WorkloadId, Values>,
    pub responses: BTreeMap<WorkloadId, Values>,
}

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((value ^ (value >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn draw(&mut self, distribution: &Distribution) -> f64 {
        let (uniform, other) = (self.uniform(), self.uniform().max(1e-12));
        let normal = (-2.0 * other.ln()).sqrt() * (std::f64::consts::TAU * uniform).cos();
        distribution.draw(self.uniform(), normal)
    }
}

/// Simulates requests of every driver, at a rate each.
pub struct Simulation<'a> {
    topology: &'a Topology,
    random: Random,
    /// Calls that are due of each step that is made sometimes: exact rates without noise.
    due: HashMap<*const CallStep, f64>,
    truth: Truth,
}

impl<'a> Simulation<'a> {
    pub fn run(topology: &'a Topology, rate: f64, requests: usize) -> Truth {
        let mut simulation =
            Self { topology, random: Random(7), due: HashMap::new(), truth: Truth::default() };
        for driver in &topology.drivers {
            for _ in 0..requests {
                let size = Distribution::Fixed(10.0);
                simulation.call(driver.at, driver.target, &driver.endpoint, &size);
            }
        }
        for edge in simulation.truth.edges.values_mut() {
            edge.rate *= rate / requests as f64;
            edge.errors *= rate / requests as f64;
        }
        simulation.truth
    }

    /// Seconds that a call takes at its callee, and whether it fails.
    fn call(&mut self, from: WorkloadId, to: WorkloadId, path: &str, size: &Distribution) -> (f64, bool) {
        let plain = Endpoint::default();
        let topology = self.topology;
        let workload = &topology.workloads[to];
        let endpoint = match &workload.runs {
            Runs::Scripted(service) => service.endpoint(path).unwrap_or(&plain),
            _ => &plain,
        };
        let (mut duration, mut own, mut failed) = (0.0, 0.0, false);
        for step in &endpoint.steps {
            let (took, is_own, has_failed) = self.step(to, step);
            duration += took;
            own += is_own;
            failed |= has_failed;
        }
        failed |= self.random.uniform() < endpoint.error_fraction;
        let request = self.random.draw(size).round();
        let response = match &workload.runs {
            Runs::Service(settings) => settings.payload_bytes as f64,
            _ => self.random.draw(&endpoint.response_bytes).round(),
        };
        self.truth.own.entry(to).or_default().0.push(own);
        self.truth.responses.entry(to).or_default().0.push(response);
        let edge = self.truth.edges.entry((from, to)).or_default();
        edge.rate += 1.0;
        edge.errors += f64::from(u8::from(failed));
        edge.request_bytes.0.push(request);
        edge.response_bytes.0.push(response);
        edge.durations.0.push(duration);
        (duration, failed)
    }

    /// Seconds of a step, those of them that are the service's own, and whether a call fails.
    fn step(&mut self, at: WorkloadId, step: &Step) -> (f64, f64, bool) {
        match step {
            Step::Sleep(time) | Step::Compute(time) => {
                let time = self.random.draw(time);
                (time, time, false)
            }
            Step::Hold(_) => (0.0, 0.0, false),
            Step::Call(call) => {
                let due = self.due.entry(call).or_default();
                *due += call.probability;
                if *due < 1.0 - 1e-9 {
                    return (0.0, 0.0, false);
                }
                *due -= 1.0;
                let (took, failed) = self.call(at, call.to, &call.endpoint, &call.request_bytes);
                (took + NETWORK_S, 0.0, failed)
            }
            Step::Query(query) => {
                let (took, failed) = self.call(at, query.to, "/", &Distribution::Fixed(100.0));
                (took, 0.0, failed)
            }
            Step::Sequence(steps) => steps.iter().fold((0.0, 0.0, false), |sum, step| {
                let next = self.step(at, step);
                (sum.0 + next.0, sum.1 + next.1, sum.2 | next.2)
            }),
            Step::Parallel(steps) => steps.iter().fold((0.0, 0.0, false), |sum, step| {
                let next = self.step(at, step);
                (f64::max(sum.0, next.0), sum.1, sum.2 | next.2)
            }),
        }
    }
}

/// Qualified name that the telemetry has for a workload.
pub fn name(topology: &Topology, id: WorkloadId) -> String {
    let workload = &topology.workloads[id];
    let namespace = if workload.namespace.is_empty() { "default" } else { &workload.namespace };
    match workload.runs {
        Runs::Database => format!("external/{}-example-com", workload.name),
        _ => format!("{namespace}/{}", workload.name),
    }
}

/// Answers to `METRIC[1h]` for every metric, one after the other: matrices of raw samples.
pub fn export(topology: &Topology, truth: &Truth) -> String {
    let mut exporter = Exporter { topology, random: Random(11), rows: BTreeMap::new(), restarted: false };
    for ((from, to), edge) in &truth.edges {
        exporter.edge(*from, *to, edge);
    }
    let answer = |(_, rows): (&'static str, Vec<String>)| {
        let rows = rows.join(",");
        format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{rows}]}}}}"#)
    };
    exporter.rows.into_iter().map(answer).collect::<Vec<_>>().join("\n")
}

struct Exporter<'a> {
    topology: &'a Topology,
    random: Random,
    rows: BTreeMap<&'static str, Vec<String>>,
    /// True once a pod was restarted.
    restarted: bool,
}

impl Exporter<'_> {
    fn edge(&mut self, from: WorkloadId, to: WorkloadId, edge: &EdgeTruth) {
        let (caller, callee) = (&self.topology.workloads[from], &self.topology.workloads[to]);
        let reporters = [("source", caller.in_mesh), ("destination", callee.in_mesh)];
        for (reporter, _) in reporters.into_iter().filter(|(_, reports)| *reports) {
            let labels = self.labels(from, to, reporter);
            // One restart in the whole mesh: of the first pod whose counters are scraped.
            let restarts = !std::mem::replace(&mut self.restarted, true);
            for (pod, share) in [("a", 0.6), ("b", 0.4)] {
                let labels = format!(r#"{labels},"pod":"{pod}""#);
                self.pod(&labels, callee.protocol, edge, share, restarts && pod == "a", reporter);
            }
        }
    }

    fn labels(&self, from: WorkloadId, to: WorkloadId, reporter: &str) -> String {
        let (caller, callee) = (name(self.topology, from), name(self.topology, to));
        let (caller_namespace, caller) = caller.split_once('/').unwrap();
        let (callee_namespace, callee) = callee.split_once('/').unwrap();
        let known = self.topology.workloads[from].in_mesh;
        let (caller, caller_namespace) =
            if known { (caller, caller_namespace) } else { ("unknown", "unknown") };
        let (host, workload, namespace) = match self.topology.workloads[to].runs {
            Runs::Database => (callee.replace('-', "."), "unknown", "unknown"),
            _ => (format!("{callee}.{callee_namespace}.svc.cluster.local"), callee, callee_namespace),
        };
        format!(
            r#""reporter":"{reporter}","source_workload":"{caller}","source_workload_namespace":"{caller_namespace}","destination_workload":"{workload}","destination_workload_namespace":"{namespace}","destination_service":"{host}","instance":"10.0.0.1:15020","response_flags":"-""#
        )
    }

    fn pod(
        &mut self,
        labels: &str,
        protocol: Protocol,
        edge: &EdgeTruth,
        share: f64,
        restarts: bool,
        reporter: &str,
    ) {
        let phase = self.random.uniform() * SCRAPE_S;
        // A scrape reads all counters of a pod at once, a little early or late.
        let late: Vec<f64> = (0..100).map(|_| (self.random.uniform() - 0.5) * 0.4).collect();
        let per_s = edge.rate * share;
        let mut add = |metric: &'static str, more: &str, rate: f64| {
            let values = samples(&late, rate, phase, restarts);
            let row = format!(r#"{{"metric":{{"__name__":"{metric}",{labels}{more}}},"values":[{values}]}}"#);
            self.rows.entry(metric).or_default().push(row);
        };
        if protocol == Protocol::Tcp {
            let mean = |values: &Values| values.0.iter().sum::<f64>() / values.0.len() as f64;
            add("istio_tcp_connections_opened_total", "", per_s);
            add("istio_tcp_sent_bytes_total", "", per_s * mean(&edge.response_bytes));
            add("istio_tcp_received_bytes_total", "", per_s * mean(&edge.request_bytes));
            return;
        }
        let protocol = if protocol == Protocol::Grpc { "grpc" } else { "http" };
        let failed = edge.errors * share;
        for (code, rate) in
            [("200", per_s - failed), ("503", failed)].into_iter().filter(|(_, rate)| *rate > 0.0)
        {
            let more = format!(r#","request_protocol":"{protocol}","response_code":"{code}""#);
            add("istio_requests_total", &more, rate);
        }
        let network = if reporter == "source" { NETWORK_S } else { 0.0 };
        let milliseconds = Values(edge.durations.0.iter().map(|s| (s + network) * 1e3).collect());
        let histograms: [(&Values, [&'static str; 3]); 3] = [
            (
                &milliseconds,
                [
                    "istio_request_duration_milliseconds_bucket",
                    "istio_request_duration_milliseconds_sum",
                    "istio_request_duration_milliseconds_count",
                ],
            ),
            (
                &edge.request_bytes,
                ["istio_request_bytes_bucket", "istio_request_bytes_sum", "istio_request_bytes_count"],
            ),
            (
                &edge.response_bytes,
                ["istio_response_bytes_bucket", "istio_response_bytes_sum", "istio_response_bytes_count"],
            ),
        ];
        for (values, [bucket, sum, count]) in histograms {
            let each = per_s / values.0.len() as f64;
            for bound in BOUNDS {
                let up_to = values.0.iter().filter(|value| **value <= bound).count() as f64;
                let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
                add(bucket, &format!(r#","le":"{bound}""#), each * up_to);
            }
            add(sum, "", each * values.0.iter().sum::<f64>());
            add(count, "", per_s);
        }
    }
}

/// Scraped values of a counter. A restart comes soon after a scrape.
fn samples(late: &[f64], rate: f64, phase: f64, restarts: bool) -> String {
    let mut text = String::new();
    let restarted_s = phase + 10.0 * SCRAPE_S + 3.0;
    let mut at = phase;
    for late in late {
        if at >= PERIOD_S {
            break;
        }
        let since = if restarts && at > restarted_s { at - restarted_s } else { at + 500.0 };
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, r#"{comma}[{:.3},"{:.4}"]"#, START_S + at + late, rate * since);
        at += SCRAPE_S;
    }
    text
}
