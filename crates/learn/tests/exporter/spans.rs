//! Spans that services of a topology would have recorded: a client's and a server's for each call.

use super::{Random, name};
use experiment::topology::script::{CallStep, Endpoint, Step};
use experiment::topology::{Runs, Topology, WorkloadId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// Nanoseconds from the client's send to the server's begin, and back.
const NETWORK_NS: i64 = 100_000;
const START_NS: i64 = 1_800_000_000_000_000_000;

/// A span; several files may have it in their own words.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub trace: u64,
    pub id: u64,
    pub parent: u64,
    pub is_server: bool,
    /// Qualified name.
    pub service: String,
    pub path: String,
    /// Name of a callee that records nothing.
    pub host: Option<String>,
    pub start: i64,
    pub end: i64,
    pub is_error: bool,
}

/// Records requests of every driver at a rate.
pub struct Recorder<'a> {
    topology: &'a Topology,
    random: Random,
    due: HashMap<*const CallStep, f64>,
    pub spans: Vec<Recorded>,
    /// Own times of a service in seconds, by qualified name.
    pub own: BTreeMap<String, super::Values>,
    trace: u64,
}

impl<'a> Recorder<'a> {
    pub fn run(topology: &'a Topology, rate: f64, requests: usize) -> Self {
        let (random, due, spans, own) = (Random::new(5), HashMap::new(), Vec::new(), BTreeMap::new());
        let mut recorder = Self { topology, random, due, spans, own, trace: 0 };
        for driver in &topology.drivers {
            for request in 0..requests {
                recorder.trace += 1;
                let start = START_NS + (request as f64 / rate * 1e9) as i64;
                recorder.call((driver.at, driver.target), &driver.endpoint, start, 0);
            }
        }
        recorder
    }

    /// End of a call, and whether it fails.
    fn call(
        &mut self,
        (from, to): (WorkloadId, WorkloadId),
        path: &str,
        start: i64,
        parent: u64,
    ) -> (i64, bool) {
        let topology = self.topology;
        let plain = Endpoint::default();
        let endpoint = match &topology.workloads[to].runs {
            Runs::Scripted(service) => service.endpoint(path).unwrap_or(&plain),
            _ => &plain,
        };
        let is_recorded = topology.workloads[to].runs != Runs::Database;
        let client = self.spans.len();
        let id = client as u64 + 1;
        let host = name(topology, to);
        let host = host.split_once('/').unwrap().1.replace('-', ".");
        let recorded = Recorded {
            trace: self.trace,
            id,
            parent,
            is_server: false,
            service: name(topology, from),
            path: path.to_owned(),
            host: (!is_recorded).then_some(host),
            start,
            end: start,
            is_error: false,
        };
        self.spans.push(recorded.clone());
        let begin = start + NETWORK_NS;
        let (mut at, mut own, mut failed) = (begin, 0, false);
        let server = self.spans.len();
        if is_recorded {
            let service = name(topology, to);
            let ids = Recorded { id: server as u64 + 1, parent: id, is_server: true, ..recorded };
            self.spans.push(Recorded { service, start: begin, ..ids });
        }
        for step in &endpoint.steps {
            let (end, is_own, has_failed) = self.step(to, step, at, server as u64 + 1);
            (at, own, failed) = (end, own + is_own, failed | has_failed);
        }
        failed |= self.random.uniform() < endpoint.error_fraction;
        if is_recorded {
            self.spans[server].end = at;
            self.spans[server].is_error = failed;
            self.own.entry(name(topology, to)).or_default().0.push(own as f64 / 1e9);
        }
        self.spans[client].end = at + NETWORK_NS;
        self.spans[client].is_error = failed;
        (at + NETWORK_NS, failed)
    }

    /// End of a step, the part of it that is the service's own, and whether a call fails.
    fn step(&mut self, at: WorkloadId, step: &Step, start: i64, parent: u64) -> (i64, i64, bool) {
        match step {
            Step::Sleep(time) | Step::Compute(time) => {
                let time = (self.random.draw(time) * 1e9) as i64;
                (start + time, time, false)
            }
            Step::Hold(_) => (start, 0, false),
            Step::Call(call) => {
                let due = self.due.entry(call).or_default();
                *due += call.probability;
                if *due < 1.0 - 1e-9 {
                    return (start, 0, false);
                }
                *due -= 1.0;
                let (end, failed) = self.call((at, call.to), &call.endpoint, start, parent);
                (end, 0, failed)
            }
            Step::Query(query) => {
                let (end, failed) = self.call((at, query.to), "/", start, parent);
                (end, 0, failed)
            }
            Step::Sequence(steps) => steps.iter().fold((start, 0, false), |sum, step| {
                let next = self.step(at, step, sum.0, parent);
                (next.0, sum.1 + next.1, sum.2 | next.2)
            }),
            Step::Parallel(steps) => steps.iter().fold((start, 0, false), |sum, step| {
                let next = self.step(at, step, start, parent);
                (sum.0.max(next.0), sum.1, sum.2 | next.2)
            }),
        }
    }
}

