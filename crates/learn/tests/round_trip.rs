//! Known topologies, exported as Istio would, are learned back.

mod exporter;

use experiment::Protocol;
use experiment::topology::distribution::Distribution;
use experiment::topology::script::Step;
use experiment::topology::shapes::{Parameters, Shape, ShapeSettings};
use experiment::topology::{Runs, Topology};
use exporter::spans::{Recorded, Recorder, jaeger, otlp, zipkin};
use exporter::{Random, Simulation, Truth, export, name};
use learn::prometheus::Reader;
use learn::{Learned, Objects, Options, Telemetry, learn, traces};
use std::collections::{BTreeMap, BTreeSet};

/// Requests per second of each driver.
const RATE: f64 = 200.0;
/// The same of traces: the period is much longer than a request.
const TRACED_RATE: f64 = 1.0;

fn options() -> Options {
    Options { name: "learned".to_owned(), scale: 1.0, least_share: 0.0 }
}

fn shape(name: &str, set: &[(&str, &str)], protocol: Protocol) -> Topology {
    let shape = Shape::find(name).unwrap();
    let mut parameters = Parameters::defaults(shape);
    for (key, value) in set {
        let parameter = shape.parameter(key).unwrap();
        parameters.set(parameter, parameter.parse(value).unwrap());
    }
    let settings = ShapeSettings {
        parameters: &parameters,
        replicas: 1,
        protocol,
        server: &Default::default(),
        client_cpu_limit_cores: None,
        external: false,
    };
    shape.topology(1, &settings).unwrap()
}

/// Gives every service an own time and sizes that vary.
fn with_times_and_sizes(mut topology: Topology) -> Topology {
    for (id, workload) in topology.workloads.iter_mut().enumerate() {
        let Runs::Scripted(service) = &mut workload.runs else { continue };
        let own_s = 0.002 * (1 + id % 7) as f64;
        for endpoint in &mut service.endpoints {
            for step in &mut endpoint.steps {
                if let Step::Call(call) = step {
                    let median = 80.0 * (1 + id % 4) as f64;
                    call.request_bytes = Distribution::LogNormal { median, p99: 5.0 * median };
                }
            }
            let own = Distribution::LogNormal { median: own_s, p99: 2.0 * own_s };
            endpoint.steps.insert(0, Step::Sleep(own));
            let median = 300.0 * (1 + id % 5) as f64;
            endpoint.response_bytes = Distribution::LogNormal { median, p99: 8.0 * median };
            endpoint.error_fraction = if id % 3 == 0 { 0.05 } else { 0.0 };
        }
    }
    topology
}

/// Makes all calls one after the other: metrics do not show when a few short ones are concurrent.
fn in_sequence(mut topology: Topology) -> Topology {
    for workload in &mut topology.workloads {
        let Runs::Scripted(service) = &mut workload.runs else { continue };
        for endpoint in &mut service.endpoints {
            let steps = std::mem::take(&mut endpoint.steps).into_iter();
            let flat = steps.flat_map(|step| match step {
                Step::Parallel(steps) => steps,
                step => vec![step],
            });
            endpoint.steps = flat.collect();
        }
    }
    topology
}

fn learned(answers: &str) -> Learned {
    let mut reader = Reader::new(Telemetry::new(None));
    reader.read(answers.as_bytes()).unwrap();
    learn(&reader.finish(), &Objects::default(), &options()).unwrap()
}

/// Requests per second on each edge of a learned topology, from its scripts and the rates of its drivers.
fn rates(learned: &Learned) -> BTreeMap<(String, String), f64> {
    let mut rates = BTreeMap::new();
    for driver in &learned.provenance.drivers {
        let expected = learned.topology.expected(&driver.name).unwrap();
        for (call, requests) in expected.edges {
            let qualified = |id: usize| learned.topology.workloads[id].qualified_name();
            *rates.entry((qualified(call.from), qualified(call.to))).or_default() += requests * driver.rate;
        }
    }
    rates
}

