//! Tests of the key `topology`: built-in topologies, files and graphs, as factors, overrides and in written
//! files.

use super::{Files, NoFiles, Override};
use crate::definition::Experiment;
use crate::plan::Plan;
use crate::protocol::Protocol;
use crate::topology::Topology;
use results::Mode;
use std::fmt::Write;
use std::path::PathBuf;

const SMALL: &str = "name: small\nmesh: istio\nmodes: [none, sidecar]\nload: {rate: 1000}\n";
const SHOP: &str = "\
name: shop
services:
- {name: web, protocol: grpc, response: 300, script: [{parallel: [{call: a}, {call: b}]}]}
- {name: a, protocol: tcp, response: 10}
- {name: b}
";

/// Directory of the experiment.
struct Folder;

impl Files for Folder {
    fn text(&self, path: &str) -> Result<String, String> {
        match path {
            "shop.yaml" => Ok(SHOP.into()),
            "wrong.yaml" => Ok("services:\n- {name: a, script: [call: b]}\n".into()),
            _ => Err(format!("{path} is not there")),
        }
    }

    fn locate(&self, path: &str) -> Result<PathBuf, String> {
        Err(format!("{path} is not there"))
    }
}

fn read(text: &str, sets: &[&str]) -> Result<Experiment, String> {
    let overrides: Vec<Override> = sets.iter().map(|set| Override::set(*set)).collect();
    Experiment::parse_with(text, "study.yaml", &overrides, &Folder).map_err(|error| error.render(false))
}

/// Topology of the first trial of a mode, after the experiment was written and read on another machine.
fn topology(experiment: &Experiment, mode: Mode) -> Topology {
    let written = experiment.to_yaml();
    let again = Experiment::parse_with(&written, "experiment.yaml", &[], &NoFiles)
        .unwrap_or_else(|error| panic!("{}\n{written}", error.render(false)));
    assert_eq!(&again, experiment, "{written}");
    assert_eq!(again.to_yaml(), written);
    let plan = Plan::new(&again, 1);
    let trial = plan.trials.iter().find(|trial| trial.mode() == mode).unwrap();
    Topology::clone(&trial.spec.topology)
}

#[test]
fn built_in_topologies_are_read_by_name_and_with_parameters() {
    let small = |set: &str| topology(&read(SMALL, &[set]).unwrap(), Mode::Sidecar);
    assert_eq!(small("topology=chain").pods(), 3);
    assert_eq!(small("topology={shape: chain, hops: 8, namespaces: 2, replicas: 3}").pods(), 50);
    assert_eq!(small("topology={shape: tiered, namespaces: 50}").namespaces().len(), 50);
    assert_eq!(small("topology={shape: random, services: 20, density: 12.5%, seed: 4}").workloads.len(), 21);
    assert_eq!(small("topology={namespaces: 3}").drivers[2].name, "pair-3/generator");
    let grpc = read(SMALL, &["topology=tree", "load.protocol=grpc", "load.payload=3KiB", "server.cpu=500m"])
        .unwrap();
    let tree = topology(&grpc, Mode::None);
    assert!(tree.workloads.iter().all(|workload| workload.protocol == Protocol::Grpc));
    assert_eq!(tree.workloads[1].resources.cpu_limit_cores, Some(0.5));
    assert_eq!(tree.workloads[1].script().unwrap().endpoints[0].response_bytes.mean(), 3072.0);
}

#[test]
fn topology_file_is_read_and_inlined() {
    let text = format!("{SMALL}topology: shop.yaml\n");
    let experiment = read(&text, &[]).unwrap();
    assert_eq!((experiment.load.protocol, experiment.server.payload_bytes), (Protocol::Grpc, 300));
    let shop = topology(&experiment, Mode::Sidecar);
    assert_eq!((shop.name.as_str(), shop.pods(), shop.calls.len()), ("shop", 4, 3));
    let several = read(&text, &["topology.namespaces=2", "client.cpu=2"]).unwrap();
    let shops = topology(&several, Mode::Sidecar);
    assert_eq!(shops.namespaces(), ["shop-1", "shop-2"]);
    assert_eq!(shops.workloads[0].resources.cpu_limit_cores, Some(2.0));
    let same =
        read(SMALL, &["topology={file: shop.yaml, namespaces: 2}", "client.cpu=2", "load.protocol=grpc"]);
    assert_eq!(same.unwrap(), several);
    insta::assert_snapshot!(several.to_yaml());
}

