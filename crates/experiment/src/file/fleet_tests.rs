//! Tests of the section `fleet` and its contradictions.

use super::*;
use crate::plan::Plan;
use crate::settings::fleet::{ChangeKind, FleetSecurity, FleetSettings, ProxyKind, XdsVariant};
use std::time::Duration;

fn text(rest: &str) -> String {
    format!("{{name: f, mesh: istio, modes: [control-plane], {rest}}}")
}

fn read(rest: &str) -> Experiment {
    Experiment::parse(&text(rest), "f.yaml").unwrap()
}

/// Error message, and the source text that it points at.
fn refused(rest: &str) -> (String, String) {
    let text = text(rest);
    let error = Experiment::parse(&text, "f.yaml").expect_err(rest);
    (error.message.clone(), text[error.span.clone()].to_owned())
}

#[test]
fn every_key_is_read_and_written_back() {
    let text = "name: full
mesh: istio
modes: [control-plane]
fleet:
  proxies: [50, 100]
  kind: [sidecar, 'ztunnel=5,sidecar']
  security: token
  services: 100
  pods: 150
  namespaces: 5
  virtual-services: 20
  destination-rules: 10
  gateways: 2
  policies: 3
  scope: on
  churn: [0, 25%/m]
  changes: [endpoint-added=5, service-entry, istiod-added, istiod-removed]
  between: 500ms
  duration: 30s
  settle: 20s
  connect-rate: 200
  threads: 2
istio: {istiod: {replicas: 2, cpu: [500m, 1], memory: 1GiB, debounce-after: 50ms, debounce-max: 1s}}
repeats: 2
";
    let experiment = Experiment::parse(text, "full.yaml").unwrap();
    let fleet = experiment.fleet.as_deref().unwrap();
    assert_eq!((fleet.proxies, fleet.count_of(ProxyKind::Sidecar)), (50, 50));
    assert_eq!((fleet.security, fleet.xds), (FleetSecurity::Token, XdsVariant::Delta));
    assert_eq!((fleet.changes.len(), fleet.changes[0].kind), (4, ChangeKind::EndpointAdded));
    assert_eq!((fleet.number_of_changes(), fleet.window()), (8, Duration::from_secs(30)));
    assert_eq!(experiment.istio.istiod.debounce_after, Some(Duration::from_millis(50)));
    assert_eq!(experiment.combinations.len(), 16);
    let last = &experiment.combinations[15].experiment;
    let counts =
        [ProxyKind::Ztunnel, ProxyKind::Sidecar].map(|kind| last.fleet.as_ref().unwrap().count_of(kind));
    assert_eq!(counts, [5, 95]);
    assert_eq!(last.istio.istiod.cpu_limit_cores, Some(1.0));
    assert_eq!(Experiment::parse(&experiment.to_yaml(), "again").unwrap(), experiment);
}

#[test]
fn services_pods_and_namespaces_come_from_topology() {
    let experiment =
        read("fleet: {proxies: 4}, topology: {shape: tiered, namespaces: [2, 3], replicas: 2}, repeats: 1");
    let numbers = experiment.combinations.iter().map(|one| {
        let fleet = one.experiment.fleet.as_deref().unwrap();
        (fleet.services, fleet.pods, fleet.namespaces)
    });
    assert_eq!(numbers.collect::<Vec<_>>(), [(8, 16, 2), (12, 24, 3)]);
    assert_eq!(Experiment::parse(&experiment.to_yaml(), "again").unwrap(), experiment);
    let graph = read("fleet: {proxies: 1}, topology: {services: [{name: web}], clients: [{name: client}]}");
    assert_eq!(graph.fleet.as_ref().map(|fleet| (fleet.services, fleet.pods)), Some((1, 1)));
    assert_eq!(Experiment::parse(&graph.to_yaml(), "again").unwrap(), graph);
}