fn close(what: &str, found: f64, expected: f64, tolerance: f64, least: f64) {
    let allowed = (expected.abs() * tolerance).max(least);
    assert!((found - expected).abs() <= allowed, "{what}: {found} instead of {expected}");
}

fn assert_learned_back(topology: &Topology, requests: usize) -> Learned {
    let truth = Simulation::run(topology, RATE, requests);
    let learned = learned(&export(topology, &truth));
    let rates = rates(&learned);
    let named = |id: usize| {
        let driver = topology.workloads[id].runs == Runs::Drivers;
        if driver && !topology.workloads[id].in_mesh {
            "default/outside".to_owned()
        } else {
            name(topology, id)
        }
    };
    let expected: BTreeSet<(String, String)> =
        truth.edges.keys().map(|(from, to)| (named(*from), named(*to))).collect();
    assert_eq!(rates.keys().cloned().collect::<BTreeSet<_>>(), expected);
    for ((from, to), edge) in &truth.edges {
        let key = (named(*from), named(*to));
        close(&format!("rate of {key:?}"), rates[&key], edge.rate, 0.02, 0.0);
    }
    assert_services(topology, &truth, &learned);
    learned
}

fn assert_services(topology: &Topology, truth: &Truth, learned: &Learned) {
    for (id, own) in &truth.own {
        let workload = &topology.workloads[*id];
        let name = name(topology, *id);
        let record = learned.provenance.services.iter().find(|service| service.name == name).unwrap();
        if workload.protocol == Protocol::Tcp {
            continue;
        }
        let learned_own = record.figures["own time"].value;
        close(&format!("own time of {name}"), learned_own, own.median(), 0.1, 2e-5);
        let response = truth.responses[id].median();
        close(&format!("response of {name}"), record.figures["response"].value, response, 0.1, 0.5);
        let found = learned.topology.find(&name).map(|id| &learned.topology.workloads[id]).unwrap();
        assert_eq!((found.protocol, found.in_mesh), (workload.protocol, workload.in_mesh), "{name}");
        let scripted = workload.script().unwrap_or_else(|| panic!("{name} is no pair"));
        let errors = scripted.endpoints[0].error_fraction;
        close(
            &format!("errors of {name}"),
            found.script().unwrap().endpoints[0].error_fraction,
            errors,
            0.5,
            0.01,
        );
    }
    for ((from, to), edge) in &truth.edges {
        let (from, to) = (name(topology, *from), name(topology, *to));
        let record = learned.provenance.edges.iter().find(|edge| edge.from == from && edge.to == to);
        if let Some(request) = record.and_then(|record| record.figures.get("request")) {
            close(
                &format!("request of {from} to {to}"),
                request.value,
                edge.request_bytes.median(),
                0.1,
                0.5,
            );
        }
    }
}

#[test]
fn presets_are_learned_back() {
    for (name, set) in [
        ("chain", &[("hops", "4")][..]),
        ("tree", &[]),
        ("star", &[]),
        ("tiered", &[("parallel", "false")]),
        ("emojivoto", &[]),
        ("booking", &[]),
    ] {
        let plain = shape(name, set, Protocol::Http1);
        assert_learned_back(&plain, 500);
        let learned = assert_learned_back(&with_times_and_sizes(in_sequence(plain)), 2000);
        assert!(learned.provenance.findings.iter().all(|finding| finding.kind != "flow"), "{name}");
    }
}

#[test]
fn random_graphs_are_learned_back() {
    for (seed, protocol) in [("1", Protocol::Http1), ("2", Protocol::Grpc)] {
        let set = [("services", "40"), ("density", "0.02"), ("seed", seed)];
        let mut topology = with_times_and_sizes(shape("random", &set, protocol));
        // With hundreds of calls per request that fail by chance, few requests succeed.
        for workload in &mut topology.workloads {
            if let Runs::Scripted(service) = &mut workload.runs {
                service.endpoints[0].error_fraction = 0.0;
            }
        }
        assert_learned_back(&topology, 1500);
    }
}