fn hex(id: u64) -> String {
    if id == 0 { String::new() } else { format!("{:016x}", id.wrapping_mul(0x9E37_79B9_7F4A_7C15)) }
}

fn attributes(span: &Recorded) -> Vec<(&'static str, Value)> {
    let mut attributes = vec![
        ("url.path", json!(span.path)),
        ("http.response.status_code", json!(if span.is_error { 500 } else { 200 })),
    ];
    attributes.extend(span.host.as_ref().map(|host| ("server.address", json!(host))));
    attributes
}

/// JSON lines, as the OpenTelemetry collector's file exporter writes them: each line has spans of many traces.
pub fn otlp(spans: &[Recorded]) -> String {
    let value = |value: Value| match value {
        Value::String(text) => json!({"stringValue": text}),
        number => json!({"intValue": number.to_string()}),
    };
    let list = |attributes: Vec<(&str, Value)>| {
        attributes.into_iter().map(|(key, own)| json!({"key": key, "value": value(own)})).collect::<Vec<_>>()
    };
    let line = |spans: &[Recorded]| {
        let mut by_service: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for span in spans {
            by_service.entry(&span.service).or_default().push(json!({
                "traceId": format!("{:032x}", span.trace), "spanId": hex(span.id), "parentSpanId": hex(span.parent),
                "name": "GET", "kind": if span.is_server { 2 } else { 3 },
                "startTimeUnixNano": span.start.to_string(), "endTimeUnixNano": span.end.to_string(),
                "attributes": list(attributes(span)), "status": {},
            }));
        }
        let of_service = |(service, spans): (&str, Vec<Value>)| {
            let (namespace, name) = service.split_once('/').unwrap();
            let sender = list(vec![("service.name", json!(name)), ("service.namespace", json!(namespace))]);
            json!({"resource": {"attributes": sender}, "scopeSpans": [{"scope": {"name": "sdk"}, "spans": spans}]})
        };
        let senders: Vec<Value> = by_service.into_iter().map(of_service).collect();
        json!({"resourceSpans": senders}).to_string()
    };
    spans.chunks(500).map(line).collect::<Vec<_>>().join("\n")
}

/// Traces as Jaeger's API returns them.
pub fn jaeger(spans: &[Recorded]) -> String {
    let mut traces: BTreeMap<u64, Vec<&Recorded>> = BTreeMap::new();
    spans.iter().for_each(|span| traces.entry(span.trace).or_default().push(span));
    let of_trace = |(trace, spans): (u64, Vec<&Recorded>)| {
        let trace = format!("{trace:x}");
        let mut processes = serde_json::Map::new();
        let of_span = |span: &&Recorded| {
            let (namespace, name) = span.service.split_once('/').unwrap();
            let process = json!({"serviceName": name, "tags": [{"key": "k8s.namespace.name", "type": "string", "value": namespace}]});
            processes.insert(span.service.clone(), process);
            let mut tags: Vec<Value> = attributes(span)
                .into_iter()
                .map(|(key, value)| json!({"key": key, "value": value}))
                .collect();
            tags.push(json!({"key": "span.kind", "value": if span.is_server { "server" } else { "client" }}));
            let parent = json!([{"refType": "CHILD_OF", "traceID": trace, "spanID": hex(span.parent)}]);
            json!({
                "traceID": trace, "spanID": hex(span.id), "operationName": "GET", "references": if span.parent == 0 { json!([]) } else { parent },
                "startTime": span.start / 1000, "duration": (span.end - span.start) / 1000, "tags": tags, "processID": span.service,
            })
        };
        let spans: Vec<Value> = spans.iter().map(of_span).collect();
        json!({"traceID": trace, "spans": spans, "processes": processes})
    };
    json!({"data": traces.into_iter().map(of_trace).collect::<Vec<_>>(), "errors": null}).to_string()
}

/// A list as Zipkin's API takes it. The spans of a call share an identity, as under B3.
pub fn zipkin(spans: &[Recorded]) -> String {
    let client_of = |span: &Recorded| if span.is_server { span.parent } else { span.id };
    let of_span = |span: &Recorded| {
        let (namespace, name) = span.service.split_once('/').unwrap();
        // The parent of a client's span is the call that its server's span belongs to.
        let of_id = |id: u64| spans.get((id as usize).wrapping_sub(1));
        let parent =
            if span.is_server { of_id(span.parent).map_or(0, |client| client.parent) } else { span.parent };
        let parent = of_id(parent).map_or(0, client_of);
        let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut tags: serde_json::Map<String, Value> =
            attributes(span).into_iter().map(|(key, value)| (key.to_owned(), json!(text(value)))).collect();
        tags.insert("istio.namespace".to_owned(), json!(namespace));
        json!({
            "traceId": format!("{:016x}", span.trace), "id": hex(client_of(span)), "parentId": hex(parent),
            "kind": if span.is_server { "SERVER" } else { "CLIENT" }, "name": "get", "shared": span.is_server,
            "timestamp": span.start / 1000, "duration": (span.end - span.start) / 1000,
            "localEndpoint": {"serviceName": name}, "tags": tags,
        })
    };
    Value::Array(spans.iter().map(of_span).collect()).to_string()
}
