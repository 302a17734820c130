//! Usage from a real Prometheus that scrapes the cluster's kubelet, for users who may not read nodes.

use crate::cluster::OneNodeCluster;
use crate::runs::{POLL_INTERVAL, Run, TIMEOUT};
use results::{Role, TrialOutcome, TrialRecord};
use serde_json::{Value, json};
use std::fs;
use std::time::Instant;

/// The node's address, on which the kubelet also listens.
const NODE: &str = "10.240.0.1";
const NAME: &str = "prometheus";
const PROGRAM: &str = "/usr/bin/prometheus";
/// A kubelet's default: windows with two samples of each container then take a minute.
const SAMPLE_INTERVAL: &str = "10s";
const LOAD: &str = "rate: [100], connections: 2, warmup: 1s, duration: 60s";

#[test]
fn prometheus_scraping_kubelets_replaces_them() {
    let cluster = OneNodeCluster::sampled_every(SAMPLE_INTERVAL);
    cluster.import_meshmeter();
    let run = |name| Run::new(&cluster, name, "pair", LOAD);
    let absent = run("absent").with(&["--prometheus", "default/absent:9090"]);
    absent.assert_refused(3, "query Prometheus at default/absent:9090: ");
    start_prometheus(&cluster);

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
}

/// Debian's Prometheus in a pod, behind a Service.
fn start_prometheus(cluster: &OneNodeCluster) {
    cluster.import_program("prometheus", PROGRAM);
    let kubelet = json!({
        "job_name": "kubelet", "scrape_interval": "2s", "scrape_timeout": "2s", "scheme": "https",
        "metrics_path": "/metrics/cadvisor",
        "tls_config": {
            "ca_file": "/settings/authority.crt", "cert_file": "/settings/admin.crt", "key_file": "/settings/admin.key",
        },
        "static_configs": [{"targets": [format!("{NODE}:10250")]}],
    });
    let private = cluster.folder().join("node");
    let read = |name: &str| fs::read_to_string(private.join(name)).unwrap();
    // JSON is YAML.
    let settings = json!({
        "prometheus.yml": json!({"scrape_configs": [kubelet]}).to_string(),
        "authority.crt": read("authority.crt"), "admin.crt": read("admin.crt"), "admin.key": read("admin.key"),
    });
    let (metadata, port) =
        (json!({"name": NAME, "labels": {"app": NAME}}), json!({"name": "http", "port": 9090}));
    let pod = json!({
        "volumes": [{"name": "settings", "secret": {"secretName": NAME}}, {"name": "data", "emptyDir": {}}],
        "containers": [{
            "name": NAME, "image": "localhost/prometheus:test", "imagePullPolicy": "Never",
            "args": ["--config.file=/settings/prometheus.yml", "--storage.tsdb.path=/data"],
            "volumeMounts": [{"name": "settings", "mountPath": "/settings"}, {"name": "data", "mountPath": "/data"}],
            "readinessProbe": {"httpGet": {"path": "/-/ready", "port": 9090}, "periodSeconds": 1},
        }],
        // Secret contents and empty directories belong to the group.
        "securityContext": {"fsGroup": 65532},
    });
    let service = json!({"ports": [port], "selector": {"app": NAME}});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": settings},
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod},
    ]});
    let file = cluster.folder().join("prometheus.json");
    fs::write(&file, objects.to_string()).unwrap();
    cluster.kubectl(&["apply", "--filename", file.to_str().unwrap()]);
    cluster.kubectl(&["wait", "--for=condition=Ready", "pod/prometheus", "--timeout=300s"]);
    wait_until_scraped(cluster);
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
        std::thread::sleep(POLL_INTERVAL);
    }
}
