//! Failures on a cluster, before a run and during one: named in one line, trials invalid with a reason,
//! nothing left behind. Cases run concurrently in separate namespaces; those that break the cluster come
//! last.

use crate::cluster::OneNodeCluster;
use crate::runs::{IMAGE, Run, kubeconfig_of, meshmeter, text};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;

const SHORT: &str = "rate: [50], connections: 2, warmup: 1s, duration: 2s";
/// Long enough to be ended by the failure.
const LONG: &str = "rate: [50], connections: 2, warmup: 1s, duration: 100s, timeout: 2s";

#[test]
fn failures_are_named_in_one_line_spoil_their_trial_and_leave_nothing() {
    let cluster = &OneNodeCluster::up();
    cluster.import_meshmeter();
    thread::scope(|scope| {
        let cases: [fn(&OneNodeCluster); 9] = [
            unreachable,
            denied,
            crowded,
            not_pulled,
            without_mesh,
            generator_deleted,
            service_out_of_memory,
            generator_out_of_memory,
            command_killed,
        ];
        for case in cases {
            scope.spawn(move || case(cluster));
        }
    });
    unwatched(cluster);
    let left = text(&meshmeter(cluster).args(["cluster", "clean"]).output().unwrap().stdout);
    assert_eq!(left.trim(), "nothing is left of any run");
    let namespaces = cluster.kubectl(&["get", "namespaces", "--output=name"]);
    assert!(!namespaces.contains("meshmeter-case"), "{namespaces}");
}

/// Neither of these clusters exists. One accepts connections and does not respond.
fn unreachable(cluster: &OneNodeCluster) {
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let at = |name: &str, port: u16| {
        let path: PathBuf = cluster.folder().join(name);
        let own = fs::read_to_string(cluster.folder().join("kubeconfig")).unwrap();
        let (before, after) = own.split_once("https://127.0.0.1:").unwrap();
        let (_, after) = after.split_once('"').unwrap();
        fs::write(&path, format!("{before}https://127.0.0.1:{port}\"{after}")).unwrap();
        path
    };
    let run = |name, arguments: &[&str], says: &str| {
        Run::new(cluster, name, "pair", SHORT).with(arguments).assert_refused(3, says);
    };
    run("case-context", &["--context", "other"], "use context other: the kubeconfig has no such context");
    // A port that is reserved for this cannot be used by anybody else.
    let closed = at("closed", 1);
    run(
        "case-closed",
        &["--kubeconfig", closed.to_str().unwrap()],
        "reach https://127.0.0.1:1 (context meshmeter-cluster)",
    );
    let silent = at("silent", silent.local_addr().unwrap().port());
    run("case-silent", &["--kubeconfig", silent.to_str().unwrap()], "no response");
}

/// Rights of a run without port forwards.
fn denied(cluster: &OneNodeCluster) {
    cluster.kubectl(&["create", "namespace", "case-denied"]);
    cluster.kubectl(&["create", "serviceaccount", "weak", "--namespace=case-denied"]);
    let rbac = ["cluster", "rbac", "--namespace", "case-denied", "--service-account", "case-denied:weak"];
    let roles = meshmeter(cluster).args(rbac).output().unwrap();
    let file = cluster.folder().join("roles.yaml");
    fs::write(&file, roles.stdout).unwrap();
    cluster.kubectl(&["apply", "--filename", file.to_str().unwrap()]);
    let patch = r#"--patch=[{"op": "remove", "path": "/rules/4"}]"#;
    let role = "meshmeter.account.case-denied.weak";
    cluster.kubectl(&["patch", "role", role, "--namespace=case-denied", "--type=json", patch]);
    let token = cluster.kubectl(&["create", "token", "weak", "--namespace=case-denied"]);
    let kubeconfig = cluster.folder().join("weak");
    fs::write(&kubeconfig, kubeconfig_of(cluster, &format!("  user: {{token: {}}}", token.trim()))).unwrap();
    let says = "this user may not in namespace case-denied: get pods/portforward, create pods/portforward";
    let arguments = ["--existing-namespaces", "--kubeconfig", kubeconfig.to_str().unwrap()];
    Run::new(cluster, "case-denied", "pair", SHORT).with(&arguments).assert_refused(3, says);
}

