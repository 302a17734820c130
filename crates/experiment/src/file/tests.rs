//! What the reader takes, what it refuses and in which words.

use super::Override;
use super::{Files, NoFiles};
use crate::definition::{Experiment, LoadLevels};
use crate::environment::{AccessLog, MutualTls};
use crate::plan::Plan;
use crate::protocol::Protocol;
use crate::published::{ReferenceValue, Relation, RelativeQuantity};
use crate::settings::istio::{IngressApi, IngressTls, LuaScript, TelemetrySetting, ZtunnelPlacement};
use crate::{MeshKind, Mode};
use proptest::prelude::*;
use std::time::Duration;

const SMALL: &str = "name: small\nmodes: [none, sidecar]\nload: {rate: 1000}\n";
const STUDY: &str = include_str!("../../../../studies/sidecar-cost.yaml");
const MODES: &str = include_str!("../../../../studies/mesh-modes.yaml");
const FULL: &str = "\
name: full
question: Does every key read?
topology: pair
mesh: envoy
modes: [none, gateway, sidecar]
load:
  {protocol: http/1.1, payload: 2KB, connections: 8, rate: [500/s, 1k], arrival: poisson, warmup: 250ms,
   duration: 1m30s, timeout: 2s, threads: 2}
repeats: 3
retakes: 2
seed: 18446744073709551615
objective: {mean: 6ms, p50: 5ms, p90: 10ms, p99: 20ms, p99.9: 1.5s, max: 2s, errors: 0.1%}
proxy: {workers: 4, mtls: off, access-log: json, cpu: 500m}
server: {delay: 1ms, error-rate: 5%, cpu: 2}
client: {cpu: 0.5}
";
const ISTIO: &str = "\
name: full
mesh: istio
modes: [none, sidecar, ambient-waypoint, ingress]
load: {protocol: grpc, rate: 1000}
istio:
  telemetry: off
  tracing: 1%
  authorization: {paths: 10, identities: 5, jwt: on}
  lua: |
    function envoy_on_request(handle)
      handle:headers():add('x-a', \"b\")  # not: a comment
    end
  wasm: filter.wasm
  retries: 3
  timeout: 2s
  sidecar-scope: true
  dns-capture: on
  dns-auto-allocate: on
  surroundings: {services: 100, endpoints: 3}
  ingress: {tls: mutual, api: kubernetes}
  ztunnel: per-pod
  extra: more.yaml
";
const MORE: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: one, labels: {\"a\": \"1\"}}
data: {number: \"1\", truth: \"true\"}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: two
spec: {ports: [{number: 443}]}
";

/// The folder beside an experiment: one file of text, one of another kind.
struct Folder;

impl Files for Folder {
    fn text(&self, path: &str) -> Result<String, String> {
        if path == "more.yaml" { Ok(MORE.into()) } else { Err(format!("{path} is not there")) }
    }

    fn locate(&self, path: &str) -> Result<std::path::PathBuf, String> {
        if path == "filter.wasm" {
            Ok("/study/filter.wasm".into())
        } else {
            Err(format!("{path} is not there"))
        }
    }
}

fn rendered(text: &str) -> String {
    Experiment::parse(text, "experiment.yaml").unwrap_err().render(false)
}

fn rendered_from_folder(text: &str) -> String {
    Experiment::parse_with(text, "experiment.yaml", &[], &Folder).unwrap_err().render(false)
}

fn rendered_with(overrides: &[Override]) -> String {
    Experiment::parse_with(SMALL, "experiment.yaml", overrides, &NoFiles).unwrap_err().render(false)
}

#[test]
fn every_key_is_read_and_the_rest_has_defaults() {
    let full = Experiment::parse(FULL, "full").unwrap();
    assert_eq!(full.proxy.access_log, AccessLog::Json);
    assert_eq!(full.proxy.mtls, MutualTls::Off);
    assert_eq!(full.load.duration, Duration::from_secs(90));
    assert_eq!(full.objective.p99_9, Some(Duration::from_millis(1500)));
    assert_eq!(full.objective.max, Some(Duration::from_secs(2)));
    assert_eq!(full.server.payload_bytes, 2000);
    assert_eq!(full.seed, Some(u64::MAX));
    assert_eq!((full.repeats, full.retakes), (3, 2));
    insta::assert_snapshot!(Experiment::parse(SMALL, "small").unwrap().to_yaml(), @r#"
        name: small
        question: ""
        topology: pair
        mesh: envoy
        modes:
        - none
        - sidecar
        load:
          protocol: http/1.1
          payload: 1KiB
          connections: 4
          rate:
          - 1000
          arrival: uniform
          warmup: 1s
          duration: 10s
          timeout: 5s
          threads: 1
          generators: 1
        repeats: 5
        retakes: 0
        proxy:
          workers: 2
          mtls: strict
          access-log: "off"
        server:
          delay: 0s
          error-rate: 0%
    "#);
}

#[test]
fn the_preset_study_ends_within_two_minutes() {
    let study = Experiment::parse(STUDY, "sidecar-cost.yaml").unwrap();
    let time = Plan::new(&study, 1).estimated_time();
    assert!(time < Duration::from_secs(110), "{time:?}");
}

#[test]
fn three_repeats_of_the_reference_study_end_within_ten_minutes() {
    let modes =
        Experiment::parse_with(MODES, "mesh-modes.yaml", &[Override::repeats("3")], &NoFiles).unwrap();
    let plan = Plan::new(&modes, 1);
    assert_eq!(plan.trials.len(), 60);
    assert!(plan.estimated_time() < Duration::from_secs(500), "{:?}", plan.estimated_time());
    // With a third of the trials taken again.
    assert_eq!(plan.most_retakes(), 20);
    assert!(plan.longest_time() < Duration::from_secs(600), "{:?}", plan.longest_time());
}

#[test]
fn what_is_written_reads_back_to_the_same() {
    for text in [
        SMALL,
        FULL,
        STUDY,
        MODES,
        "name: closed\nmodes: none\nload: {clients: [1, 8]}\nquestion: 'a: \"b\" # \\ {c}'",
    ] {
        let experiment = Experiment::parse(text, "first").unwrap();
        let written = experiment.to_yaml();
        let again = Experiment::parse(&written, "again")
            .unwrap_or_else(|error| panic!("{}\n{written}", error.render(false)));
        assert_eq!(again, experiment, "{written}");
    }
}

#[test]
fn what_is_asked_of_a_control_plane_is_read_and_written_back_without_its_files() {
    let read = Experiment::parse_with(ISTIO, "istio", &[], &Folder).unwrap();
    let istio = &read.istio;
    assert_eq!((istio.telemetry, istio.tracing_fraction), (TelemetrySetting::Off, Some(0.01)));
    assert_eq!(istio.retries, Some(3));
    assert_eq!(
        (istio.authorization.paths, istio.authorization.identities, istio.authorization.jwt),
        (10, 5, true)
    );
    assert!(matches!(&istio.lua, Some(LuaScript::Inline(text)) if text.ends_with("# not: a comment\nend\n")));
    assert_eq!(istio.wasm.as_deref(), Some("/study/filter.wasm".as_ref()));
    assert_eq!((istio.surroundings.services, istio.surroundings.endpoints), (100, 3));
    assert_eq!((istio.ingress.tls, istio.ingress.api), (IngressTls::Mutual, IngressApi::Kubernetes));
    assert_eq!(istio.ztunnel, ZtunnelPlacement::PerPod);
    let objects = &istio.extra.as_ref().unwrap().objects;
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[0]["data"]["number"], "1");
    assert_eq!(objects[1]["spec"]["ports"][0]["number"], 443);

    // A run's folder has all that its trials need; only the module stays a file of its own.
    let written = read.to_yaml();
    let again =
        Experiment::parse(&written, "again").unwrap_or_else(|error| panic!("{}", error.render(false)));
    assert_eq!(again, read, "{written}");
    insta::assert_snapshot!(written);
}

/// Whom a connection is from, its proxies know; what is in it they do not.
#[test]
fn every_mode_of_istio_carries_raw_tcp_with_what_needs_no_requests() {
    for mode in MeshKind::Istio.modes().iter().filter(|mode| mode.has_requests()) {
        let parsed = |rest: &str| {
            let text = format!(
                "name: x\nmesh: istio\nmodes: [{mode}]\nload: {{rate: 1000, protocol: tcp}}\n{rest}\n"
            );
            Experiment::parse(&text, "test")
        };
        let read =
            parsed("proxy: {access-log: json}").unwrap_or_else(|error| panic!("{}", error.render(false)));
        assert_eq!(read.load.protocol, Protocol::Tcp);
        let by_identity = parsed("istio: {authorization: {identities: 3}}");
        assert_eq!(by_identity.is_ok(), !mode.is_egress(), "{mode}");
        for key in [
            "tracing: 1%",
            "authorization: {paths: 1}",
            "authorization: {jwt: on}",
            "lua: on",
            "retries: 1",
            "timeout: 1s",
        ] {
            let error = parsed(&format!("istio: {{{key}}}")).expect_err("proxies see no requests in raw TCP");
            assert!(
                error.render(false).contains("contradicts protocol `tcp`"),
                "{mode}: {}",
                error.render(false)
            );
        }
    }
}

#[test]
fn what_a_mesh_or_a_mode_cannot_do_is_refused_where_it_stands() {
    let with = |mesh: &str, modes: &str, rest: &str| {
        rendered_from_folder(&format!("name: x\nmesh: {mesh}\nmodes: [{modes}]\n{rest}\n"))
    };
    let load = "load: {rate: 1000}\n";
    let cases = [
        with("envoy", "sidecar", &format!("{load}istio: {{retries: 2}}")),
        with("envoy", "sidecar", "load: {rate: 1000, protocol: tcp}"),
        with("envoy", "sidecar", "load: {rate: 1000, protocol: quic}"),
        with("envoy", "ambient", load),
        with("istio", "gateway", load),
        with("istio", "none, ambient", &format!("{load}istio: {{lua: on}}")),
        with("istio", "sidecar, egress-sni", &format!("{load}istio: {{authorization: {{paths: 3}}}}")),
        with("istio", "sidecar", "load: {rate: 1000, protocol: tcp}\nistio: {timeout: 1s}"),
        with(
            "istio",
            "sidecar",
            &format!("{load}proxy: {{mtls: off}}\nistio: {{authorization: {{identities: 3}}}}"),
        ),
        with("istio", "egress-gateway", &format!("{load}istio: {{authorization: {{identities: 3}}}}")),
        with("istio", "sidecar, ambient", &format!("{load}proxy: {{mtls: off}}")),
        with("istio", "egress-gateway-mtls", &format!("{load}proxy: {{mtls: false}}")),
        with("istio", "egress-sni", &format!("{load}proxy: {{mtls: off}}")),
        with("istio", "sidecar", &format!("{load}istio: {{ingress: {{tls: mutual}}}}")),
        with("istio", "ambient-waypoint", "load: {rate: 1000, protocol: tcp}\nistio: {lua: on}"),
        with("istio", "ingress", "load: {rate: 1000, protocol: tcp}\nistio: {authorization: {jwt: on}}"),
        with("istio", "none, ambient", &format!("{load}istio: {{sidecar-scope: true}}")),
        with("istio", "sidecar", &format!("{load}istio: {{dns-auto-allocate: on}}")),
        with("istio", "none, sidecar", &format!("{load}istio: {{ztunnel: shared}}")),
        with("istio", "none, ambient", &format!("{load}istio: {{telemetry: [on, off]}}")),
        with("istio", "sidecar", &format!("{load}istio: {{telemetry: maybe}}")),
        with("istio", "ingress, ambient-waypoint", &format!("{load}istio: {{http2-upgrade: on}}")),
        with("istio", "sidecar", "load: {rate: 1000, protocol: grpc}\nistio: {http2-upgrade: on}"),
        with("istio", "ambient", &format!("{load}istio: {{ztunnel: dedicated}}")),
        with("istio", "sidecar", &format!("{load}istio: {{surroundings: {{endpoints: 5}}}}")),
        with(
            "istio",
            "sidecar",
            &format!("{load}istio: {{surroundings: {{services: 1000, endpoints: 500}}}}"),
        ),
        with("istio", "sidecar", &format!("{load}server: {{delay: 1s}}\nistio: {{timeout: 500ms}}")),
        with("istio", "sidecar", &format!("{load}istio: {{timeout: 500us}}")),
        with("istio", "sidecar", &format!("{load}istio: {{tracing: 200%}}")),
        with("istio", "sidecar", &format!("{load}istio: {{tracing: 0.015%}}")),
        with("istio", "sidecar", &format!("{load}istio: {{trace: 1%}}")),
        with("istio", "sidecar", &format!("{load}istio: {{authorization: {{path: 1}}}}")),
        with("istio", "sidecar", &format!("{load}istio: {{authorization: 5}}")),
        with("istio", "sidecar", &format!("{load}istio: {{lua: maybe}}")),
        with("istio", "sidecar", &format!("{load}istio:\n  lua: |\n    print(1)\n    print(2)\n")),
        with("istio", "sidecar", &format!("{load}istio: {{wasm: absent.wasm}}")),
        with("istio", "sidecar", &format!("{load}istio: {{extra: absent.yaml}}")),
        with("istio", "sidecar", &format!("{load}istio:\n  extra: |\n    kind: A\n    a: [\n")),
        with("istio", "sidecar", &format!("{load}istio:\n  extra: |\n    kind: A\n    apiVersion: v1\n")),
        with("istio", "sidecar", &format!("{load}proxy: {{mtls: perhaps}}")),
    ];
    insta::assert_snapshot!(cases.join("\n\n"));
}

#[test]
fn a_section_within_another_is_reached_from_the_command_line() {
    let changes = [
        Override::set("mesh=istio"),
        Override::set("istio.authorization.paths=7"),
        Override::set("istio.authorization.jwt=true"),
        Override::set("istio.retries=1"),
        Override::set("istio.surroundings={services: 4}"),
        Override::set("istio.retries=null"),
    ];
    let experiment = Experiment::parse_with(SMALL, "small", &changes, &NoFiles).unwrap();
    let istio = &experiment.istio;
    assert_eq!((istio.authorization.paths, istio.authorization.jwt), (7, true));
    assert_eq!((istio.retries, istio.surroundings.services), (None, 4));
    let wrong = Override::set("istio.authorization.pahts=7");
    assert!(rendered_with(&[wrong]).contains("did you mean `paths`?"));
    let wrong = Override::set("istio.authorisation.paths=7");
    assert!(rendered_with(&[wrong]).contains("did you mean `authorization.paths`?"));
}

#[test]
fn a_section_that_is_no_map_is_told_what_it_has() {
    for (section, keys) in super::section::SECTIONS.iter().filter(|(section, _)| !section.is_empty()) {
        let other = if *section == "load" { "" } else { "load: {rate: 1}\n" };
        let nested = section.replace('.', ": {");
        let closing = "}".repeat(section.matches('.').count());
        let text = rendered(&format!("name: x\nmodes: [none]\n{other}{nested}: text{closing}\n"));
        if *section == "topology" {
            // Its short form is a text.
            assert!(text.contains("`text` is not a built-in topology"), "{text}");
            continue;
        }
        assert!(text.contains(&format!("`{section}` is not a map")), "{text}");
        assert!(text.contains(keys[0]), "{text}");
    }
}

#[test]
fn wrong_files_say_where_and_what_was_expected() {
    let cases = [
        "",
        "just text",
        "name: x\nmodes: [none]\nlod: {rate: 5}\n",
        "name: x\nmodes: [none]\nload: {rate: 5, payloda: 1KB}\n",
        "name: x\nmodes: [none]\nrate: 5\nload: {}\n",
        "name: x\nmodes: [none]\nload:\n  rate: 1000\n  duration: 5\n",
        "name: x\nmodes: [none]\nload: {rate: 1000, clients: 4}\n",
        "name: x\nmodes: [none]\nload: {warmup: 1s}\n",
        "name: x\nmodes: [none]\nload: {rate: 0}\n",
        "name: x\nmodes: [none]\nload: {rate: .inf}\n",
        "name: x\nmodes: [none]\nload: {rate: [1000, 1k]}\n",
        "name: x\nmodes: [none]\nload: {rate: 50000000}\n",
        "name: x\nmodes: [none]\nload: {rate: 1, duration: 2s}\n",
        "name: x\nmodes: [none]\nload: {rate: 1000, warmup: 0s}\n",
        "name: x\nmodes: []\nload: {rate: 1000}\n",
        "name: x\nmodes: [none, none]\nload: {rate: 1000}\n",
        "name: x\nmodes: [none, sidcar]\nload: {rate: 1000}\n",
        "name: x\nmodes: [none, ambient]\nload: {rate: 1000}\n",
        "name: x\nmesh: linkerd\nmodes: [none]\nload: {rate: 1000}\n",
        "name: x\ntopology: tiers.yaml\nmodes: [none]\nload: {rate: 1000}\n",
        "name: ../x\nmodes: [none]\nload: {rate: 1000}\n",
        "modes: [none]\nload: {rate: 1000}\n",
        "name: x\nmodes: [none]\nload: {clients: 8, connections: 4}\n",
        "name: x\nmodes: [none]\nload: {clients: 8, arrival: poisson}\n",
        "name: x\nmodes: [none]\nload: {rate: 100, generators: 8}\n",
        "name: x\nmodes: [none]\nload: {clients: [2, 8], connections: 8, generators: 4}\n",
        "name: x\nmodes: [none]\nload: {rate: 100, generators: [1, 2]}\n",
        "name: x\nmodes: [none]\nload: {rate: 100, threads: 8}\n",
        "name: x\nmodes: [none]\nload: {rate: 100, duration: 10s}\nobjective: {p99.9: 5ms}\n",
        "name: x\nmodes: [none]\nload: {rate: 1000}\nobjective: {p50: 5ms, p99: 4ms}\n",
        "name: x\nmodes: [none]\nload: {rate: 1000, timeout: 1s}\nobjective: {p99: 2s}\n",
        "name: x\nmodes: [none]\nload: {rate: 1000}\nobjective: {p99: 20ms, max: 10ms}\n",
        "name: x\nmodes: [none]\nload: {rate: 1000, timeout: 1s}\nserver: {delay: 1s}\n",
        "name: x\nmodes: [none]\nload: {rate: 1000}\nrepeats: 0\n",
        "name: x\nmodes: [none]\nload: {rate: 1000}\nrepeats:\n",
        "name: x\nmodes: [none]\nload: [1000]\n",
        "name: x\nmodes: [none]\nload: {rate: {a: 1}}\n",
        "name: x\nname: y\nmodes: [none]\n",
        "name: x\nmodes: [none\nload: {rate: 1000}\n",
        "name: x\n---\nname: y\n",
        "name: x\n<<: {modes: [none]}\n",
        "name: \u{1b}[31mred\u{7}\nmodes: [none]\n",
        "naïve: \"é\u{1F600}\"\n",
    ];
    let text: Vec<String> = cases.iter().map(|case| rendered(case)).collect();
    insta::assert_snapshot!(text.join("\n\n"));
}

#[test]
fn overrides_change_the_file_and_errors_name_the_option() {
    let changes = [
        Override::set("load.rate=[500, 1000]"),
        Override::set("proxy.workers=4"),
        Override::set("objective.p99.9=2s"),
        Override::repeats("2"),
        Override::retakes("1"),
        Override::duration("20s"),
        Override::scale("2"),
    ];
    let experiment = Experiment::parse_with(SMALL, "small", &changes, &NoFiles).unwrap();
    assert!(matches!(&experiment.load.levels, LoadLevels::Open { rates, .. } if *rates == [1000.0, 2000.0]));
    assert_eq!((experiment.proxy.workers, experiment.repeats, experiment.retakes), (4, 2, 1));
    assert_eq!(experiment.load.duration, Duration::from_secs(20));
    assert_eq!(experiment.objective.p99_9, Some(Duration::from_secs(2)));

    let closed =
        [Override::set("load.rate=null"), Override::set("load.clients=[3, 8]"), Override::scale("0.1")];
    let error = Experiment::parse_with(SMALL, "small", &closed, &NoFiles).unwrap_err();
    assert!(error.message.contains("same level twice"), "{error}");

    let text = [
        rendered_with(&[Override::set("load.rate=abc")]),
        rendered_with(&[Override::set("load.rtae=5")]),
        rendered_with(&[Override::set("load.rtae=null")]),
        rendered_with(&[Override::set("lod.rate=5")]),
        rendered_with(&[Override::set("load.rate=[500, 1000")]),
        rendered_with(&[Override::set("load.rate")]),
        rendered_with(&[Override::set("name.first=5")]),
        rendered_with(&[Override::set("=")]),
        rendered_with(&[Override::set("load.clients=4")]),
        rendered_with(&[Override::repeats("0")]),
        rendered_with(&[Override::retakes("11")]),
        rendered_with(&[Override::duration("5")]),
        rendered_with(&[Override::scale("-1")]),
        rendered_with(&[Override::scale("1000000")]),
    ];
    insta::assert_snapshot!(text.join("\n\n"));
}

#[test]
fn lists_of_single_keys_are_factors() {
    let text = "name: f\nmesh: istio\nmodes: [none, sidecar]\nload: {rate: [500, 1000], connections: [2, 4, 8], payload: [1KiB]}\n\
                proxy: {cpu: [250m, 1], mtls: [strict, off]}\n\
                istio: {lua: [off, on], surroundings: {services: [0, 200], endpoints: 3}}\n\
                topology: {shape: pair, namespaces: [1, 5]}\nfresh: mode\n";
    let read = Experiment::parse(text, "f").unwrap_or_else(|error| panic!("{}", error.render(false)));
    let keys: Vec<&str> = read.factors.iter().map(|factor| factor.key.as_str()).collect();
    let expected = [
        "istio.surroundings.services",
        "topology.namespaces",
        "load.connections",
        "proxy.mtls",
        "proxy.cpu",
        "istio.lua",
    ];
    assert_eq!(keys, expected);
    assert_eq!(read.combinations.len(), 2 * 2 * 3 * 2 * 2 * 2);
    assert_eq!((read.load.connections, read.server.payload_bytes), (Some(2), 1024));
    for one in &read.combinations {
        let said = |key: &str| one.factors[key].to_string();
        assert_eq!(one.experiment.load.connections.unwrap().to_string(), said("load.connections"));
        assert_eq!(one.experiment.topology.namespaces.to_string(), said("topology.namespaces"));
        assert_eq!(one.experiment.proxy.mtls.name(), said("proxy.mtls"));
        assert_eq!(one.experiment.istio.lua.is_some(), said("istio.lua") == "on");
        assert!(one.experiment.factors.is_empty());
    }
    let written = read.to_yaml();
    let again =
        Experiment::parse(&written, "written").unwrap_or_else(|error| panic!("{}", error.render(false)));
    assert_eq!(again, read);
    insta::assert_snapshot!(written);

    let set =
        ["load.connections=[2, 4]", "topology.replicas=[1, 3]", "topology.namespaces=2"].map(Override::set);
    let set = Experiment::parse_with(SMALL, "small", &set, &NoFiles).unwrap();
    assert_eq!((set.combinations.len(), set.topology.namespaces), (4, 2));
}

#[test]
fn wrong_lists_say_where_and_what_was_expected() {
    let connections = "name: f\nmodes: [none]\nload:\n  clients: [1, 4]\n  connections:\n  - 8\n  - 2\nproxy: {workers: [1, 2]}\n";
    let values: Vec<String> = (1..=60).map(|value| value.to_string()).collect();
    let many = format!("[{}]", values.join(", "));
    let text = [
        rendered(&format!("{SMALL}proxy: {{cpu: [250m, much, 1]}}")),
        rendered(&format!("{SMALL}proxy: {{workers: [1, 2], cpu: [250m, much, 1]}}")),
        rendered(connections),
        rendered(&format!("{SMALL}proxy: {{cpu: [500m, 1, 0.5]}}")),
        rendered(&format!("{SMALL}proxy: {{cpu: []}}")),
        rendered(&format!("{SMALL}proxy: {{cpu: [1, [2]]}}")),
        rendered(&format!("{SMALL}proxy: [1, 2]")),
        rendered(&format!("{SMALL}repeats: [1, 2]")),
        rendered(&format!("{SMALL}objective: {{p99: [1s, 2s]}}")),
        rendered(&format!(
            "{SMALL}mesh: istio\nistio: {{lua: [off, \"function envoy_on_request(handle)\\nend\"]}}"
        )),
        rendered(&format!("{SMALL}topology: [pair, chain]")),
        rendered(&format!("{SMALL}topology: {{shape: pair, hops: 2}}")),
        rendered(&format!(
            "{SMALL}proxy: {{workers: {many}}}\nclient: {{cpu: {many}}}\nserver: {{cpu: {many}}}"
        )),
        rendered_with(&[Override::set("load.connections=[2, x]")]),
        rendered_with(&[Override::set("load.duration=[1s, 2s]")]),
    ];
    insta::assert_snapshot!(text.join("\n\n"));
}

#[test]
fn hostile_files_end_quickly() {
    let deep = "[".repeat(100_000);
    let deep_block: String = (0..1000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let long_line = format!("name: {}", "y".repeat(900_000));
    let huge = "x".repeat(2 << 20);
    for text in [&deep, &deep_block, &bomb, &long_line, &huge] {
        let error = Experiment::parse(text, "hostile").unwrap_err();
        assert!(error.render(true).len() < 2000, "{}", error.render(true).len());
    }
}

#[test]
fn places_count_characters_and_bytes() {
    let error =
        Experiment::parse("name: ok\nquestion: \"é\"\nmodes: [ é ]\nload: {rate: 1000}\n", "x").unwrap_err();
    assert_eq!((error.line, error.column), (3, 10));
    assert_eq!(error.span, 33..35);
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "(?s).{0,200}") {
        let _ = Experiment::parse(&text, "any").map_err(|error| error.render(true));
    }

    #[test]
    fn no_yaml_like_text_makes_the_reader_panic(text in "[a-z0-9 :,\\[\\]{}&*<>|'\"#%!\\n\\-.?]{0,120}") {
        let _ = Experiment::parse(&text, "any").map_err(|error| error.render(true));
    }

    #[test]
    fn no_mutation_of_a_good_file_makes_the_reader_panic(
        cuts in prop::collection::vec((0_usize..600, 0_usize..12, "[ -~é\\n\\t]{0,4}"), 1..6),
    ) {
        let mut characters: Vec<char> = FULL.chars().collect();
        for (at, length, insert) in cuts {
            let start = at.min(characters.len());
            let end = (start + length).min(characters.len());
            characters.splice(start..end, insert.chars());
        }
        let text: String = characters.into_iter().collect();
        match Experiment::parse(&text, "mutated") {
            Ok(experiment) => {
                let again = Experiment::parse(&experiment.to_yaml(), "again");
                prop_assert_eq!(again.ok(), Some(experiment));
            }
            Err(error) => prop_assert!(!error.render(false).is_empty()),
        }
    }

    #[test]
    fn no_override_makes_the_reader_panic(text in "[a-z.=\\[\\]{}0-9 é:,-]{0,40}") {
        let _ = Experiment::parse_with(SMALL, "x", &[Override::set(text)], &NoFiles).map_err(|error| error.render(true));
    }
}

#[test]
fn published_figures_may_be_relative_to_another_mode() {
    let text = |figure: &str| {
        format!(
            "name: t\nmesh: istio\nmodes: [egress-bypass, egress-sni]\nload: {{clients: 20}}\n\
             published:\n  - source: a study\n    figures:\n      - {figure}\n"
        )
    };
    for (written, relation) in [
        ("-24%", Relation::Change(-0.24)),
        ("+12.5%", Relation::Change(0.125)),
        ("alike", Relation::Alike),
        ("higher", Relation::Higher),
        ("lower", Relation::Lower),
    ] {
        let figure = format!(
            "{{figure: throughput, mode: egress-sni, to: egress-bypass, clients: 20, value: {written}}}"
        );
        let experiment =
            Experiment::parse(&text(&figure), "t").unwrap_or_else(|e| panic!("{}", e.render(false)));
        let read = &experiment.published[0].figures[0];
        assert_eq!(read.clients, Some(20));
        assert_eq!(
            read.value,
            ReferenceValue::Relative(RelativeQuantity::Throughput, Mode::EgressBypass, relation)
        );
        let again = Experiment::parse(&experiment.to_yaml(), "written").unwrap();
        assert_eq!(again.published, experiment.published);
    }
    for (figure, said) in [
        ("{figure: throughput, mode: egress-sni, value: -24%}", "`-24%` is not a rate"),
        (
            "{figure: throughput, mode: egress-sni, to: none, value: -24%}",
            "`egress-sni` is not compared with `none`",
        ),
        ("{figure: cpu, mode: egress-sni, to: egress-sni, value: alike}", "is not compared with"),
        (
            "{figure: memory, mode: egress-sni, to: egress-bypass, value: alike}",
            "this figure is not relative",
        ),
        ("{figure: cpu, mode: egress-sni, to: egress-bypass, value: 0.24}", "is not a change"),
        ("{figure: cpu, mode: egress-sni, to: egress-bypass, value: -101%}", "nothing left"),
        (
            "{figure: cpu, mode: egress-sni, to: egress-bypass, component: sni-proxy, value: alike}",
            "`cpu` here is of no component",
        ),
    ] {
        let error = Experiment::parse(&text(figure), "t").unwrap_err().render(false);
        assert!(error.contains(said), "{figure}: {error}");
    }
}
