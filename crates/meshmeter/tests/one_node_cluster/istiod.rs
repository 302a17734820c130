//! `meshmeter fleet` against an istiod that runs in a cluster, through a port forward.

use crate::cluster::OneNodeCluster;
use crate::command::{meshmeter, stderr};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

/// `kubectl port-forward` to istiod. Stops when dropped.
struct Forwarded {
    process: Child,
    /// Forwarded address of istiod's port for proxies.
    istiod: String,
    metrics: String,
}

impl Forwarded {
    fn new(cluster: &OneNodeCluster) -> Self {
        let arguments = ["port-forward", "--namespace=istio-system", "deployment/istiod", ":15012", ":15014"];
        let mut command = cluster.command("kubectl", arguments);
        let mut process =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the script runs");
        let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        let mut address_of = |port: &str| {
            let line = lines
                .by_ref()
                .map_while(Result::ok)
                .find(|line| line.contains("127.0.0.1:") && line.ends_with(port));
            let line = line.unwrap_or_else(|| panic!("port {port} is forwarded"));
            let (_, address) = line.split_once("from ").expect("it names the address");
            address.split_once(' ').expect("an arrow follows").0.to_owned()
        };
        let (istiod, metrics) = (address_of("15012"), address_of("15014"));
        // It continues to write a line per connection.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { process, istiod, metrics: format!("http://{metrics}/metrics") }
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn fleet_converges_and_leaves_nothing(cluster: &OneNodeCluster) {
    let before = cluster.kubectl(&["get", "namespaces", "--output=name"]);
    let forwarded = Forwarded::new(cluster);
    let kubeconfig = cluster.folder().join("kubeconfig");
    let fleet = |arguments: &[&str]| {
        let mut command = meshmeter();
        command.args(["fleet", "--istiod", &forwarded.istiod, "--istiod-metrics", &forwarded.metrics]);
        command.arg("--kubeconfig").arg(&kubeconfig).args(["--settle=3m", "--progress=off", "--json=-"]);
        let output = command.args(arguments).output().expect("the binary runs");
        let result: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
        assert!(output.status.success(), "{}: {result:#}", stderr(&output));
        result
    };
    // Services have endpoints without pods, since controllers would replace them.
    let changes = ["--change=endpoint-added=2", "--change=virtual-service", "--change=service-entry"];
    let mixed = ["--proxies=20", "--services=10", "--kind=gateway=2,sidecar"];
    let result = fleet(&[&mixed[..], &changes].concat());
    assert_eq!(result["proxies"]["converged"], 20, "{result:#}");
    for change in result["changes"].as_array().expect("a list") {
        assert_eq!((&change["expected"], &change["reached"]), (&json!(20), &json!(20)), "{change}");
    }
    let control_plane = result["control_plane"].as_array().expect("a list");
    assert!(control_plane.iter().all(|part| part["cpu_s"].is_number()), "{control_plane:?}");

    // Pods that no node runs.
    let result = fleet(&["--proxies=4", "--services=4", "--simulate-pods", "--change=pod-restarted"]);
    assert_eq!((&result["mesh"]["objects"]["Pod"], &result["changes"][0]["reached"]), (&json!(8), &json!(4)));
    assert_eq!(cluster.kubectl(&["get", "namespaces", "--output=name"]), before);
}