#[test]
fn connections_over_tcp_are_learned_as_requests() {
    let mut topology = shape("chain", &[("hops", "3")], Protocol::Tcp);
    for workload in &mut topology.workloads {
        if let Runs::Scripted(service) = &mut workload.runs {
            service.endpoints[0].response_bytes = Distribution::Fixed(700.0);
        }
    }
    let learned = assert_learned_back(&topology, 100);
    let service = learned.topology.workloads.iter().find(|workload| workload.script().is_some()).unwrap();
    assert_eq!((service.protocol, service.tcp_reply_bytes()), (Protocol::Tcp, 700));
}

#[test]
fn restarted_pod_is_found_and_client_outside_the_mesh_is_an_unknown_caller() {
    let topology = with_times_and_sizes(shape("chain", &[("client-in-mesh", "false")], Protocol::Http1));
    let learned = assert_learned_back(&topology, 500);
    let kinds: Vec<&str> = learned.provenance.findings.iter().map(|finding| finding.kind.as_str()).collect();
    assert!(kinds.contains(&"reset") && kinds.contains(&"missing-callers"), "{kinds:?}");
    let text = learned.provenance.findings.iter().find(|finding| finding.kind == "missing-callers").unwrap();
    assert!(text.text.starts_with("100 % of the requests to `default/"), "{text:?}");
}

#[test]
fn calls_in_parallel_are_recognised_where_a_sequence_would_not_fit() {
    let mut topology = with_times_and_sizes(shape("star", &[], Protocol::Http1));
    for workload in &mut topology.workloads {
        if let Runs::Scripted(service) = &mut workload.runs
            && let Some(Step::Sleep(own)) = service.endpoints[0].steps.first_mut()
        {
            *own = Distribution::Fixed(0.02);
        }
    }
    let truth = Simulation::run(&topology, RATE, 500);
    let learned = learned(&export(&topology, &truth));
    let is_parallel = |workload: &experiment::topology::Workload| {
        workload.script().is_some_and(|script| {
            script.endpoints[0].steps.iter().any(|step| matches!(step, Step::Parallel(_)))
        })
    };
    assert_eq!(learned.topology.workloads.iter().filter(|workload| is_parallel(workload)).count(), 1);
}

#[test]
fn smaller_scale_keeps_the_shape() {
    let topology = with_times_and_sizes(shape("tiered", &[], Protocol::Http1));
    let truth = Simulation::run(&topology, RATE, 500);
    let mut reader = Reader::new(Telemetry::new(None));
    reader.read(export(&topology, &truth).as_bytes()).unwrap();
    let telemetry = reader.finish();
    let whole = learn(&telemetry, &Objects::default(), &options()).unwrap();
    let small = learn(&telemetry, &Objects::default(), &Options { scale: 0.02, ..options() }).unwrap();
    assert_eq!(small.topology, whole.topology);
    for (one, other) in small.provenance.drivers.iter().zip(&whole.provenance.drivers) {
        close(&one.name, one.rate, other.rate * 0.02, 1e-9, 0.0);
    }
    let loss = small.provenance.findings.iter().find(|finding| finding.kind == "scale").unwrap();
    assert!(loss.text.starts_with("rates are 2% of the measured ones"), "{loss:?}");
}