#[test]
fn settings_of_one_fleet_are_read_back_without_their_experiment() {
    let changed = "proxies: 50, kind: 'ztunnel=10,sidecar', xds: delta, security: token, services: 20, pods: 60, namespaces: 3, \
                   virtual-services: 2, destination-rules: 3, gateways: 4, policies: 5, scope: on, on-demand: on, witnesses: 1, \
                   churn: 25%/m, changes: [endpoint-added=3, service-entry], between: 2s, duration: 30s, settle: 20s, \
                   connect-rate: 0.5, threads: 2";
    for rest in [
        "fleet: {}".to_owned(),
        format!("fleet: {{{changed}}}"),
        "fleet: {proxies: 1, changes: [], duration: 5s}, topology: {shape: tiered, namespaces: 2}".to_owned(),
    ] {
        let experiment = read(&rest);
        let fleet = experiment.fleet.as_deref().unwrap();
        assert_eq!(FleetSettings::from_yaml(&fleet.to_yaml(), "fleet.yaml").as_ref(), Ok(fleet), "{rest}");
    }
    let error = FleetSettings::from_yaml("fleet: {proxys: 3}", "fleet.yaml").unwrap_err();
    assert_eq!((error.line, error.hint.as_deref()), (1, Some("did you mean `proxies`?")));
}

#[test]
fn defaults_are_written_out() {
    let experiment = read("fleet: {}");
    insta::assert_snapshot!(experiment.to_yaml());
    assert_eq!(Experiment::parse(&experiment.to_yaml(), "again").unwrap(), experiment);
}

#[test]
fn dry_run_describes_fleet_mesh_and_changes() {
    let rest =
        "fleet: {proxies: [500, 1000], services: 1000, pods: 2000, churn: 25%/m, duration: 30s}, repeats: 1";
    insta::assert_snapshot!(Plan::new(&read(rest), 7).to_string());
}

#[test]
fn trials_have_their_fleet_in_place_of_requests() {
    let plan = Plan::new(&read("fleet: {proxies: [10, 20]}, repeats: 1"), 1);
    assert_eq!(plan.trials.len(), 2);
    for trial in &plan.trials {
        let fleet = trial.fleet.as_deref().unwrap();
        assert_eq!(fleet.proxies.to_string(), trial.factors["fleet.proxies"].to_string());
        assert!(trial.load.is_fleet());
        assert_eq!(trial.spec.topology.drivers[0].name, "fleet");
    }
    assert_ne!(plan.trials[0].deployment, plan.trials[1].deployment, "each has a control plane of its own");
}

#[test]
fn contradictions_point_at_their_value() {
    let fault = |rest: &str, message: &str, at: &str| {
        assert_eq!(refused(rest), (message.to_owned(), at.to_owned()), "{rest}");
    };
    fault("fleet: {}, load: {rate: 1}", "`load` and `fleet` contradict each other", "load");
    fault("repeats: 1", "mode `control-plane` has no fleet", "modes");
    fault(
        "fleet: {services: 3}, topology: pair",
        "`fleet.services` and `topology` contradict each other",
        "services",
    );
    fault("fleet: {}, istio: {lua: on}", "`istio.lua` has no effect with a fleet", "lua");
    fault("fleet: {proxies: 300}", "300 sidecars in a mesh of 200 pods", "300");
    fault("fleet: {pods: 50}", "100 sidecars in a mesh of 50 pods", "50");
    fault("fleet: {services: 5}", "10 namespaces in a mesh of 5 services", "5");
    fault(
        "fleet: {kind: ztunnel, xds: state-of-the-world}",
        "ztunnels do not speak state-of-the-world",
        "state-of-the-world",
    );
    fault("fleet: {on-demand: on}", "`fleet.on-demand` has no effect without ztunnels", "on-demand");
    fault("fleet: {kind: gateway, scope: on}", "`fleet.scope` has no effect without sidecars", "scope");
    fault("fleet: {kind: 'gateway=7'}", "`gateway=7` are 7 proxies of 100", "'gateway=7'");
    fault("fleet: {changes: [endpoint]}", "`fleet.changes`: `endpoint` is not a kind of change", "endpoint");
    fault(
        "fleet: {kind: ztunnel, changes: [endpoint-added, virtual-service]}",
        "`virtual-service` reaches no proxy of `fleet.kind: ztunnel`",
        "virtual-service",
    );
    fault("fleet: {changes: [istiod-removed]}", "1 of 1 istiods would be taken away", "istiod-removed");
    fault("fleet: {changes: []}", "nothing would change", "changes");
    fault("fleet: {changes: [], churn: 1%/m}", "there is no time for churn", "churn");
    fault("fleet: {churn: 9000/s}", "9000 pods per second are more than an API server takes", "9000/s");
    fault("fleet: {settle: 0s}", "a change would have no time to arrive", "0s");
    fault(
        "fleet: {}, istio: {istiod: {debounce-max: 50ms}}",
        "changes would be pushed after 50ms at the latest and never before 100ms",
        "50ms",
    );
    fault(
        "fleet: {}, istio: {istiod: {memory: 1MiB}}",
        "`istio.istiod.memory` is too small for istiod",
        "1MiB",
    );
    fault(
        "fleet: {churn: [25%/m, 1/s], duration: 9s}",
        "`fleet.churn` has percentages and numbers of pods",
        "1/s",
    );
    fault("fleet: {settle: [1s, 2s]}", "`fleet.settle` takes one value", "[");
}

