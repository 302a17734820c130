//! Objects of the mesh conform to the schemas of Istio and of the Gateway API.

use components::{Overrides, istio_files};
use experiment::dataplane::Exit;
use experiment::environment::DeploymentSpec;
use experiment::{Experiment, MeshKind, Plan, Protocol};
use mesh::istio::objects::ingress::Credential;
use mesh::istio::objects::subject::{ServiceAccount, Subject};
use mesh::istio::objects::{self, egress, extra, ingress, waypoint};
use results::Mode;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

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

/// Settings that only sidecars have.
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

fn all_of(mode: Mode, istio: &str) -> Vec<Value> {
    let spec = spec(mode, istio);
    let mut objects = objects_of(&spec);
    objects.extend(ingress::objects(&spec, &SUBJECT, "shop.example"));
    objects.extend(ingress::credentials(spec.istio.ingress.tls, SUBJECT.namespace, &[CREDENTIAL]));
    objects
}

#[test]
fn every_object_conforms_to_istio_and_gateway_api_schemas() {
    let schemas = Schemas::read();
    let mut objects = Vec::new();
    for mode in [Mode::Sidecar, Mode::AmbientWaypoint, Mode::Ingress] {
        let scoped = if mode == Mode::AmbientWaypoint {
            EVERYTHING.replace(OF_SIDECARS, "")
        } else {
            EVERYTHING.to_owned()
        };
        objects.extend(settled(mode, &scoped));
    }
    for mtls in ["simple", "mutual", "off"] {
        for api in ["istio", "kubernetes"] {
            let ingress = format!("\n  retries: 0\n  timeout: 2s\n  ingress: {{tls: {mtls}, api: {api}}}");
            objects.extend(all_of(Mode::Ingress, &ingress));
            let tcp =
                spec_of(Protocol::Tcp, Mode::Ingress, &format!("\n  ingress: {{tls: {mtls}, api: {api}}}"));
            objects.extend(ingress::objects(
                &tcp,
                &Subject { protocol: Protocol::Tcp, ..SUBJECT },
                "shop.example",
            ));
            let grpc = format!("\n  retries: 3\n  ingress: {{tls: {mtls}, api: {api}}}");
            objects.extend(ingress::objects(
                &spec_of(Protocol::Grpc, Mode::Ingress, &grpc),
                &Subject { protocol: Protocol::Grpc, ..SUBJECT },
                "shop.example",
            ));
        }
    }
    for mode in MeshKind::Istio.modes() {
        objects.extend(egress::objects(
            MeshKind::Istio.parts(mode).exit,
            "mesh-1",
            &[SERVER],
            egress::EXTERNAL_PORT,
        ));
    }
    objects.push(waypoint::gateway("mesh-1"));
    let mut checked = BTreeMap::new();
    for object in &objects {
        if let Some(schema) = schemas.of(object) {
            check(schema, object, &format!("{} {}", object["kind"], object["metadata"]["name"]));
            *checked.entry(object["kind"].as_str().unwrap()).or_insert(0) += 1;
        }
    }
    let kinds: Vec<&str> = checked.keys().copied().collect();
    assert_eq!(
        kinds,
        [
            "AuthorizationPolicy",
            "DestinationRule",
            "Gateway",
            "HTTPRoute",
            "PeerAuthentication",
            "RequestAuthentication",
            "ServiceEntry",
            "Sidecar",
            "TCPRoute",
            "TLSRoute",
            "Telemetry",
            "TrafficExtension",
            "VirtualService",
        ]
    );
}

#[test]
fn schema_violations_are_found() {
    let schemas = Schemas::read();
    let good = egress::objects(Exit::Sidecar, "mesh-1", &[SERVER], egress::EXTERNAL_PORT).remove(0);
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut object = good.clone();
        change(&mut object);
        std::panic::catch_unwind(|| check(schemas.of(&object).unwrap(), &object, "changed")).is_err()
    };
    assert!(!wrong(&|_| ()));
    assert!(wrong(&|object| object["spec"]["host"] = json!("x")), "a field that there is not");
    assert!(wrong(&|object| object["spec"]["resolution"] = json!("SOMEHOW")), "a word that there is not");
    assert!(wrong(&|object| object["spec"]["ports"] = json!("8443")), "another type");
    assert!(
        wrong(&|object| drop(object["spec"].as_object_mut().unwrap().remove("hosts"))),
        "a field left out"
    );
}

/// Schemas by kind, from the files with which the lab creates these kinds.
struct Schemas(BTreeMap<(String, String), Value>);

impl Schemas {
    fn read() -> Self {
        let files = istio_files(&Overrides::default())
            .expect("this test needs Istio's files: `meshmeter lab install`");
        let mut schemas = BTreeMap::new();
        for path in std::iter::once(&files.istio_crds).chain(&files.gateway_api_crds) {
            for kind in documents(path) {
                let name = &kind["spec"]["names"]["kind"];
                for version in kind["spec"]["versions"].as_array().into_iter().flatten() {
                    let api = format!("{}/{}", text(&kind["spec"]["group"]), text(&version["name"]));
                    let schema = version["schema"]["openAPIV3Schema"].clone();
                    schemas.insert((api, text(name).to_owned()), schema);
                }
            }
        }
        assert!(schemas.len() > 20, "{} kinds", schemas.len());
        Self(schemas)
    }

    /// The schema of an object; `None` if Kubernetes itself defines its kind.
    fn of(&self, object: &Value) -> Option<&Value> {
        let api = text(&object["apiVersion"]);
        let found = self.0.get(&(api.to_owned(), text(&object["kind"]).to_owned()));
        assert!(found.is_some() || !api.contains("istio.io") && !api.contains("gateway."), "{object}");
        found
    }
}

fn documents(path: &Path) -> Vec<Value> {
    let content = std::fs::read_to_string(path).unwrap();
    let separate = content.split("\n---").filter(|document| document.contains("openAPIV3Schema"));
    separate.map(|document| serde_saphyr::from_str(document).unwrap()).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a text"))
}

/// Checks that every field is in the schema, has its type and one of its enum values, and that no required
/// field is missing.
fn check(schema: &Value, value: &Value, at: &str) {
    if schema["x-kubernetes-preserve-unknown-fields"] == true || schema["x-kubernetes-int-or-string"] == true
    {
        return;
    }
    let is_of_type = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        _ => true,
    };
    assert!(is_of_type, "{at} is not of type {}: {value}", schema["type"]);
    if let Some(words) = schema["enum"].as_array() {
        assert!(words.contains(value), "{at} is none of {words:?}: {value}");
    }
    for required in schema["required"].as_array().into_iter().flatten() {
        assert!(value.get(text(required)).is_some(), "{at} has no {required}: {value}");
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        check(&schema["items"], item, &format!("{at}[{index}]"));
    }
    for (key, field) in value.as_object().into_iter().flatten() {
        let at = format!("{at}.{key}");
        match (&schema["properties"][key], &schema["additionalProperties"]) {
            (Value::Null, Value::Null) => {
                // Fields that every object has are not in the schema of a kind.
                let is_known = schema["properties"].is_null()
                    || matches!(key.as_str(), "apiVersion" | "kind" | "metadata");
                assert!(is_known, "{at} is not in the schema");
            }
            (Value::Null, any) => check(any, field, &at),
            (known, _) => check(known, field, &at),
        }
    }
}
