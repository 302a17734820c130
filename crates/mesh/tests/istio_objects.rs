//! Snapshots of the objects generated from settings.

use experiment::dataplane::Exit;
use experiment::environment::DeploymentSpec;
use experiment::{Experiment, MeshKind, Plan, Protocol};
use mesh::istio::objects::ingress::Credential;
use mesh::istio::objects::subject::{ServiceAccount, Subject};
use mesh::istio::objects::{self, background, egress, extra, ingress, telemetry};
use results::Mode;
use serde_json::{Value, json};
use std::net::Ipv4Addr;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 9);
const SUBJECT: Subject<'_> = Subject {
    namespace: "mesh-1",
    service: "server",
    port: 8080,
    callers: &[ServiceAccount { namespace: "mesh-1", name: "client" }],
    protocol: Protocol::Http1,
    endpoints: &["/"],
};
const CREDENTIAL: Credential<'_> = Credential {
    name: ingress::CREDENTIAL,
    certificate: "[certificate]",
    key: "[key]",
    client_authority: "[authority]",
};
const KEYS: &str = r#"{"keys": []}"#;
const EVERYTHING: &str = "
  tracing: 1%
  authorization: {paths: 3, identities: 2, jwt: on}
  lua: on
  wasm: /study/filter.wasm
  retries: 3
  timeout: 1500ms
  sidecar-scope: on
  http2-upgrade: on
  extra: |
    {apiVersion: v1, kind: ConfigMap, metadata: {name: more}}
    ---
    {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, rules: []}
";

/// Settings that apply only to sidecars.
const OF_SIDECARS: &str = "  sidecar-scope: on\n  http2-upgrade: on\n";

/// The deployment of an experiment with this `istio` section.
fn spec(mode: Mode, istio: &str) -> DeploymentSpec {
    spec_of(Protocol::Http1, mode, istio)
}

fn spec_of(protocol: Protocol, mode: Mode, istio: &str) -> DeploymentSpec {
    let modes = if mode == Mode::None { "none".to_owned() } else { format!("none, {mode}") };
    let text = format!(
        "name: x\nmesh: istio\nmodes: [{modes}]\nload: {{rate: 1000, protocol: {protocol}}}\nproxy: {{access-log: json}}\nistio:{istio}\n"
    );
    let experiment =
        Experiment::parse(&text, "test").unwrap_or_else(|error| panic!("{}", error.render(false)));
    let trials = Plan::new(&experiment, 1).trials;
    trials.into_iter().find(|trial| trial.mode() == mode).unwrap().spec
}

fn objects_of(spec: &DeploymentSpec) -> Vec<Value> {
    let mut all = objects::for_namespace(spec, SUBJECT.namespace, spec.istio.wasm.as_deref());
    all.extend(objects::for_service(spec, &SUBJECT, Some(KEYS)));
    all.extend(extra::objects(spec.istio.extra.as_ref(), SUBJECT.namespace));
    all
}

fn settled(mode: Mode, istio: &str) -> Vec<Value> {
    objects_of(&spec(mode, istio))
}

fn listed(objects: &[Value]) -> String {
    objects.iter().map(|object| serde_json::to_string_pretty(object).unwrap()).collect::<Vec<_>>().join("\n")
}

#[test]
fn mesh_without_switches_has_mutual_tls_and_access_log() {
    insta::assert_snapshot!(
        "mesh_without_switches_has_mutual_tls_and_access_log",
        listed(&settled(Mode::Sidecar, " {}"))
    );
}

#[test]
fn every_switch_has_its_object() {
    insta::assert_snapshot!("switches-of-sidecars", listed(&settled(Mode::Sidecar, EVERYTHING)));
    let of_waypoint = EVERYTHING.replace(OF_SIDECARS, "");
    insta::assert_snapshot!("switches-of-waypoints", listed(&settled(Mode::AmbientWaypoint, &of_waypoint)));
}

#[test]
fn mode_none_has_only_extra_objects() {
    let objects = settled(
        Mode::None,
        "\n  lua: on\n  extra: |\n    kind: A\n    apiVersion: v1\n    metadata: {name: a}\n",
    );
    assert_eq!(
        objects,
        [json!({"kind": "A", "apiVersion": "v1", "metadata": {"name": "a", "namespace": "mesh-1"}})]
    );
}