#[test]
fn fleet_needs_its_mode_and_requests_reject_istiod_settings() {
    let read = |text: &str| Experiment::parse(text, "f.yaml").unwrap_err().message.clone();
    assert_eq!(
        read("{name: f, mesh: istio, modes: [sidecar], fleet: {}}"),
        "a fleet is measured in mode `control-plane` alone"
    );
    assert_eq!(
        read("{name: f, mesh: istio, modes: [none], load: {rate: 10}, istio: {istiod: {replicas: 2}}}"),
        "`istio.istiod.replicas` has no effect without a fleet"
    );
    assert_eq!(
        read("{name: f, modes: [control-plane], fleet: {}}"),
        "mesh envoy has no mode `control-plane`"
    );
}

#[test]
fn scale_multiplies_values_of_factors_and_names_itself_if_they_become_equal() {
    let scaled = |proxies: &str| {
        let text = text(&format!("fleet: {{proxies: {proxies}, services: 1000, pods: 2000, duration: 30s}}"));
        Experiment::parse_with(&text, "f.yaml", &[Override::scale("0.1")], &NoFiles)
    };
    let experiment = scaled("[125, 250]").unwrap();
    let proxies = |experiment: &Experiment| experiment.fleet.as_ref().unwrap().proxies;
    let shown: Vec<String> = experiment.factors[0].values.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["13", "25"]);
    assert_eq!(
        experiment.combinations.iter().map(|one| proxies(&one.experiment)).collect::<Vec<_>>(),
        [13, 25]
    );
    let written = Experiment::parse(&experiment.to_yaml(), "experiment.yaml").unwrap();
    assert_eq!((&written.factors, &written.combinations), (&experiment.factors, &experiment.combinations));
    let error = scaled("[1, 2]").unwrap_err();
    assert_eq!(error.message, "`fleet.proxies` has the same value twice");
    assert_eq!(error.hint.as_deref(), Some("values may become equal by `--scale 0.1`"));
}

#[test]
fn scale_multiplies_fleet_and_mesh_and_duration_is_the_fleets() {
    let text = "{name: f, mesh: istio, modes: [control-plane], fleet: {proxies: 100, services: 100, pods: 200, churn: 10%/m}}";
    let overrides = [Override::scale("0.1"), Override::duration("20s")];
    let experiment = Experiment::parse_with(text, "f.yaml", &overrides, &NoFiles).unwrap();
    let fleet = experiment.fleet.unwrap();
    assert_eq!((fleet.proxies, fleet.services, fleet.pods, fleet.namespaces), (10, 10, 20, 10));
    assert_eq!((fleet.virtual_services, fleet.duration), (0, Duration::from_secs(20)));
}
