//! Known topologies, exported as Istio would, are learned back.

mod exporter;

use experiment::Protocol;
use experiment::topology::distribution::Distribution;
use experiment::topology::script::Step;
use experiment::topology::shapes::{Parameters, Shape, ShapeSettings};
use experiment::topology::{Runs, Topology};
use exporter::{Simulation, Truth, export, name};
use learn::prometheus::Reader;
use learn::{Learned, Objects, Options, Telemetry, learn};
use std::collections::{BTreeMap, BTreeSet};

/// Requests per second of each driver.
const RATE: f64 = 200.0;

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