#[test]
fn ingress_gateway_has_objects_of_either_api() {
    for api in ["istio", "kubernetes"] {
        for tls in ["off", "simple", "mutual"] {
            let istio = format!("\n  retries: 3\n  timeout: 2s\n  ingress: {{tls: {tls}, api: {api}}}");
            let spec = spec(Mode::Ingress, &istio);
            let mut objects = ingress::objects(&spec, &SUBJECT, "shop.example");
            objects.extend(ingress::credentials(spec.istio.ingress.tls, SUBJECT.namespace, &[CREDENTIAL]));
            insta::assert_snapshot!(format!("ingress-{api}-{tls}"), listed(&objects));
        }
    }
}

/// Raw TCP has other kinds of routes, and no host unless one is named.
#[test]
fn ingress_gateway_for_tcp_has_objects_of_either_api() {
    for api in ["istio", "kubernetes"] {
        for tls in ["off", "simple", "mutual"] {
            let spec =
                spec_of(Protocol::Tcp, Mode::Ingress, &format!("\n  ingress: {{tls: {tls}, api: {api}}}"));
            let name = ingress::port_name(Protocol::Tcp, spec.istio.ingress.tls);
            assert_eq!(name, if tls == "off" { "tcp" } else { "tls" });
            let objects =
                ingress::objects(&spec, &Subject { protocol: Protocol::Tcp, ..SUBJECT }, "shop.example");
            insta::assert_snapshot!(format!("ingress-tcp-{api}-{tls}"), listed(&objects));
        }
    }
}

#[test]
fn objects_of_each_exit_match_snapshot() {
    for mode in [Mode::EgressSidecar, Mode::EgressGateway, Mode::EgressGatewayMtls, Mode::EgressSni] {
        let exit = MeshKind::Istio.parts(mode).exit;
        insta::assert_snapshot!(
            mode.name(),
            listed(&egress::objects(exit, "mesh-1", &[SERVER], egress::EXTERNAL_PORT))
        );
    }
    assert!(egress::objects(Exit::Bypass, "mesh-1", &[SERVER], egress::EXTERNAL_PORT).is_empty());
}

#[test]
fn background_services_have_distinct_addresses() {
    let all = background::services(0..100, 300);
    assert_eq!(all.len(), 200);
    let slices = all.iter().filter(|object| object["kind"] == "EndpointSlice");
    let addresses: Vec<&str> = slices
        .flat_map(|slice| slice["endpoints"].as_array().unwrap())
        .map(|endpoint| endpoint["addresses"][0].as_str().unwrap())
        .collect();
    let distinct: std::collections::BTreeSet<_> = addresses.iter().collect();
    assert_eq!((addresses.len(), distinct.len()), (30_000, 30_000));
    assert!(addresses.iter().all(|address| address.starts_with("10.8")));
    assert!(background::services(0..0, 300).is_empty());
}

#[test]
fn telemetry_uses_providers_that_the_mesh_names() {
    let providers = telemetry::extension_providers("istio-system").to_string();
    for object in settled(Mode::Sidecar, " {tracing: 0.5%}") {
        for list in ["accessLogging", "tracing"] {
            if let Some(name) = object["spec"][list][0]["providers"][0]["name"].as_str() {
                assert!(providers.contains(&format!("\"name\":\"{name}\"")), "{name} in {providers}");
            }
        }
    }
}

#[test]
fn policies_of_two_services_in_a_namespace_have_distinct_names() {
    let spec = spec(Mode::AmbientWaypoint, "\n  authorization: {paths: 3, identities: 2, jwt: on}");
    let of = |service| objects::for_service(&spec, &Subject { service, ..SUBJECT }, Some(KEYS));
    let all = [of("server"), of("cart")].concat();
    let mut names: Vec<&str> =
        all.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len());
    assert!(all.iter().all(|object| object["spec"]["targetRefs"][0]["kind"] == "Service"));
}
