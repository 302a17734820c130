//! A graph of services: the caller counts every call, and the path of each edge is proven.

use crate::cases::LogFolder;
use crate::raw_tcp::iptables;
use crate::trial::{REQUESTS, Trial, bring_up, end, load, refused, settings, spec, trial};
use experiment::environment::{DeploymentSpec, MutualTls, ProxySettings, ServerSettings};
use experiment::topology::shapes::{Parameters, Shape, ShapeSettings};
use experiment::topology::{Topology, file};
use experiment::{MeshSettings, Protocol};
use lab::Pod;
use lab::deployment::LabDeployment;
use lab::environment::LocalLab;
use results::{EdgeProof, EdgeRecord, Mode};
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;

/// All protocols, replicas, fan-out, a callee with two callers, and a call with a probability.
const GRAPH: &str = "
name: graph
services:
  - {name: web, replicas: 2, script: [{parallel: [{call: b1}, {call: {service: b2, probability: 50%}}]}]}
  - {name: b1, protocol: grpc, script: [{call: c}, {call: d}]}
  - {name: b2, script: [{call: c}, {call: {service: e, probability: 2%}}]}
  - {name: c, protocol: http/2, replicas: 2, response: 1KiB}
  - {name: d, protocol: tcp, response: 620}
  - {name: e, response: 620}
drivers: [{name: generator, target: web}]
";
const EDGES: [&str; 7] = ["client → web", "web → b1", "web → b2", "b1 → c", "b1 → d", "b2 → c", "b2 → e"];

fn graph(mode: Mode) -> DeploymentSpec {
    let topology = file::read(GRAPH, "graph.yaml").unwrap_or_else(|error| panic!("{error}"));
    DeploymentSpec { topology: Arc::new(topology), ..spec(mode) }
}

fn name(edge: &EdgeProof) -> String {
    format!("{} → {}", edge.from, edge.to)
}

fn calls<'a>(trial: &'a Trial, from: &str, to: &str) -> &'a EdgeRecord {
    let mut edges = trial.observation.evidence.edges.iter();
    edges.find(|edge| edge.from == from && edge.to == to).expect("the caller counts it")
}

/// Each edge is proven, with the number of requests that the graph implies.
fn check_graph(mode: Mode, trial: &Trial) {
    trial.check_path(mode.name());
    let evidence = &trial.observation.evidence;
    if mode != Mode::None {
        let mut edges: Vec<String> = evidence.path.edges.iter().map(name).collect();
        edges.sort();
        let mut expected = EDGES.to_vec();
        expected.sort_unstable();
        assert_eq!(edges, expected, "{mode}");
    }
    let sent = |from, to| calls(trial, from, to).requests;
    let of_b2 = sent("web", "b2");
    assert!((140..=260).contains(&of_b2), "{mode}: {of_b2}");
    assert_eq!(
        [sent("web", "b1"), sent("b1", "c"), sent("b1", "d"), sent("b2", "c")],
        [REQUESTS, REQUESTS, REQUESTS, of_b2],
        "{mode}"
    );
    for edge in &evidence.edges {
        assert_eq!((edge.answered, edge.failed, edge.retries), (edge.requests, 0, 0), "{mode}: {edge:?}");
        let measured = edge.response_time_us.as_ref().expect("nodes measure it");
        assert_eq!(measured.count, edge.answered, "{mode}: {} → {}", edge.from, edge.to);
    }
    let received = evidence.services.iter().find(|service| service.name == "c").expect("it serves");
    assert_eq!((received.requests, received.replicas), (Some(REQUESTS + of_b2), 2), "{mode}");
}

pub fn every_edge_of_a_graph_is_proven(lab: &LocalLab) {
    for mode in [Mode::None, Mode::Sidecar] {
        check_graph(mode, &trial(lab, &graph(mode), |_| ()));
    }
}

pub fn every_edge_of_a_graph_is_proven_in_ambient(lab: &LocalLab) {
    for mode in [Mode::Ambient, Mode::AmbientWaypoint] {
        check_graph(mode, &trial(lab, &graph(mode), |_| ()));
    }
}

/// Services keep their connections for the second trial, which opens none and completes no handshake.
fn check_twice(lab: &LocalLab, mode: Mode) {
    let logs = LogFolder::create();
    let mut deployment = bring_up(lab, &graph(mode), logs.path());
    for _ in 0..2 {
        let url = deployment.url();
        let load = load(&mut deployment, logs.path(), url, &[]);
        check_graph(mode, &end(&mut deployment, load));
    }
}

pub fn connections_of_services_outlive_a_trial(lab: &LocalLab) {
    check_twice(lab, Mode::Sidecar);
}

pub fn connections_of_services_through_ztunnels_outlive_a_trial(lab: &LocalLab) {
    check_twice(lab, Mode::Ambient);
    check_twice(lab, Mode::AmbientWaypoint);
}

/// Routes the calls of `from` past its proxy to a pod of `to`.
fn bypass(deployment: &LabDeployment<'_>, from: &str, to: &str) {
    let pods = deployment.pods();
    let pod = |name: &str| *pods.iter().find(|pod| pod.name() == name).expect("it is a pod of the graph");
    let destination = format!("{}:8080", pod(to).address());
    let rule = ["-I", "OUTPUT", "-p", "tcp", "-d", "10.78.0.0/16", "-j", "DNAT", "--to-destination"];
    iptables(pod(from), &[rule.as_slice(), &[&destination]].concat());
}

