//! `meshmeter fleet` against a real istiod: one in a lab that is up, as if it were elsewhere, and one in its
//! own lab.

use crate::command::{said, start, stderr, stdout};
use crate::forwarder::Forwarder;
use crate::held::{Held, Registry};
use crate::receiver::{Stub, otlp};
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::object_ref::ObjectRef;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Longer than needed on a busy machine.
const SETTLE: &str = "--settle=3m";
const GONE_TIMEOUT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

const SHOP: &str = "
name: shop
defaults: {namespace: front, replicas: 5}
services: [{name: web}, {name: cart}, {name: prices, namespace: back}, {name: stock, namespace: back}]
";

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

    /// A copy of this kubeconfig with a changed part.
    fn kubeconfig_with(&self, folder: &Path, name: &str, change: impl FnOnce(&mut Value)) -> String {
        let mut kubeconfig: Value =
            serde_json::from_slice(&fs::read(&self.kubeconfig).expect("it is there")).expect("JSON");
        change(&mut kubeconfig);
        let path = folder.join(name);
        fs::write(&path, kubeconfig.to_string()).expect("it can be written");
        path.to_str().expect("it is UTF-8").to_owned()
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
fn fleet_against_remote_istiod_converges_and_leaves_nothing() {
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
        // On a busy machine proxies may have the change before the API has acknowledged the write.
        let [p50_us, written_s] =
            [&change["convergence_us"]["p50"], &change["written_s"]].map(|time| time.as_f64().unwrap_or(0.0));
        assert!(p50_us > 0.0 || written_s > 0.1, "{change}");
    }
    assert_eq!(fleet["mesh"]["objects"]["Service"], 21);
    let api_server = &fleet["control_plane"][1];
    assert!(api_server["cpu_s"].as_f64().is_some_and(|cpu_s| cpu_s > 0.0), "{api_server}");
    // Its metrics are only reachable inside the lab.
    assert!(fleet["control_plane"][0]["failure"].is_string(), "{}", fleet["control_plane"][0]);
    assert!(!elsewhere.exists("Namespace", None, "fleet-1"));
    assert!(elsewhere.exists("ConfigMap", Some("default"), "kept"));

    // A namespace of somebody else: nothing is written, and it stays.
    elsewhere.api.apply(&[namespace("fleet-2")]).expect("the API takes it");
    let output = elsewhere.fleet(&registry, &result, &["--proxies=2"]).output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("Namespace fleet-2 exists already and does not belong to a fleet"),
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

    a_user_without_rights_is_told_which_are_missing(&registry, &elsewhere, folder.path());
    what_a_second_interrupt_leaves_is_removed_by_name(&registry, &elsewhere, folder.path());
    missing_definitions_are_named(&registry, &elsewhere);
    let kubeconfig = elsewhere.kubeconfig_with(folder.path(), "of-a-lab-that-is-gone", |_| ());
    assert!(held.interrupt().0.success());
    let mut command = registry.command();
    command.args(["fleet", "--istiod", &elsewhere.istiod, "--kubeconfig", &kubeconfig, "--proxies=2"]);
    let output = command.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("is the API server of the kubeconfig up"), "{}", stderr(&output));
}

fn a_user_without_rights_is_told_which_are_missing(
    registry: &Registry,
    elsewhere: &Elsewhere,
    folder: &Path,
) {
    let mut account = json!({"apiVersion": "v1", "kind": "ServiceAccount"});
    account["metadata"] = json!({"name": "powerless", "namespace": "default"});
    let mut role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
    ]});
    role["metadata"] = json!({"name": "configmap-reader"});
    let mut binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "configmap-reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "powerless", "namespace": "default"}],
    });
    binding["metadata"] = json!({"name": "configmap-reader"});
    elsewhere.api.apply(&[account, role, binding]).expect("the API takes it");
    let audience = "https://kubernetes.default.svc.cluster.local";
    let token = elsewhere.api.tokens(&[("default", "powerless")], audience).expect("a token").remove(0);
    let kubeconfig = elsewhere.kubeconfig_with(folder, "powerless", |kubeconfig| {
        kubeconfig["users"][0]["user"] = json!({"token": token});
    });
    let mut command = registry.command();
    command.args(["fleet", "--istiod", &elsewhere.istiod, "--kubeconfig", &kubeconfig, "--proxies=2"]);
    let output = command.output().expect("the binary runs");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    for part in
        ["the kubeconfig's user may not ", "create namespaces", "create services", "in all namespaces"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!elsewhere.exists("Namespace", None, "fleet-1"));
}