#[test]
fn topology_from_the_command_line_replaces_the_files_protocol_and_payload() {
    let text = SMALL.replace("load: {", "load: {protocol: http/1.1, payload: 1KiB, ");
    assert_ne!(text, SMALL);
    let shop = read(&text, &["topology=shop.yaml"]).unwrap();
    assert_eq!((shop.load.protocol, shop.server.payload_bytes), (Protocol::Grpc, 300));
    let written = Experiment::parse_with(&shop.to_yaml(), "written", &[], &Folder).unwrap();
    assert_eq!(written, shop);
    assert!(read(&text, &["topology=shop.yaml", "load.payload=1KiB"]).unwrap_err().contains("contradicts"));
    assert!(read(&format!("{text}topology: shop.yaml\n"), &[]).unwrap_err().contains("contradicts"));
}

#[test]
fn graph_can_be_inline_in_experiment() {
    let indented: String = SHOP.lines().map(|line| format!("  {line}\n")).collect();
    let text = format!("{SMALL}topology:\n  namespaces: 3\n{indented}");
    assert_eq!(topology(&read(&text, &[]).unwrap(), Mode::None).pods(), 12);
    let isotope = "topology={services: [{name: a, isEntrypoint: true, script: [[{call: b}]]}, {name: b}]}";
    assert_eq!(topology(&read(SMALL, &[isotope]).unwrap(), Mode::None).name, "topology");
}

#[test]
fn parameters_namespaces_and_connections_are_factors() {
    let study = read(
        SMALL,
        &[
            "topology=chain",
            "topology.hops=[1, 2, 4]",
            "load.connections=[2, 4, 8]",
            "fresh=mode",
            "repeats=1",
        ],
    )
    .unwrap();
    assert_eq!(study.combinations.len(), 9);
    topology(&study, Mode::Sidecar);
    let pods: Vec<usize> =
        study.each_combination().map(|(_, one)| Plan::new(one, 1).trials[0].spec.topology.pods()).collect();
    assert_eq!(pods, [2, 2, 2, 3, 3, 3, 5, 5, 5]);
    insta::assert_snapshot!(Plan::new(&study, 7).to_string());
    let files = read(SMALL, &["topology=shop.yaml", "topology.namespaces=[1, 2]"]).unwrap();
    topology(&files, Mode::Sidecar);
    assert_eq!(files.combinations[1].experiment.topology.namespaces, 2);
    let shapes = read(SMALL, &["topology.shape=[chain, emojivoto, pair]"]).unwrap();
    topology(&shapes, Mode::Sidecar);
    assert_eq!(shapes.combinations[1].experiment.server.payload_bytes, 0);
    let services =
        read(SMALL, &["topology=random", "topology.services=[5, 10]", "topology.density=[0%, 20%]"]);
    topology(&services.unwrap(), Mode::Sidecar);
}

#[test]
fn pair_server_and_databases_are_outside_mesh_in_egress_modes() {
    let egress = "name: e\nmesh: istio\nmodes: [none, egress-bypass, egress-gateway]\nload: {rate: 100}\n";
    let of = |set: &str, mode| topology(&read(egress, &[set]).unwrap(), mode);
    assert!(of("topology=pair", Mode::EgressGateway).workloads[1].is_external());
    assert!(!of("topology=pair", Mode::None).workloads[1].is_external());
    let booking = of("topology=booking", Mode::EgressBypass);
    assert_eq!(booking.workloads.iter().filter(|workload| workload.is_external()).count(), 1);
}

#[test]
fn rules_by_identity_need_callers_in_the_mesh() {
    const OUTSIDE: &str = "topology={shape: chain, client-in-mesh: false}";
    const RULES: &str = "istio.authorization.identities=3";
    let in_modes =
        |modes: &str, topology: &str| read(&SMALL.replace("none, sidecar", modes), &[topology, RULES]);
    for modes in ["none, sidecar", "none, ambient", "ambient-waypoint, ingress"] {
        let refused = in_modes(modes, OUTSIDE).unwrap_err();
        assert!(refused.contains("client calls s1 in plaintext and shows no identity"), "{modes}: {refused}");
        in_modes(modes, "topology=chain").unwrap();
    }
    in_modes("none, ingress", OUTSIDE).unwrap();
    let service = "topology={services: [{name: a, in-mesh: false, script: [{call: b}]}, {name: b}]}";
    assert!(in_modes("none, ingress", service).unwrap_err().contains("a calls b in plaintext"));
    let ingress = SMALL.replace("none, sidecar", "ingress");
    let in_scenarios =
        |scenarios: &str| read(&ingress, &[service, RULES, &format!("ingress.scenario={scenarios}")]);
    in_scenarios("direct").expect("the direct path has no proxy that denies a caller");
    assert!(in_scenarios("[direct, no-filters]").unwrap_err().contains("a calls b in plaintext"));
}

