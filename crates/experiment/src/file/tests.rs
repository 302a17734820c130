//! Tests of the reader: accepted and rejected files, and error messages.

mod hostile;
mod lists;
mod published;

use super::Override;
use super::{Files, NoFiles};
use crate::definition::{Experiment, LoadLevels};
use crate::environment::{AccessLog, MutualTls};
use crate::mesh_kind::MeshKind;
use crate::plan::Plan;
use crate::protocol::Protocol;
use crate::settings::istio::{IngressApi, IngressTls, LuaScript, TelemetrySetting, ZtunnelPlacement};
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
  {protocol: http/1.1, payload: 2KB, connections: 8, requests-per-connection: 100, rate: [500/s, 1k], arrival: poisson, warmup: 250ms,
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
  background-services: {services: 100, endpoints: 3}
  ingress: {tls: mutual, api: kubernetes}
  ztunnel: per-pod
  workload-keys: ecdsa
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

/// Directory of an experiment: one text file, and one of another kind.
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
fn expected_statuses_are_read_and_are_not_a_factor() {
    let text = |load: &str| format!("name: a\nmodes: [none]\nload: {{rate: 1000, {load}}}\n");
    let read = |load: &str| {
        Experiment::parse(&text(load), "a").unwrap_or_else(|error| panic!("{}", error.render(false)))
    };
    let expected =
        |experiment: &Experiment| experiment.load.expected_status.as_ref().map(ToString::to_string);
    assert_eq!(expected(&read("connections: 4")), None);
    assert_eq!(expected(&read("expect-status: 302")).as_deref(), Some("302"));
    let several = read("expect-status: [200, \"2xx\", 3xx]");
    assert_eq!(expected(&several).as_deref(), Some("200,2xx,3xx"));
    assert!(several.factors.is_empty());
    assert_eq!(Experiment::parse(&several.to_yaml(), "written").unwrap(), several);
    let invalid = [
        text("expect-status: [200, 1xx]"),
        text("expect-status: [3xx, 3xx]"),
        text("expect-status: []"),
        text("protocol: grpc, expect-status: 200"),
    ];
    insta::assert_snapshot!(invalid.map(|text| rendered(&text)).join("\n"));
}

#[test]
fn every_key_is_read_and_missing_keys_have_defaults() {
    let full = Experiment::parse(FULL, "full").unwrap();
    assert_eq!(full.proxy.access_log, AccessLog::Json);
    assert_eq!(full.proxy.mtls, MutualTls::Off);
    assert_eq!(full.load.duration, Duration::from_secs(90));
    assert_eq!(full.load.requests_per_connection, Some(100));
    assert_eq!(full.objective.time(results::Metric::ResponseTimeP99_9Us), Some(Duration::from_millis(1500)));
    assert_eq!(full.objective.time(results::Metric::ResponseTimeMaxUs), Some(Duration::from_secs(2)));
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
    // With a third of the trials rerun.
    assert_eq!(plan.max_reruns(), 20);
    assert!(plan.longest_time() < Duration::from_secs(600), "{:?}", plan.longest_time());
}

#[test]
fn written_experiment_reads_back_equal() {
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
fn istio_settings_are_read_and_written_back_without_files() {
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
    assert_eq!((istio.background_services.services, istio.background_services.endpoints), (100, 3));
    assert_eq!((istio.ingress.tls, istio.ingress.api), (IngressTls::Mutual, IngressApi::Kubernetes));
    assert_eq!(istio.ztunnel, ZtunnelPlacement::PerPod);
    let objects = &istio.extra.as_ref().unwrap().objects;
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[0]["data"]["number"], "1");
    assert_eq!(objects[1]["spec"]["ports"][0]["number"], 443);

    // The run's directory has everything that its trials need, except the module, which stays a separate
    // file.
    let written = read.to_yaml();
    let again =
        Experiment::parse(&written, "again").unwrap_or_else(|error| panic!("{}", error.render(false)));
    assert_eq!(again, read, "{written}");
    insta::assert_snapshot!(written);
}

/// Proxies know the peer of an opaque connection, but not what is in it.
#[test]
fn istio_modes_accept_raw_tcp_with_settings_that_need_no_requests() {
    for mode in MeshKind::Istio.modes().filter(|mode| mode.has_requests()) {
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
fn unsupported_settings_of_mesh_or_mode_are_rejected_at_their_place() {
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
        with("istio", "none, ambient", &format!("{load}istio: {{workload-keys: ecdsa}}")),
        with("istio", "sidecar", &format!("{load}istio: {{telemetry: maybe}}")),
        with("istio", "ingress, ambient-waypoint", &format!("{load}istio: {{http2-upgrade: on}}")),
        with("istio", "sidecar", "load: {rate: 1000, protocol: grpc}\nistio: {http2-upgrade: on}"),
        with("istio", "ambient", &format!("{load}istio: {{ztunnel: dedicated}}")),
        with("istio", "sidecar", &format!("{load}istio: {{background-services: {{endpoints: 5}}}}")),
        with(
            "istio",
            "sidecar",
            &format!("{load}istio: {{background-services: {{services: 1000, endpoints: 500}}}}"),
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
fn nested_section_can_be_set_from_command_line() {
    let changes = [
        Override::set("mesh=istio"),
        Override::set("istio.authorization.paths=7"),
        Override::set("istio.authorization.jwt=true"),
        Override::set("istio.retries=1"),
        Override::set("istio.background-services={services: 4}"),
        Override::set("istio.retries=null"),
    ];
    let experiment = Experiment::parse_with(SMALL, "small", &changes, &NoFiles).unwrap();
    let istio = &experiment.istio;
    assert_eq!((istio.authorization.paths, istio.authorization.jwt), (7, true));
    assert_eq!((istio.retries, istio.background_services.services), (None, 4));
    let wrong = Override::set("istio.authorization.pahts=7");
    assert!(rendered_with(&[wrong]).contains("did you mean `paths`?"));
    let wrong = Override::set("istio.authorisation.paths=7");
    assert!(rendered_with(&[wrong]).contains("did you mean `authorization.paths`?"));
}

#[test]
fn section_that_is_not_a_map_is_rejected_with_its_keys() {
    for (section, keys) in super::sections::SECTIONS.iter().filter(|(section, _)| !section.is_empty()) {
        let other = if section.starts_with("load") { "" } else { "load: {rate: 1}\n" };
        let nested = section.replace('.', ": {");
        let closing = "}".repeat(section.matches('.').count());
        let text = rendered(&format!("name: x\nmodes: [none]\n{other}{nested}: text{closing}\n"));
        if *section == "topology" {
            // The short form of the section is a text.
            assert!(text.contains("`text` is not a built-in topology"), "{text}");
            continue;
        }
        assert!(text.contains(&format!("`{section}` is not a map")), "{text}");
        assert!(text.contains(keys[0]), "{text}");
    }
}

#[test]
fn invalid_files_report_place_and_expectation() {
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
        "name: x\nmesh: consul\nmodes: [none]\nload: {rate: 1000}\n",
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
    assert_eq!(experiment.objective.time(results::Metric::ResponseTimeP99_9Us), Some(Duration::from_secs(2)));

    let closed =
        [Override::set("load.rate=null"), Override::set("load.clients=[3, 8]"), Override::scale("0.1")];
    let error = Experiment::parse_with(SMALL, "small", &closed, &NoFiles).unwrap_err();
    assert!(error.message.contains("same level twice"), "{error}");
    let many =
        [Override::set("load.rate=null"), Override::set("load.clients=[20, 30]"), Override::scale("1000")];
    let error = Experiment::parse_with(SMALL, "small", &many, &NoFiles).unwrap_err().render(false);
    assert!(
        error.contains("`load.clients` would be 30000") && error.contains("expected at most 25000"),
        "{error}"
    );
    assert!(error.contains("--> --scale:1:1"), "{error}");

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
fn linkerd_is_a_mesh_and_settings_that_it_lacks_are_rejected() {
    let parsed = |rest: &str| {
        let text = format!("name: x\nmesh: linkerd\nmodes: [none, sidecar]\nload: {{rate: 1000}}\n{rest}\n");
        Experiment::parse(&text, "test")
    };
    let read =
        parsed("proxy: {mtls: permissive, cpu: 2}").unwrap_or_else(|error| panic!("{}", error.render(false)));
    let written = read.to_yaml();
    assert!(written.contains("mesh: linkerd") && !written.contains("istio"), "{written}");
    assert_eq!(Experiment::parse(&written, "again").unwrap(), read);
    for (rest, says) in [
        ("proxy: {mtls: off}", "Linkerd has no switch for it"),
        ("proxy: {access-log: json}", "access logs of Linkerd's proxies are not switched on by runs"),
        ("proxy: {cpu-time: 1ms}", "Linkerd's proxies have no filter that computes"),
        ("istio: {retries: 2}", "`istio.retries` has no effect with mesh linkerd"),
        ("components: {istio: pinned}", "a cluster has the versions that are installed there"),
    ] {
        let error = parsed(rest).expect_err(rest).render(false);
        assert!(error.contains(says), "{rest}: {error}");
    }
}

#[test]
fn mesh_without_a_mode_names_one_that_has_it() {
    let error = |mesh: &str, mode: &str| {
        let text = format!("name: x\nmesh: {mesh}\nmodes: [{mode}]\nload: {{rate: 1000}}\n");
        Experiment::parse(&text, "test").expect_err("it has no such mode").render(false)
    };
    let of_cilium = error("cilium", "sidecar");
    assert!(of_cilium.contains("mesh cilium has no mode `sidecar`"), "{of_cilium}");
    assert!(of_cilium.contains("`mesh: istio` has `sidecar`"), "{of_cilium}");
    assert!(error("linkerd", "gateway").contains("`mesh: envoy` has it"));
}