/// Existing namespaces with a quota, or with limits that no pod meets.
fn crowded(cluster: &OneNodeCluster) {
    let existing = |name: &'static str, objects: &str| {
        cluster.kubectl(&["create", "namespace", name]);
        let file = cluster.folder().join(format!("{name}.yaml"));
        fs::write(&file, objects).unwrap();
        cluster.kubectl(&["apply", "--namespace", name, "--filename", file.to_str().unwrap()]);
        Run::new(cluster, name, "pair", SHORT)
    };
    let quota = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: small}, spec: {hard: {pods: '1'}}}";
    let run = existing("case-quota", quota);
    run.assert_refused(3, "namespace case-quota exists already and is not Meshmeter's");
    run.with(&["--existing-namespaces"])
        .assert_refused(3, "quota small of namespace case-quota leaves too little pods");
    let ratio = "{apiVersion: v1, kind: LimitRange, metadata: {name: bounds}, spec: {limits: [{type: Pod, min: {cpu: 10m}}]}}";
    let run = existing("case-limits", ratio).with(&["--existing-namespaces"]);
    run.assert_refused(3, "minimum cpu usage per Pod is 10m");
    let other = "{apiVersion: v1, kind: Service, metadata: {name: server}, spec: {ports: [{port: 1}]}}";
    let run = existing("case-taken", other).with(&["--existing-namespaces"]);
    run.assert_refused(3, "Service case-taken/server exists already and is not Meshmeter's");
    assert_eq!(run.kubectl(&["get", "service", "server", "--output=jsonpath={.spec.ports[0].port}"]), "1");
}

fn not_pulled(cluster: &OneNodeCluster) {
    let run = Run::new(cluster, "case-image", "pair", SHORT).with(&["--image", "localhost/absent:1"]);
    run.assert_refused(3, "ErrImagePull");
    assert_eq!(run.trials().len(), 1, "the others would fail the same way");
}

fn without_mesh(cluster: &OneNodeCluster) {
    let run = Run::new(cluster, "case-mesh", "pair", SHORT).with(&["--set", "modes=[none, sidecar]"]);
    run.assert_refused(3, "Istio injects no sidecars into this cluster");
}

fn generator_deleted(cluster: &OneNodeCluster) {
    let run = Run::new(cluster, "case-deleted", "pair", LONG).with(&["--repeats", "1"]);
    let reasons =
        run.broken(|| drop(run.kubectl(&["delete", "pod", "--selector=app=client", "--wait=false"])));
    assert!(reasons[0].starts_with("failed: in the trial, client "), "{reasons:?}");
}

/// The cluster has Istio, but the namespace is excluded from injection.
pub fn not_injected(cluster: &OneNodeCluster) {
    cluster.kubectl(&["create", "namespace", "case-left-out"]);
    cluster.kubectl(&["label", "namespace", "case-left-out", "istio-injection=disabled"]);
    let arguments = ["--existing-namespaces", "--set", "modes=[sidecar]"];
    let run = Run::new(cluster, "case-left-out", "pair", SHORT).with(&arguments);
    run.assert_refused(3, "has no container istio-proxy");
    let left = ["get", "deployments,services,jobs,peerauthentications", "--output=name"];
    assert_eq!(run.kubectl(&left).trim(), "");
}

/// Kills the sidecar of a service; the cluster has Istio. The reason is named, and the trial ends.
pub fn sidecar_killed(cluster: &OneNodeCluster) {
    let arguments = ["--set", "modes=[sidecar]", "--repeats", "1", "--retakes", "0"];
    let run = Run::new(cluster, "case-sidecar", "pair", LONG).with(&arguments);
    let reasons = run.broken(|| {
        // The sidecar may be an init container that keeps running.
        let statuses = "{.items[0].status['initContainerStatuses','containerStatuses']";
        let id = format!("--output=jsonpath={statuses}[?(@.name==\"istio-proxy\")].containerID}}");
        let id = run.kubectl(&["get", "pod", "--selector=app=server", &id]);
        let id = id.trim().strip_prefix("containerd://").unwrap_or_else(|| panic!("{id}"));
        cluster.run("enter", ["ctr", "--namespace=k8s.io", "tasks", "kill", "--signal=KILL", id]);
    });
    let is_named =
        reasons[0].starts_with("failed: in the trial, server ") && reasons[0].contains("istio-proxy");
    assert!(is_named, "{reasons:?}");
}

