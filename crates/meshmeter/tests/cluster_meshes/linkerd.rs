//! Linkerd, with programs that the user provides.

use crate::cluster::{OneNodeCluster, SAMPLED_WINDOW};
use crate::study::{Study, assert_proven, trials};
use crate::{assert_clean, has_used};
use results::{Mode, Role, TrialRecord};
use std::path::PathBuf;
use std::thread;

/// Directory with Linkerd's programs (`scripts/cluster/linkerd.sh`).
const VARIABLE: &str = "MESHMETER_LINKERD";
const LINKERD: &[&str] = &["--set=mesh=linkerd"];

pub(crate) const CASES: &[(&str, fn())] =
    &[("paths_through_linkerds_proxies_are_proven", paths_through_linkerds_proxies_are_proven)];

/// Why Linkerd is not available; `None` if it is.
pub(crate) fn missing() -> Option<String> {
    folder().is_none().then(|| format!("{VARIABLE} names no folder with Linkerd's programs"))
}

fn folder() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).map(PathBuf::from)
}

fn paths_through_linkerds_proxies_are_proven() {
    let cluster = &OneNodeCluster::up();
    cluster.import_meshmeter();
    cluster.run("linkerd", [folder().unwrap()]);
    let modes = "none,sidecar";
    // Long enough for two kubelet samples of each container.
    let (rate, generators, duration) = (60, 2, SAMPLED_WINDOW);
    let name = "mesh-modes";
    let pair = Study { name, namespace: "pair", modes, rate, generators, duration, arguments: LINKERD };
    let of_tcp = ["--set=mesh=linkerd", "--set=load.protocol=tcp"];
    let tcp = Study { namespace: "raw", modes: "sidecar", duration: "5s", arguments: &of_tcp, ..pair };
    let app = Study { name: "emojivoto", namespace: "voting", rate: 10, generators: 1, ..pair };
    let (of_pair, of_app) = thread::scope(|scope| {
        let app = scope.spawn(|| trials(&app.run(cluster)));
        (trials(&pair.run(cluster)), app.join().unwrap())
    });
    let of_tcp = trials(&tcp.run(cluster));
    for trial in of_pair.iter().chain(&of_app).chain(&of_tcp) {
        check(trial);
    }
    let last = of_pair.iter().find(|trial| trial.mode == Mode::Sidecar).unwrap();
    let hops: Vec<String> = last.path.hops.iter().map(|hop| hop.describe()).collect();
    assert_eq!(hops[..2], ["HTTP/1.1", "HTTP/2"], "Linkerd's proxies speak HTTP/2 with each other");
    for name in ["client-1-proxy", "client-2-proxy", "server-proxy"] {
        assert!(has_used(last, name, Role::Proxy), "{name}: {:?}", last.components);
    }
    for name in
        ["linkerd-destination", "linkerd-destination-policy", "linkerd-identity", "linkerd-proxy-injector"]
    {
        assert!(last.components.iter().any(|component| component.name == name), "{name}");
    }
    past_a_proxy_is_told(cluster, pair);
    assert_clean(cluster);
}

fn check(trial: &TrialRecord) {
    assert_proven(trial);
    assert_eq!(trial.mode == Mode::None, trial.path.proxies.is_empty(), "{:?}", trial.path);
    for proxy in &trial.path.proxies {
        assert!(proxy.tls_expected && proxy.tls_handshakes > 0, "{proxy:?}");
        let bytes = proxy.streams.as_ref().map_or(0, |streams| streams.received_bytes);
        assert!(proxy.requests_received + bytes > 0, "{proxy:?}");
    }
    let is_said = trial
        .verdict
        .notes
        .iter()
        .any(|note| note.starts_with("Linkerd sets the worker threads of its proxies"));
    assert_eq!(is_said, trial.mode == Mode::Sidecar, "{:?}", trial.verdict.notes);
}

/// Requests that skip the server's proxy (`skip-inbound-ports`) are reported for both proxies.
fn past_a_proxy_is_told(cluster: &OneNodeCluster, pair: Study<'_>) {
    let namespace = "past";
    cluster.kubectl(&["create", "namespace", namespace]);
    let annotation = "config.linkerd.io/skip-inbound-ports=8080";
    cluster.kubectl(&["annotate", "namespace", namespace, annotation]);
    let arguments = &["--set=mesh=linkerd", "--existing-namespaces"];
    let past = Study { namespace, modes: "sidecar", duration: "5s", arguments, ..pair };
    let trial = trials(&past.run(cluster)).remove(0);
    assert!(!trial.path.proven && !trial.verdict.valid, "{:?}", trial.path);
    let reasons = trial.path.reasons.join("; ");
    assert!(reasons.contains("server-proxy saw 0 of"), "{reasons}");
    assert!(reasons.contains("client-proxy passed requests in plaintext"), "{reasons}");
}