/// Only the calls of b2 bypass its sidecar. Those to c are certain to occur; c accepts plaintext, and
/// responds.
fn check_bypassed(lab: &LocalLab, mode: Mode) {
    let proxy = ProxySettings { mtls: MutualTls::Permissive, ..ProxySettings::default() };
    let trial = trial(lab, &DeploymentSpec { proxy, ..graph(mode) }, |deployment| {
        bypass(deployment, "b2", "c-1");
    });
    let path = &trial.observation.evidence.path;
    let unproven: Vec<String> = path.edges.iter().filter(|edge| !edge.proven).map(name).collect();
    let expected =
        if calls(&trial, "b2", "e").requests > 0 { vec!["b2 → c", "b2 → e"] } else { vec!["b2 → c"] };
    assert_eq!(unproven, expected, "{mode}: {:#?}", path.reasons);
    let (changed, about_edge): (Vec<&String>, Vec<&String>) =
        path.reasons.iter().partition(|reason| reason.starts_with("rules of pod b2 were changed"));
    assert!(!path.proven && changed.len() == 1 && !about_edge.is_empty(), "{mode}: {:#?}", path.reasons);
    assert!(about_edge.iter().all(|reason| reason.starts_with("edge")), "{mode}: {:#?}", path.reasons);
}

pub fn service_bypassing_its_sidecar_is_named_with_its_edge(lab: &LocalLab) {
    check_bypassed(lab, Mode::Sidecar);
}

pub fn service_bypassing_its_ztunnel_is_named_with_its_edge(lab: &LocalLab) {
    check_bypassed(lab, Mode::Ambient);
}

fn booking() -> Topology {
    let shape = Shape::find("booking").expect("it is built in");
    let settings = ShapeSettings {
        parameters: &Parameters::defaults(shape),
        replicas: 1,
        protocol: Protocol::Http1,
        server: &ServerSettings::default(),
        client_cpu_limit_cores: None,
        external: true,
    };
    shape.topology(1, &settings).expect("it is small")
}

/// Routes queries past the sidecar, including those on open connections.
fn bypass_to_database(pod: &Pod, database: Ipv4Addr) {
    iptables(pod, &["-I", "OUTPUT", "-p", "tcp", "-d", &database.to_string(), "-j", "ACCEPT"]);
    let closed =
        pod.run(move || Command::new("ss").args(["-K", "-t", "dst", &database.to_string()]).output());
    let closed = closed.expect("the pod is there").expect("ss is installed");
    assert!(closed.status.success(), "{}", String::from_utf8_lossy(&closed.stderr));
}

/// Four services query the database through one gateway. Only the queries of auth bypass its sidecar.
pub fn service_bypassing_its_sidecar_to_database_is_named_with_its_edge(lab: &LocalLab) {
    let spec = DeploymentSpec { topology: Arc::new(booking()), ..spec(Mode::EgressGateway) };
    trial(lab, &spec, |_| ()).check_path("booking");
    let trial = trial(lab, &spec, |deployment| {
        let pods = deployment.pods();
        let pod = |name: &str| *pods.iter().find(|pod| pod.name() == name).expect("it is a pod of the graph");
        bypass_to_database(pod("auth"), pod("db").address());
    });
    let path = &trial.observation.evidence.path;
    let unproven: Vec<String> = path.edges.iter().filter(|edge| !edge.proven).map(name).collect();
    assert_eq!(unproven, ["auth → db"], "{:#?}", path.reasons);
    let (changed, about_edge): (Vec<&String>, Vec<&String>) =
        path.reasons.iter().partition(|reason| reason.starts_with("rules of pod auth were changed"));
    assert!(!path.proven && changed.len() == 1 && !about_edge.is_empty(), "{:#?}", path.reasons);
    assert!(about_edge.iter().all(|reason| reason.starts_with("edge auth → db: ")), "{:#?}", path.reasons);
}

/// Unsupported topologies are rejected before anything starts, by name and with a hint.
pub fn unsupported_topologies_are_rejected_by_name(lab: &LocalLab) {
    let outside = "services: [{name: web, script: [{call: cart}]}, {name: cart, in-mesh: false, script: [{call: stock}]}, \
        {name: stock}]\ndrivers: [{target: web}]";
    let one = "services: [{name: web, script: [{query: {database: db, find: items}}]}]\ndatabases: [{name: db}]\n\
        drivers: [{target: web}]";
    for (text, mode, expected) in [
        (
            outside,
            Mode::Sidecar,
            "let cart, which is outside the mesh, call stock: `proxy.mtls: strict` does not accept plaintext; `permissive` does",
        ),
        (
            one,
            Mode::Sidecar,
            "run mode sidecar: the topology has a database outside the mesh, db (modes for it: none, ",
        ),
    ] {
        let topology = file::read(text, "t.yaml").unwrap_or_else(|error| panic!("{}", error.render(false)));
        let told = refused(lab, &DeploymentSpec { topology: Arc::new(topology), ..spec(mode) });
        assert!(told.contains(expected), "{told}");
    }
}

/// Either all calls caused by a driver's request are traced, or none.
pub fn calls_of_a_request_are_traced_together(lab: &LocalLab) {
    let istio = MeshSettings { tracing_fraction: Some(0.25), ..settings() };
    let trial = trial(lab, &DeploymentSpec { istio: Arc::new(istio), ..graph(Mode::Sidecar) }, |_| ());
    trial.check_path("25 %");
    let tracing = trial.observation.evidence.path.tracing.as_ref().expect("tracing was asked for");
    let of = |name: &str| {
        let proxy = tracing.proxies.iter().find(|proxy| proxy.name == name).expect("it traces");
        (proxy.requests_traced, proxy.spans_received)
    };
    let (drawn, received) = of("client-proxy");
    assert_eq!(received, drawn);
    // b1 receives the call from web, and calls c; TCP has no traces.
    assert_eq!(of("b1-proxy"), (2 * drawn, 2 * drawn), "{tracing:?}");
}