fn what_a_second_interrupt_leaves_is_removed_by_name(
    registry: &Registry,
    elsewhere: &Elsewhere,
    folder: &Path,
) {
    let server = |kubeconfig: &Value| {
        kubeconfig["clusters"][0]["cluster"]["server"].as_str().expect("an address").to_owned()
    };
    let mut forwarder = None;
    let kubeconfig = elsewhere.kubeconfig_with(folder, "forwarded", |kubeconfig| {
        let address = server(kubeconfig);
        let authority = address.trim_start_matches("https://");
        let started = Forwarder::start(authority.parse().expect("an address of the loopback"));
        kubeconfig["clusters"][0]["cluster"]["server"] = json!(format!("https://{}", started.address()));
        forwarder = Some(started);
    });
    let forwarder = forwarder.expect("it was started");
    let mut command = registry.command();
    command.args(["fleet", "--istiod", &elsewhere.istiod, "--kubeconfig", &kubeconfig, SETTLE]);
    command.args(["--proxies=5", "--services=5", "--churn=1/s", "--duration=30m", "--progress=json"]);
    let mut child = start(command.arg("--run-id=cut-short"));
    let pid = Pid::from_child(&child);
    let mut said = said(&mut child);
    assert!(said.any(|line| line.contains(r#""event":"second""#)), "it reports its seconds");
    // Blocks the removal, so that the second interrupt comes before its end.
    forwarder.block();
    kill_process(pid, Signal::INT).expect("it runs");
    assert!(said.any(|line| line.contains(r#""event":"removing""#)), "it begins to remove its mesh");
    kill_process(pid, Signal::INT).expect("it runs");
    let removal = format!("meshmeter fleet --remove cut-short --kubeconfig {kubeconfig}");
    let words: Vec<String> = said.collect();
    assert!(words.iter().any(|line| line.ends_with(&removal)), "{words:?}");
    assert_eq!(child.wait().expect("it is a child").code(), Some(130));
    assert!(elsewhere.exists("Namespace", None, "fleet-1"));

    let remove = |run_id: &str| {
        let mut command = registry.command();
        let output =
            command.args(["fleet", "--remove", run_id, "--kubeconfig", &elsewhere.kubeconfig]).output();
        let output = output.expect("the binary runs");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    assert!(remove("another").contains("There is nothing of run another."));
    assert!(elsewhere.exists("Namespace", None, "fleet-1"));
    let removed = remove("cut-short");
    assert!(removed.starts_with("Removed ") && removed.contains(" objects of run cut-short."), "{removed}");
    assert!(!elsewhere.exists("Namespace", None, "fleet-1"));
    assert!(elsewhere.exists("ConfigMap", Some("default"), "kept"));
}

/// The API server and its client are those of a cluster without Istio, except for this one kind.
fn missing_definitions_are_named(registry: &Registry, elsewhere: &Elsewhere) {
    let definition = ObjectRef::new(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        None,
        "serviceentries.networking.istio.io",
    );
    elsewhere.api.delete(&[definition], &|_| ()).expect("it goes");
    let entry = [("networking.istio.io/v1", "ServiceEntry")];
    let deadline = Instant::now() + GONE_TIMEOUT;
    // The API server stops serving a kind some time after its definition is deleted.
    while elsewhere.api.served(&entry).is_ok_and(|served| !served.is_empty()) {
        assert!(Instant::now() < deadline, "the kind is still served");
        std::thread::sleep(POLL_INTERVAL);
    }
    let mut command = registry.command();
    command.args([
        "fleet",
        "--istiod",
        &elsewhere.istiod,
        "--kubeconfig",
        &elsewhere.kubeconfig,
        "--proxies=2",
    ]);
    let output = command.output().expect("the binary runs");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    for part in [
        "the Kubernetes API has no kind ServiceEntry in networking.istio.io/v1",
        "Istio's definitions (CRDs)",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!elsewhere.exists("Namespace", None, "fleet-1"));
}

#[test]
fn fleet_without_istiod_creates_lab_and_restarts_its_istiod() {
    let registry = Registry::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let result = folder.path().join("fleet.json");
    let topology = folder.path().join("shop.yaml");
    fs::write(&topology, SHOP).expect("it can be written");
    let metrics = Stub::taking("");
    let mut command = registry.command();
    command.arg("fleet").arg("--topology").arg(&topology).args(["--otlp", &metrics.url()]).args([
        "--proxies=20",
        "--witnesses=1",
        "--change=endpoint-added=2",
        "--change=service-entry",
        "--change=link-down",
        "--change=istiod-restart",
    ]);
    let output = command.args([SETTLE, "--json"]).arg(&result).output().expect("the binary runs");
    let fleet = read(&result);
    assert!(output.status.success(), "{}: {fleet:#}", stderr(&output));
    assert_eq!(fleet["proxies"]["converged"], 20);
    let mesh = &fleet["mesh"];
    assert_eq!((&mesh["topology"], &mesh["objects"]["Service"]), (&json!("shop"), &json!(4)), "{mesh}");
    assert_eq!(mesh["objects"]["Pod"], 20, "{mesh}");
    let export = &fleet["exports"][0];
    assert_eq!((&export["protocol"], &export["failed_requests"]), (&json!("otlp"), &json!(0)), "{export}");
    let sent = otlp::read(&metrics.received());
    let most = |name: &str, key: &str, value: &str| {
        let points = sent.get(name).unwrap_or_else(|| panic!("{name}: {:?}", sent.keys()));
        let points = points.iter().filter(|point| point.attributes.get(key).is_some_and(|own| own == value));
        points.filter_map(|point| point.value).fold(0.0, f64::max)
    };
    assert_eq!(most("meshmeter_fleet_proxies", "state", "complete"), 20.0);
    // One of them was made while the link was down.
    assert_eq!(most("meshmeter_fleet_changes_total", "kind", "endpoint-added"), 3.0);
    assert!(most("meshmeter_fleet_convergence_quantile_seconds", "kind", "service-entry") > 0.0);
    let istiod = &fleet["control_plane"][0];
    assert_eq!((&istiod["name"], &istiod["restarts"]), (&json!("istiod"), &json!(1)), "{istiod}");
    assert!(istiod["cpu_s"].as_f64().is_some_and(|cpu_s| cpu_s > 0.0), "{istiod}");
    assert!(istiod["chain"]["debounce"]["count"].as_u64().is_some_and(|count| count > 0), "{istiod}");
    let outage = |cause: &str| {
        let outages = fleet["cut_off"].as_array().expect("a list");
        outages
            .iter()
            .find(|outage| outage["cause"] == cause)
            .unwrap_or_else(|| panic!("{cause}: {outages:?}"))
    };
    assert_eq!(outage("istiod-restart")["proxies"], 20, "{}", fleet["cut_off"]);
    // Every tenth proxy: its connection survives, and it catches up with the changes made in the meantime.
    let down = outage("link-down");
    assert_eq!((&down["proxies"], &down["recovery_us"]["censored"]), (&json!(2), &json!(0)), "{down}");
    assert!(down["recovery_us"]["p50"].as_f64().is_some_and(|time| time > 4e6), "{down}");
    // A real sidecar saw each change of the mesh, too.
    let witnesses = fleet["witnesses"].as_array().expect("a list");
    let kinds: Vec<&str> = witnesses.iter().filter_map(|witness| witness["kind"].as_str()).collect();
    assert_eq!(kinds, ["endpoint-added", "endpoint-added", "service-entry", "endpoint-added"]);
    for witness in witnesses {
        assert!(witness["updated_us"].as_f64().is_some_and(|time| time > 0.0), "{witness}");
        assert!(witness["rank"].as_f64().is_some_and(|rank| (0.0..=1.0).contains(&rank)), "{witness}");
        // The difference is less than the time between two changes, even on a busy machine.
        let difference_us = witness["difference_us"].as_f64().expect("they are compared");
        assert!(difference_us.abs() < 1e6, "{witness}");
        assert!(witness["later_us"].is_number() && witness["nearest_us"].is_number(), "{witness}");
    }
    let shown = stdout(&output);
    assert!(shown.contains("Real sidecars") && shown.contains("later than the mean, ms"), "{shown}");
    println!("{shown}");
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
