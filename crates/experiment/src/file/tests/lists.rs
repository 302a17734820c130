//! Lists of single-value keys are factors.

use super::{NoFiles, Override, SMALL, rendered, rendered_with};
use crate::definition::Experiment;

#[test]
fn lists_of_single_keys_are_factors() {
    let text = "name: f\nmesh: istio\nmodes: [none, sidecar]\nload: {rate: [500, 1000], connections: [2, 4, 8], payload: [1KiB]}\n\
                proxy: {cpu: [250m, 1], mtls: [strict, off]}\n\
                istio: {lua: [off, on], background-services: {services: [0, 200], endpoints: 3}}\n\
                topology: {shape: pair, namespaces: [1, 5]}\nfresh: mode\n";
    let read = Experiment::parse(text, "f").unwrap_or_else(|error| panic!("{}", error.render(false)));
    let keys: Vec<&str> = read.factors.iter().map(|factor| factor.key.as_str()).collect();
    let expected = [
        "istio.background-services.services",
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
fn invalid_lists_report_place_and_expectation() {
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
fn factor_that_touches_no_mode_is_rejected_with_the_modes_that_it_touches() {
    let of = |mesh: &str, modes: &str, key: &str| {
        rendered(&format!("name: f\nmesh: {mesh}\nmodes: [{modes}]\nload: {{rate: 100}}\n{key}\n"))
    };
    let text = [
        of("envoy", "none", "proxy: {workers: [1, 2]}"),
        of("envoy", "none, gateway", "proxy: {mtls: [off, strict]}"),
        of("cilium", "none", "proxy: {workers: [1, 2]}"),
    ];
    insta::assert_snapshot!(text.join("\n\n"));
}

#[test]
fn factor_of_a_gateway_that_no_scenario_has_is_refused() {
    let text = |scenario: &str| {
        format!(
            "{{name: s, modes: [gateway], load: {{rate: 100}}, ingress: {{scenario: {scenario}}}, gateway: {{cpu: [500m, 1]}}}}"
        )
    };
    let error = rendered(&text("direct"));
    assert!(error.contains("`gateway.cpu` is a list and has no effect here"), "{error}");
    assert!(error.contains("the path of `ingress.scenario: direct` has none"), "{error}");
    assert!(Experiment::parse(&text("[direct, jwt]"), "s").is_ok());
}

#[test]
fn headline_of_a_figure_that_the_run_lacks_is_refused() {
    let text = |modes: &str, load: &str, figure: &str| {
        format!("{{name: h, modes: [{modes}], load: {{{load}}}, headline: {figure}}}")
    };
    for (modes, load, figure, said) in [
        (
            "none, sidecar",
            "rate: 100",
            "throughput",
            "the throughput of an open loop is the rate of its requests",
        ),
        ("none", "rate: 100", "cpu", "no mode here has a proxy whose CPU is compared"),
        ("none", "rate: 100", "p75", "p75"),
    ] {
        let error = rendered(&text(modes, load, figure));
        assert!(error.contains(said), "{error}");
    }
    for (modes, load, figure) in
        [("none", "clients: 4", "throughput"), ("sidecar", "rate: 100", "cpu"), ("none", "rate: 100", "p90")]
    {
        let read = Experiment::parse(&text(modes, load, figure), "h").unwrap();
        assert_eq!(read.headline.map(|figure| figure.name()), Some(figure));
    }
}