fn service_out_of_memory(cluster: &OneNodeCluster) {
    let topology = "{services: [{name: server, resources: {limits: {memory: 96Mi}}, script: [{memory: 8MiB}, {sleep: 2s}]}]}";
    let load = LONG.replace("connections: 2", "connections: 100");
    let run = Run::new(cluster, "case-oom", topology, &load).with(&["--repeats", "1"]);
    let reasons = run.reasons(&run.output());
    // Noticed while it is dead, or after it has been restarted.
    let is_named = reasons[0].starts_with("failed: in the trial, server ")
        && reasons[0].ends_with("killed at its memory limit (OOMKilled)");
    assert!(is_named, "{reasons:?}");
}

/// The kernel kills the generator, not the worker that a kubelet watches.
fn generator_out_of_memory(cluster: &OneNodeCluster) {
    let topology = "{services: [{name: server}], clients: [{name: load, resources: {limits: {memory: 24Mi}}}], \
                    drivers: [{name: generator, in: load, target: server}]}";
    let load = LONG.replace("connections: 2", "connections: 8000");
    let run = Run::new(cluster, "case-big", topology, &load).with(&["--repeats", "1"]);
    let reasons = run.reasons(&run.output());
    assert!(reasons[0].contains("(OOMKilled)"), "{reasons:?}");
}

/// Completed measurements are kept, what the run has left can be removed, and then the run can be continued.
fn command_killed(cluster: &OneNodeCluster) {
    let run = Run::new(cluster, "case-killed", "pair", SHORT);
    let mut command = run.command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    run.wait_for("trial", || !run.trials().is_empty());
    kill_process(Pid::from_child(&command), Signal::KILL).unwrap();
    command.wait().unwrap();
    let report = meshmeter(cluster).arg("report").arg(run.folder()).output().unwrap();
    assert!(text(&report.stdout).contains("of 3 planned"), "{}", text(&report.stderr));
    let before = run.trials();
    let resumed = |image: &str| {
        let output = run.resumption().args(["--image", image]).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let (status, says) = resumed(IMAGE);
    assert_eq!(status, Some(3), "{says}");
    assert!(says.contains("namespace case-killed is that of the run"), "{says}");

    let namespace =
        cluster.kubectl(&["get", "namespace", "case-killed", "--output=jsonpath={.metadata.labels}"]);
    let labels: serde_json::Value = serde_json::from_str(&namespace).unwrap();
    let id = labels["meshmeter.dev/run"].as_str().unwrap();
    let clean = meshmeter(cluster).args(["cluster", "clean", "--run", id]).output().unwrap();
    assert!(clean.status.success(), "{}", text(&clean.stderr));
    assert!(text(&clean.stdout).contains("Namespace case-killed"), "{}", text(&clean.stdout));

    let (status, says) = resumed("localhost/meshmeter:other");
    assert_eq!(status, Some(2), "{says}");
    assert!(says.contains(&format!("image: {IMAGE}, now localhost/meshmeter:other")), "{says}");
    let (status, says) = resumed(IMAGE);
    assert!(matches!(status, Some(0 | 1)), "{says}");
    let trials = run.trials();
    assert_eq!(trials[..before.len()], before, "what was there stays");
    let mut repeats: Vec<_> = trials.iter().map(|trial| trial["repeat"].as_u64().unwrap()).collect();
    repeats.dedup();
    assert_eq!(repeats, [0, 1, 2], "a rerun follows its trial");
    assert!(trials.iter().all(|trial| trial["outcome"] == "finished"), "{trials:?}");
    let host = fs::read_to_string(run.folder().join("host.json")).unwrap();
    let host: serde_json::Value = serde_json::from_str(&host).unwrap();
    assert_eq!(host["resumed"][0]["after_trials"], before.len());
    assert_eq!(host["cluster"]["image"], IMAGE);
}

/// The API server is killed and the kubelet stopped: the load continues, but is not observed.
fn unwatched(cluster: &OneNodeCluster) {
    let load = "rate: [50], connections: 2, warmup: 1s, duration: 20s";
    let run = Run::new(cluster, "case-unwatched", "pair", load).with(&["--repeats", "1"]);
    let reasons = run.broken(|| {
        cluster.run("enter", ["pkill", "-KILL", "-x", "kube-apiserver"]);
        cluster.run("enter", ["sh", "-c", "pkill -STOP -x kubelet; sleep 6; pkill -CONT -x kubelet"]);
    });
    let says = |what: &str| reasons.iter().any(|reason| reason.contains(what));
    assert!(says("the Kubernetes API did not answer for"), "{reasons:?}");
    assert!(says("the worker in pod client-0-"), "{reasons:?}");
    assert!(
        run.trials()[0]["result"]["requests"]["completed"].as_u64().unwrap() > 0,
        "what was measured is kept"
    );
}
