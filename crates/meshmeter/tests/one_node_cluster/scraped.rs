//! Usage out of a real Prometheus that scrapes the cluster's kubelet, for those who may not read nodes.

use crate::cluster::OneNodeCluster;
use crate::runs::{Run, TIMEOUT};
use experiment::schema::{Role, TrialOutcome, TrialRecord};
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;
use std::time::Instant;

/// The node's address, where the kubelet listens too.
const NODE: &str = "10.240.0.1";
const LOAD: &str = "rate: [100], connections: 2, warmup: 1s, duration: 40s";

#[test]
fn a_prometheus_that_scrapes_kubelets_takes_their_place() {
    let cluster = OneNodeCluster::up();
    cluster.import_meshmeter();
    let run = |name| Run::new(&cluster, name, "pair", LOAD);
    let absent = run("absent").with(&["--prometheus", "default/absent:9090"]);
    absent.assert_refused(3, "query Prometheus at default/absent:9090: ");
    let mut prometheus = start_prometheus(&cluster);

    let run =
        run("scraped").with(&["--prometheus", "default/prometheus:9090", "--repeats", "1", "--retakes", "0"]);
    let output = run.output();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let trials: Vec<TrialRecord> =
        run.trials().into_iter().map(|trial| serde_json::from_value(trial).unwrap()).collect();
    let [trial] = trials.as_slice() else { panic!("{said}") };
    assert_eq!(trial.outcome, TrialOutcome::Finished, "{said}{:?}", trial.verdict);
    let server = trial.components.iter().find(|component| component.role == Role::App);
    let server = server.unwrap_or_else(|| panic!("{:?}", trial.verdict.notes));
    assert_eq!((server.name.as_str(), server.cpu_source.as_str()), ("server", "prometheus"));
    assert!(server.cpu_user_s > 0.0 && server.cpu_system_s > 0.0 && server.window_s > 10.0, "{server:?}");
    assert!(
        server.memory_working_set_bytes > Some(0) && server.memory_anonymous_bytes > Some(0),
        "{server:?}"
    );
    // 100 requests/s, each with a head and a response.
    assert!(server.network.is_some_and(|network| network.received_bytes > 10_000), "{server:?}");
    assert!(trial.nodes.is_empty() && trial.machine.is_none());
    drop(cluster);
    // It is one of the cluster's processes.
    prometheus.wait().unwrap();
}

/// On the node, behind a Service without pods. It ends with the cluster.
fn start_prometheus(cluster: &OneNodeCluster) -> std::process::Child {
    let (folder, private) = (cluster.folder().display(), cluster.folder().join("node"));
    let tls = json!({
        "ca_file": private.join("authority.crt"),
        "cert_file": private.join("admin.crt"),
        "key_file": private.join("admin.key"),
    });
    let kubelet = json!({
        "job_name": "kubelet", "scrape_interval": "2s", "scrape_timeout": "2s", "scheme": "https",
        "metrics_path": "/metrics/cadvisor", "tls_config": tls,
        "static_configs": [{"targets": [format!("{NODE}:10250")]}],
    });
    // JSON is YAML.
    let configuration = cluster.folder().join("prometheus.yml");
    fs::write(&configuration, json!({"scrape_configs": [kubelet]}).to_string()).unwrap();
    let arguments = [
        "prometheus".to_owned(),
        format!("--config.file={}", configuration.display()),
        format!("--storage.tsdb.path={folder}/prometheus"),
        format!("--web.listen-address={NODE}:9090"),
    ];
    let mut command = cluster.command("enter", arguments);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();

    let port = json!({"name": "http", "port": 9090});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "prometheus"}, "spec": {"ports": [port]}},
        {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": [port],
            "metadata": {"name": "prometheus", "labels": {"kubernetes.io/service-name": "prometheus"}},
            "endpoints": [{"addresses": [NODE], "conditions": {"ready": true}}]},
    ]});
    let file = cluster.folder().join("prometheus.json");
    fs::write(&file, objects.to_string()).unwrap();
    cluster.kubectl(&["apply", "--filename", file.to_str().unwrap()]);
    wait_until_scraped(cluster);
    child
}

fn wait_until_scraped(cluster: &OneNodeCluster) {
    let query = "/api/v1/namespaces/default/services/prometheus:9090/proxy/api/v1/query?query=container_cpu_usage_seconds_total";
    let began = Instant::now();
    loop {
        let output = cluster.try_run("kubectl", ["get", "--raw", query]);
        let response: Option<Value> = serde_json::from_slice(&output.stdout).ok();
        let series = response.as_ref().and_then(|response| response["data"]["result"].as_array());
        if series.is_some_and(|series| !series.is_empty()) {
            return;
        }
        assert!(began.elapsed() < TIMEOUT, "{}", String::from_utf8_lossy(&output.stderr));
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}