/// Script of every endpoint, as text without times, sizes and probabilities: `a; (b | c)`.
fn scripts(topology: &Topology) -> BTreeMap<(String, String), String> {
    fn written(topology: &Topology, step: &Step) -> Option<String> {
        let all = |steps: &[Step]| -> Vec<String> {
            steps.iter().filter_map(|step| written(topology, step)).collect()
        };
        match step {
            Step::Call(call) => Some(format!("{}{}", name(topology, call.to), call.endpoint)),
            Step::Query(query) => Some(format!("{}/", name(topology, query.to))),
            Step::Parallel(steps) => {
                let mut branches = all(steps);
                branches.sort();
                let several = (branches.len() > 1).then(|| format!("({})", branches.join(" | ")));
                several.or_else(|| branches.pop())
            }
            Step::Sequence(steps) => {
                // Of calls that are repeated, metrics have the number.
                let mut steps = all(steps);
                steps.dedup();
                Some(steps.join("; ")).filter(|text| !text.is_empty())
            }
            _ => None,
        }
    }
    let mut scripts = BTreeMap::new();
    for (id, workload) in topology.workloads.iter().enumerate() {
        for endpoint in workload.script().into_iter().flat_map(|service| &service.endpoints) {
            let text = written(topology, &Step::Sequence(endpoint.steps.clone())).unwrap_or_default();
            scripts.insert((name(topology, id), endpoint.path.clone()), text);
        }
    }
    scripts
}

/// The same scripts: those of endpoints that requests reach, and those that were learned of services with spans.
fn assert_same_scripts(topology: &Topology, spans: &[Recorded], learned: &Learned) {
    let served = spans.iter().filter(|span| span.is_server);
    let served: BTreeSet<(String, String)> =
        served.map(|span| (span.service.clone(), span.path.clone())).collect();
    let of = |topology: &Topology, is_chosen: &dyn Fn(&(String, String)) -> bool| {
        scripts(topology).into_iter().filter(|(key, _)| is_chosen(key)).collect::<BTreeMap<_, _>>()
    };
    let expected = of(topology, &|key| served.contains(key));
    let found = of(&learned.topology, &|(service, _)| !service.starts_with("external/"));
    assert_eq!(found, expected, "{}", topology.name);
}

fn learned_from_traces(file: &str, telemetry: Telemetry, sampling: Option<f64>) -> Learned {
    let mut reader = traces::Reader::new(telemetry, sampling);
    reader.read(file.as_bytes()).unwrap();
    learn(&reader.finish().unwrap(), &Objects::default(), &options()).unwrap()
}

fn kinds(learned: &Learned) -> BTreeSet<&str> {
    learned.provenance.findings.iter().map(|finding| finding.kind.as_str()).collect()
}

/// Topologies with branches in parallel, probabilities, endpoints and databases, and a number of requests to record.
fn traced_topologies() -> Vec<(Topology, usize)> {
    let random = [("services", "40"), ("density", "0.02"), ("seed", "3")];
    let shapes =
        [("star", &[][..]), ("tiered", &[]), ("emojivoto", &[]), ("booking", &[]), ("random", &random)];
    let mut topologies: Vec<Topology> =
        shapes.iter().map(|(name, set)| shape(name, set, Protocol::Http1)).collect();
    let nested = "\
name: nested
services:
- name: web
  endpoints:
    /: {script: [{call: a}, {parallel: [{call: {service: b, endpoint: /two}}, [{call: a}, {parallel: [{call: c}, {call: a}]}]]}, {call: c}]}
    /list: {script: [{call: {service: b, endpoint: /one, probability: 40%}}, {call: c}]}
- {name: a}
- {name: b, endpoints: {/one: {script: [{call: c}, {call: c}]}, /two: {}}}
- {name: c}
drivers: [{name: one, target: web}, {name: two, target: web, endpoint: /list}]
";
    topologies.push(experiment::topology::file::read(nested, "nested").unwrap());
    let with_errors = |topology: Topology| {
        let mut topology = with_times_and_sizes(topology);
        // In a large graph few requests would succeed.
        let errors = if topology.workloads.len() > 30 { 0.0 } else { 0.01 };
        for workload in &mut topology.workloads {
            if let Runs::Scripted(service) = &mut workload.runs {
                service.endpoints.iter_mut().for_each(|endpoint| endpoint.error_fraction = errors);
            }
        }
        let requests = if errors > 0.0 { 1000 } else { 200 };
        (topology, requests)
    };
    topologies.into_iter().map(with_errors).collect()
}

