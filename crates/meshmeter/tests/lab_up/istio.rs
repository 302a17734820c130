//! `lab up --mesh istio`: using its API from the machine, through the printed kubeconfig.

use crate::held::{Held, Registry, good};
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::object_ref::ObjectRef;
use serde_json::{Value, json};
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

/// A route change propagates within a second, but takes longer on a busy machine.
const PROPAGATION_TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn objects_changed_from_the_machine_take_effect() {
    let registry = Registry::new();
    let mut held = registry.up(&["--mesh", "istio"]);
    let access = &held.lab["control_plane"];
    let path = Path::new(access["kubeconfig"].as_str().expect("it is printed")).to_path_buf();
    assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
    assert!(path.starts_with(registry.path()), "it goes with the lab's folder");
    let kubeconfig: Value = serde_json::from_slice(&fs::read(&path).expect("it is there")).expect("JSON");
    let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str().expect("it has a server");
    assert_eq!(server, access["api"]);
    let address = server.strip_prefix("https://").expect("TLS").to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{address}");

    // Uses the machine's own network, since this process is not in a lab.
    let api = ApiClient::new(&kubeconfig, || Ok(())).expect("a kubeconfig");
    let namespace = access["namespace"].as_str().expect("client and server are in one");
    assert_eq!(kubeconfig["contexts"][0]["context"]["namespace"], namespace);
    for pod in ["client", "server"] {
        let pod = api.get(&ObjectRef::new("v1", "Pod", Some(namespace), pod)).expect("the API answers");
        let pod = pod.expect("it is there");
        assert_eq!(pod["status"]["containerStatuses"][0]["ready"], true, "{pod}");
    }
    assert_eq!(statuses(&registry, &held), ["200"]);
    api.apply(&[answer_by_the_proxy(namespace)]).expect("the API takes it");
    lab::wait_for("the client's proxy answers by itself", PROPAGATION_TIMEOUT, || {
        Ok((statuses(&registry, &held) == ["418"]).then_some(()))
    })
    .expect("the route is changed");

    // Access requires the certificate.
    let mut stranger = kubeconfig.clone();
    stranger["users"][0]["user"] = json!({});
    let refused = ApiClient::new(&stranger, || Ok(())).expect("a kubeconfig").get(&ObjectRef::new(
        "v1",
        "Namespace",
        None,
        "default",
    ));
    let refusal = experiment::environment::error_chain(&refused.expect_err("it is refused"));
    assert!(refusal.contains("Unauthorized"), "{refusal}");
    drop(api);

    let listed: Value = serde_json::from_str(&good(&registry.lab(&["status", "--json"]))).expect("JSON");
    assert_eq!(&listed[0]["control_plane"], access);
    let discovery = access["discovery"].as_str().expect("it is printed").to_owned();
    good(&registry.lab(&["down", held.id()]));
    assert!(held.ended().0.success());
    assert!(!path.exists(), "the credential is gone");
    for address in [&address, &discovery] {
        assert!(TcpStream::connect(address).is_err(), "{address} is closed");
    }
}

#[test]
fn printed_commands_work_as_printed() {
    let registry = Registry::new();
    let held = registry.up(&["--mesh", "istio", "--mode", "ingress", "--set", "proxy.workers=1"]);
    let run = |words: &Value| {
        let words: Vec<&str> = words.as_array().expect("words").iter().filter_map(Value::as_str).collect();
        assert_eq!(words[0], env!("CARGO_BIN_EXE_meshmeter"));
        good(&registry.command().args(&words[1..]).output().expect("the binary runs"))
    };
    let connected: Value =
        serde_json::from_str(&run(&held.lab["control_plane"]["proxy_status"])).expect("JSON");
    let names: Vec<&str> =
        connected.as_array().expect("a list").iter().filter_map(|proxy| proxy["proxy"].as_str()).collect();
    let namespace = held.lab["control_plane"]["namespace"].as_str().expect("it is printed");
    for proxy in ["ingress", "server"] {
        assert!(names.contains(&format!("{proxy}.{namespace}").as_str()), "{proxy} of {names:?}");
    }
    for proxy in held.lab["proxies"].as_array().expect("it has proxies") {
        let dump: Value = serde_json::from_str(&run(&proxy["config_dump"])).expect("JSON");
        assert!(dump["configs"].is_array(), "{proxy}");
    }
    // The client of this mode needs certificates, which the load command names.
    let mut load = held.lab["load"].clone();
    let words = load.as_array_mut().expect("words");
    let duration = words.iter().position(|word| word == "10s").expect("it says for how long");
    words[duration] = json!("1s");
    let url = words.pop().expect("it ends with the URL");
    words.extend([json!("--json"), json!("-"), url]);
    let words: Vec<&str> = load.as_array().expect("words").iter().filter_map(Value::as_str).collect();
    // A busy machine makes the figures invalid, which the exit status shows; the responses arrived
    // nevertheless.
    let output = registry.command().args(&words[1..]).output().expect("the binary runs");
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(result["requests"]["status"]["200"].as_u64().is_some_and(|count| count > 0), "{result}");
    let (status, words) = held.interrupt();
    assert!(status.success(), "{status}: {words}");
}

/// A route for which the client's own proxy responds.
fn answer_by_the_proxy(namespace: &str) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": {"name": "server", "namespace": namespace},
        "spec": {"hosts": ["server"], "http": [{"directResponse": {"status": 418}}]},
    })
}

/// Statuses of a few requests from the client's pod.
fn statuses(registry: &Registry, held: &Held) -> Vec<String> {
    let url = held.lab["url"].as_str().expect("it is printed");
    let meshmeter = env!("CARGO_BIN_EXE_meshmeter");
    let load = [meshmeter, "load", "--clients", "1", "--requests", "5", "--json", "-", url];
    let output = registry.lab(&[&["exec", "--lab", held.id(), "client", "--"], &load[..]].concat());
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let statuses = result["requests"]["status"].as_object().expect("counts by status");
    statuses.keys().cloned().collect()
}
