//! `meshmeter fleet` against a real istiod: one that a lab holds, as if it were elsewhere, and one of a lab of its own.

use crate::command::{said, start, stderr};
use crate::held::{Held, Registry};
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::object_ref::ObjectRef;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Longer than a busy machine takes.
const SETTLE: &str = "--settle=3m";

struct Elsewhere {
    kubeconfig: String,
    istiod: String,
    api: ApiClient,
}

impl Elsewhere {
    fn new(held: &Held) -> Self {
        let access = &held.lab["control_plane"];
        let text = |key: &str| access[key].as_str().expect("it is printed").to_owned();
        let (kubeconfig, istiod) = (text("kubeconfig"), text("discovery"));
        let credentials = fs::read(&kubeconfig).expect("it is there");
        let credentials: Value = serde_json::from_slice(&credentials).expect("JSON");
        let api = ApiClient::new(&credentials, || Ok(())).expect("a kubeconfig");
        Self { kubeconfig, istiod, api }
    }

    fn fleet(&self, registry: &Registry, result: &Path, arguments: &[&str]) -> Command {
        let mut command = registry.command();
        command.args(["fleet", "--istiod", &self.istiod, "--kubeconfig", &self.kubeconfig, SETTLE, "--json"]);
        command.arg(result).args(arguments);
        command
    }

    fn exists(&self, kind: &str, namespace: Option<&str>, name: &str) -> bool {
        let object = ObjectRef::new("v1", kind, namespace, name);
        self.api.get(&object).expect("the API responds").is_some()
    }
}

fn read(result: &Path) -> Value {
    serde_json::from_slice(&fs::read(result).expect("it was written")).expect("JSON")
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

#[test]
fn a_fleet_at_an_istiod_elsewhere_converges_and_leaves_nothing() {
    let registry = Registry::new();
    let held = registry.up(&["--mesh", "istio", "--mode", "none"]);
    let elsewhere = Elsewhere::new(&held);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let result = folder.path().join("fleet.json");
    let mut foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"of": "others"}});
    foreign["metadata"] = json!({"name": "kept", "namespace": "default"});
    elsewhere.api.apply(&[foreign]).expect("the API takes it");

    let mixed = ["--kind=gateway=1,ztunnel=2,sidecar", "--proxies=30", "--services=20"];
    let changes = ["--change=endpoint-added", "--change=service-entry", "--change=connect-storm"];
    let output = elsewhere.fleet(&registry, &result, &[&mixed[..], &changes].concat()).output();
    let output = output.expect("the binary runs");
    let fleet = read(&result);
    assert!(output.status.success(), "{}: {fleet:#}", stderr(&output));
    assert_eq!((&fleet["schema"], &fleet["verdict"]["valid"]), (&json!("meshmeter.fleet/1"), &json!(true)));
    assert_eq!((&fleet["proxies"]["converged"], &fleet["proxies"]["never"]), (&json!(30), &json!(0)));
    assert_eq!(fleet["kinds"], json!({"gateway": 1, "sidecar": 27, "ztunnel": 2}));
    let kinds: Vec<&str> = fleet["changes"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|change| change["kind"].as_str())
        .collect();
    assert_eq!(kinds, ["endpoint-added", "service-entry", "connect-storm"]);
    for change in fleet["changes"].as_array().expect("a list") {
        assert_eq!((&change["expected"], &change["reached"]), (&json!(30), &json!(30)), "{change}");
        assert!(change["convergence_us"]["p50"].as_f64().is_some_and(|time| time > 0.0), "{change}");
    }
    assert_eq!(fleet["mesh"]["objects"]["Service"], 21);
    let api_server = &fleet["control_plane"][1];
    assert!(api_server["cpu_s"].as_f64().is_some_and(|cpu_s| cpu_s > 0.0), "{api_server}");
    // Its metrics are in the lab alone.
    assert!(fleet["control_plane"][0]["failure"].is_string(), "{}", fleet["control_plane"][0]);
    assert!(!elsewhere.exists("Namespace", None, "fleet-1"));
    assert!(elsewhere.exists("ConfigMap", Some("default"), "kept"));

    // A namespace of others: nothing is written, and it stays.
    elsewhere.api.apply(&[namespace("fleet-2")]).expect("the API takes it");
    let output = elsewhere.fleet(&registry, &result, &["--proxies=2"]).output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("Namespace fleet-2 exists already and is no fleet's"),
        "{}",
        stderr(&output)
    );
    assert!(
        elsewhere.exists("Namespace", None, "fleet-2") && !elsewhere.exists("Namespace", None, "fleet-1")
    );
    elsewhere.api.delete(&[ObjectRef::new("v1", "Namespace", None, "fleet-2")], &|_| ()).expect("it goes");
    elsewhere.api.finalize_namespaces(&["fleet-2"]).expect("it goes");

    let churn = ["--proxies=10", "--services=10", "--churn=1/s", "--duration=30m", "--progress=json"];
    let mut command = elsewhere.fleet(&registry, &result, &churn);
    let mut child = start(&mut command);
    let mut events = said(&mut child);
    let is_measuring = |line: String| line.contains(r#""event":"second""#);
    assert!(events.any(is_measuring), "it reports its seconds");
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    assert!(events.any(|line| line.contains(r#""event":"removing""#)), "it removes its mesh");
    assert_eq!(child.wait().expect("it is a child").code(), Some(1));
    let fleet = read(&result);
    let reasons = fleet["verdict"]["reasons"].as_array().expect("a list");
    assert!(reasons.contains(&json!("interrupted")), "{reasons:?}");
    assert!(fleet["mesh"]["removed_s"].is_number() && !elsewhere.exists("Namespace", None, "fleet-1"));
    assert!(held.interrupt().0.success());
}

#[test]
fn a_fleet_without_an_istiod_makes_a_lab_whose_istiod_is_restarted() {
    let registry = Registry::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let result = folder.path().join("fleet.json");
    let mut command = registry.command();
    command.args([
        "fleet",
        "--proxies=20",
        "--services=10",
        "--change=endpoint-added",
        "--change=istiod-restart",
    ]);
    let output = command.args([SETTLE, "--json"]).arg(&result).output().expect("the binary runs");
    let fleet = read(&result);
    assert!(output.status.success(), "{}: {fleet:#}", stderr(&output));
    assert_eq!(fleet["proxies"]["converged"], 20);
    let istiod = &fleet["control_plane"][0];
    assert_eq!((&istiod["name"], &istiod["restarts"]), (&json!("istiod"), &json!(1)), "{istiod}");
    assert!(istiod["cpu_s"].as_f64().is_some_and(|cpu_s| cpu_s > 0.0), "{istiod}");
    assert!(istiod["chain"]["debounce"]["count"].as_u64().is_some_and(|count| count > 0), "{istiod}");
    assert_eq!(fleet["cut_off"][0]["proxies"], 20, "{}", fleet["cut_off"]);
    let events: Vec<&str> = fleet["events"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|event| event["kind"].as_str())
        .collect();
    for kind in ["istiod-killed", "istiod-ready"] {
        assert!(events.contains(&kind), "{kind} of {events:?}");
    }
}