#[test]
fn traces_alone_give_back_edges_order_rates_and_own_times() {
    for (index, (topology, requests)) in traced_topologies().iter().enumerate() {
        let recorder = Recorder::run(topology, TRACED_RATE, *requests);
        let write = [otlp, jaeger, zipkin][index % 3];
        let learned = learned_from_traces(&write(&recorder.spans), Telemetry::new(None), Some(1.0));
        let mut expected: BTreeMap<(String, String), f64> = BTreeMap::new();
        for span in &recorder.spans {
            let caller = |span: &Recorded| recorder.spans[span.parent as usize - 1].service.clone();
            let edge = match (&span.host, span.is_server) {
                (Some(host), _) => (span.service.clone(), format!("external/{}", host.replace('.', "-"))),
                (None, true) => (caller(span), span.service.clone()),
                (None, false) => continue,
            };
            *expected.entry(edge).or_default() += TRACED_RATE / *requests as f64;
        }
        let rates = rates(&learned);
        assert_eq!(
            rates.keys().collect::<Vec<_>>(),
            expected.keys().collect::<Vec<_>>(),
            "{}",
            topology.name
        );
        for (edge, rate) in &expected {
            close(&format!("rate of {edge:?}"), rates[edge], *rate, 0.02, 0.0);
        }
        assert_same_scripts(topology, &recorder.spans, &learned);
        for (name, own) in &recorder.own {
            let record = learned.provenance.services.iter().find(|service| service.name == *name).unwrap();
            close(&format!("own time of {name}"), record.figures["own time"].value, own.median(), 0.1, 2e-5);
        }
        assert!(
            kinds(&learned).is_subset(&BTreeSet::from(["missing-sizes", "names"])),
            "{:?}",
            kinds(&learned)
        );
    }
}

#[test]
fn metrics_have_the_rates_and_sampled_traces_the_order() {
    for (topology, requests) in &traced_topologies() {
        let truth = Simulation::run(topology, RATE, *requests);
        let mut reader = Reader::new(Telemetry::new(None));
        reader.read(export(topology, &truth).as_bytes()).unwrap();
        let recorder = Recorder::run(topology, RATE, 2 * requests);
        let mut random = Random::new(9);
        let traces = 2 * requests * topology.drivers.len();
        let sampled: BTreeSet<u64> = (0..=traces as u64).filter(|_| random.uniform() < 0.1).collect();
        let spans = recorder.spans.iter().filter(|span| sampled.contains(&span.trace));
        let spans: Vec<Recorded> = spans.cloned().collect();
        let learned = learned_from_traces(&otlp(&spans), reader.finish(), None);
        let rates = rates(&learned);
        assert_eq!(rates.len(), truth.edges.len(), "{}", topology.name);
        for ((from, to), edge) in &truth.edges {
            let key = (name(topology, *from), name(topology, *to));
            close(&format!("rate of {key:?}"), rates[&key], edge.rate, 0.02, 0.0);
        }
        assert_same_scripts(topology, &spans, &learned);
        assert!(!kinds(&learned).contains("order") && !kinds(&learned).contains("untraced-calls"));
        let web =
            learned.provenance.services.iter().find(|one| one.figures.contains_key("own time")).unwrap();
        assert!(web.figures["own time"].source.starts_with("traces"), "{web:?}");
        let is_traced = |edge: &&learn::EdgeRecord| edge.figures.contains_key("calls per traced request");
        let edge = learned.provenance.edges.iter().find(is_traced).unwrap();
        assert!(edge.figures["rate"].source.starts_with("istio_"), "{edge:?}");
    }
}