#[test]
fn strict_mutual_tls_needs_callers_in_the_mesh() {
    const OUTSIDE: &str = "topology={shape: chain, client-in-mesh: false}";
    const SERVICE: &str = "topology={services: [{name: a, in-mesh: false, script: [{call: b}]}, {name: b}]}";
    let in_modes = |modes: &str, sets: &[&str]| read(&SMALL.replace("none, sidecar", modes), sets);
    for modes in ["none, sidecar", "ambient", "none, ambient-waypoint", "ingress, sidecar"] {
        let refused = in_modes(modes, &[OUTSIDE]).unwrap_err();
        assert!(refused.contains("is not supported with callers outside the mesh"), "{modes}: {refused}");
        assert!(refused.contains("client calls s1 in plaintext") && refused.contains("default"), "{refused}");
        for accepted in ["proxy.mtls=permissive", "topology.client-in-mesh=true"] {
            in_modes(modes, &[OUTSIDE, accepted]).unwrap();
        }
    }
    let refused = in_modes("none, ingress", &[SERVICE, "proxy.mtls=[permissive, strict]"]).unwrap_err();
    assert!(refused.contains("a calls b in plaintext") && !refused.contains("default"), "{refused}");
    assert!(refused.contains("1 | proxy.mtls=[permissive, strict]"), "{refused}");
    // No proxy, a gateway in front of the client's services, static proxies.
    in_modes("none", &[OUTSIDE]).unwrap();
    in_modes("none, ingress", &[OUTSIDE]).unwrap();
    in_modes("ingress", &[SERVICE, "ingress.scenario=direct"]).unwrap();
    in_modes("none, sidecar", &[OUTSIDE, "mesh=envoy"]).unwrap();
}

#[test]
fn invalid_topologies_report_place_and_expectation() {
    let egress = format!("{}topology: chain\n", SMALL.replace("none, sidecar", "egress-bypass"));
    let envoy = format!("{}topology: shop.yaml\n", SMALL.replace("mesh: istio\n", ""));
    let of = |topology: &str| format!("{SMALL}topology: {topology}\n");
    let two =
        "{services: [{name: a}, {name: b, protocol: grpc}], drivers: [{target: a}, {name: g, target: b}]}";
    let mut all = String::new();
    for (text, sets) in [
        (of("chian"), vec![]),
        (of("{shape: tiered, hops: 4}"), vec![]),
        (of("{shape: chain, hops: 0}"), vec![]),
        (of("{shape: tree, depth: 12, fan-out: 30}"), vec![]),
        (of("{shape: random, density: 2}"), vec![]),
        (of("{shape: chain, client-in-mesh: maybe}"), vec![]),
        (of("pair"), vec!["topology.namespaces=2,4"]),
        (of("pair"), vec!["topology.hops=[1,2]"]),
        (of("chain"), vec!["topology.hops=[1,2,1]"]),
        (of("absent.yaml"), vec![]),
        (of("wrong.yaml"), vec![]),
        (of("{file: shop.yaml, replicas: 3}"), vec![]),
        (of("{file: [shop.yaml, shop.yml]}"), vec![]),
        (of("{services: [{name: a, script: [{call: b}]}]}"), vec![]),
        (of("{services: [{name: a}], hops: 3}"), vec![]),
        (of("{services: 20}"), vec![]),
        (of(two), vec![]),
        (of("shop.yaml"), vec!["load.protocol=http/2"]),
        (of("shop.yaml"), vec!["load.payload=[1KiB, 2KiB]"]),
        (of("emojivoto"), vec!["server.delay=1ms"]),
        (of("{shape: tiered, namespaces: 1000, replicas: 1000}"), vec![]),
        (egress, vec![]),
        (envoy, vec![]),
    ] {
        writeln!(all, "{}\n", read(&text, &sets).unwrap_err()).unwrap();
    }
    insta::assert_snapshot!(all);
}
