//! Tests of the sections `ingress` and `gateway`: reading, writing and rejection.

use super::{NoFiles, Override};
use crate::definition::Experiment;
use crate::plan::Plan;
use crate::settings::ingress::{Estate, GatewaySettings, Scenario};
use results::Mode;

const STUDY: &str = "\
name: capacity
mesh: istio
modes: [none, ingress]
load: {clients: 50}
ingress: {domains: [20, 200], paths: 10, credentials: 5, requested-paths: 4, requested-domains: 8}
gateway: {cpu: [100m, 1, 2.5], memory: 512MiB}
";

fn read(text: &str) -> Experiment {
    Experiment::parse(text, "experiment.yaml").unwrap_or_else(|error| panic!("{}", error.render(false)))
}

fn refused(text: &str) -> String {
    Experiment::parse(text, "experiment.yaml").unwrap_err().render(false)
}

/// Experiment of mode `ingress` with these lines.
fn with(lines: &str) -> String {
    format!("name: x\nmesh: istio\nmodes: [ingress]\nload: {{rate: 100}}\n{lines}\n")
}

#[test]
fn both_sections_are_read_and_reach_every_deployment() {
    let experiment = read(STUDY);
    let estate = &*experiment.ingress;
    assert_eq!((estate.domains, estate.paths, estate.credentials()), (20, Some(10), 5));
    assert_eq!((estate.requested_paths(), estate.requested_domains()), (Some(4), 8));
    assert_eq!(estate.scenario, Scenario::NoFilters);
    assert_eq!(experiment.gateway.memory_limit_bytes, Some(512 << 20));
    let keys: Vec<&str> = experiment.factors.iter().map(|factor| factor.key.as_str()).collect();
    assert_eq!(keys, ["ingress.domains", "gateway.cpu"], "estates take time to change, limits do not");
    let plan = Plan::new(&experiment, 1);
    let mut seen: Vec<(usize, usize)> = plan
        .trials
        .iter()
        .map(|trial| (trial.spec.ingress.domains, trial.spec.gateway.workers(&trial.spec.proxy)))
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [(20, 1), (20, 3), (200, 1), (200, 3)]);
}

#[test]
fn both_sections_are_written_and_read_back() {
    for text in [
        STUDY,
        &with("ingress: {domains: [1, 100, 1000]}"),
        &with("ingress: {scenario: [direct, no-filters], paths: [5, 6]}\ngateway: {workers: [1, 2]}"),
        "{name: x, modes: [none, gateway], load: {rate: 100}, ingress: {domains: 2}, gateway: {cpu: 2}}",
        &with("ingress: {}"),
    ] {
        let experiment = read(text);
        let written = experiment.to_yaml();
        assert_eq!(read(&written), experiment, "{written}");
    }
    let plain = read(&with(""));
    assert!(!plain.to_yaml().contains("\ningress:") && !plain.to_yaml().contains("\ngateway:"));
    assert_eq!((&*plain.ingress, &plain.gateway), (&Estate::default(), &GatewaySettings::default()));
    let defaults = Experiment::parse_with(
        &with(""),
        "experiment.yaml",
        &[Override::set("ingress.domains=3"), Override::set("gateway.cpu=100m")],
        &NoFiles,
    )
    .unwrap();
    assert!(defaults.ingress.declared);
    assert_eq!((defaults.ingress.credentials(), defaults.gateway.cpu_limit_cores), (3, Some(0.1)));
}

#[test]
fn invalid_estates_are_rejected_at_their_place() {
    let cases = [
        (with("ingress: {domains: 5, credentials: 6}"), "`ingress.credentials` is 6 and there are 5 domains"),
        (with("ingress: {requested-domains: 2}"), "`ingress.requested-domains` is 2 and there is 1 domain"),
        (
            with("ingress: {paths: 5, requested-paths: 6}"),
            "`ingress.requested-paths` is 6 and there are 5 paths",
        ),
        (with("ingress: {requested-paths: 6}"), "and there are no exact paths"),
        (with("ingress: {domains: 1000, paths: 500}"), "1000 domains of 500 paths are 500000 routes"),
        (with("ingress: {domains: 0}"), "expected a whole number from 1 to 10000"),
        (with("ingress: {scenario: wfa}"), "did you mean `waf`?"),
        (with("ingress: {tls: simple}"), "`tls` belongs under `istio.ingress`"),
        (with("gateway: {memory: 1MiB}"), "expected at least 32MiB"),
        (with("gateway: {cpu: 0}"), "`gateway.cpu`: `0` is not a number of CPU cores"),
        (with("gateway: {workers: 0}"), "expected a whole number from 1 to 128"),
        (
            "{name: x, modes: [none, sidecar], load: {rate: 100}, ingress: {domains: 2}}".to_owned(),
            "`ingress.domains` has no effect without a gateway",
        ),
        (
            "{name: x, modes: [none, sidecar], load: {rate: 100}, gateway: {cpu: 2}}".to_owned(),
            "`gateway.cpu` has no effect without a gateway",
        ),
        (
            "{name: x, modes: gateway, load: {rate: 100, protocol: grpc}, ingress: {domains: 2}}".to_owned(),
            "`ingress.domains` contradicts protocol `grpc`",
        ),
        (
            "{name: x, mesh: istio, modes: ingress, load: {clients: 4, stream: {prompt: [128KiB, 220KB]}}, \
             ingress: {scenario: waf}}"
                .to_owned(),
            "the firewall of scenario `waf` refuses prompts of 220KB",
        ),
    ];
    for (text, expected) in cases {
        let told = refused(&text);
        assert!(told.contains(expected), "{expected}\n{told}");
    }
}

#[test]
fn every_scenario_is_read_and_direct_has_no_gateway() {
    for scenario in Scenario::ALL {
        let text = with(&format!("ingress: {{scenario: {}}}", scenario.name()));
        assert_eq!(read(&text).ingress.scenario, scenario);
    }
    let own = "ingress: {scenario: full-handshakes}\nload: {rate: 100, requests-per-connection: 10}";
    let said = refused(&format!("name: x\nmesh: istio\nmodes: [ingress]\n{own}\n"));
    assert!(said.contains("scenario `full-handshakes` opens a connection for each request"), "{said}");
    let direct = Plan::new(&read(&with("ingress: {scenario: direct}")), 1);
    assert_eq!(direct.trials[0].spec.parts(), crate::MeshKind::Istio.parts(Mode::None));
}
