//! `meshmeter run --on cluster` as far as it needs no cluster, and commands against an API server of the test.

mod command;

use command::{meshmeter, run, stderr, stdout};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread;
use tempfile::TempDir;

const ON_CLUSTER: [&str; 4] = ["run", "mesh-modes", "--on=cluster", "--image=meshmeter:1"];

fn dry_run(options: &[&str]) -> std::process::Output {
    run(&[&ON_CLUSTER[..], &["--dry-run"], options].concat())
}

/// Starts an API server with a response per path. Returns its kubeconfig, and the folder of the kubeconfig.
fn api_server(response: fn(&str) -> (u16, Value)) -> (TempDir, PathBuf) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": format!("http://{}", listener.local_addr().unwrap())}}],
        "users": [{"name": "a", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    });
    thread::spawn(move || {
        // The client may close the connection early.
        listener.incoming().map_while(Result::ok).for_each(|connection| drop(respond(connection, response)));
    });
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    fs::write(&kubeconfig, config.to_string()).unwrap();
    (folder, kubeconfig)
}

/// Handles one request. Its body is ignored.
fn respond(mut connection: TcpStream, response: fn(&str) -> (u16, Value)) -> io::Result<()> {
    let mut head = vec![0; 16384];
    let length = connection.read(&mut head)?;
    let head = String::from_utf8_lossy(&head[..length]).into_owned();
    let path = head.split([' ', '?']).nth(1).unwrap_or_default();
    let (status, body) = response(path);
    let body = body.to_string();
    write!(
        connection,
        "HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn version() -> Value {
    json!({"gitVersion": "v1.36.3"})
}

fn failure(code: u16, message: &str) -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": code,
    });
    (code, status)
}

#[test]
fn rights_to_everything_are_confirmed_or_marked() {
    let rbac =
        |options: &[&str]| run(&[&["cluster", "rbac", "--namespace=a", "--user=jane"], options].concat());
    let secrets = ["--istio", "--gateway-tls"];
    assert!(rbac(&secrets).status.success());
    let everywhere = [&secrets[..], &["--namespaces"]].concat();
    let refused = rbac(&everywhere);
    assert_eq!((refused.status.code(), stdout(&refused).as_str()), (Some(2), ""));
    assert!(stderr(&refused).contains("all Secrets of the cluster"), "{}", stderr(&refused));
    let confirmed = stdout(&rbac(&[&everywhere[..], &["--all-secrets"]].concat()));
    assert!(
        confirmed.contains("- secrets")
            && confirmed.contains("# Warning: a right to read and write all Secrets")
    );
    assert!(!rbac(&["--all-secrets"]).status.success());

    let nodes = stdout(&rbac(&["--nodes"]));
    assert!(nodes.contains("- nodes/proxy") && nodes.contains("run commands in every container"), "{nodes}");
    let prometheus = stdout(&rbac(&["--nodes", "--prometheus=monitoring/prometheus:9090"]));
    assert!(!prometheus.contains("nodes/proxy"), "{prometheus}");
}

#[test]
fn api_server_on_loopback_is_reached_without_environment_proxy() {
    let (_folder, kubeconfig) = api_server(|path| match path {
        "/version" => (200, version()),
        _ => failure(403, "no"),
    });
    let mut command = meshmeter();
    command.args(["cluster", "check", "--kubeconfig"]).arg(&kubeconfig);
    let output = command.env("HTTPS_PROXY", "http://127.0.0.1:1").output().unwrap();
    assert!(stdout(&output).contains("Kubernetes v1.36.3 responds"), "{}", stderr(&output));
}

/// Responses for a user who may list only Jobs, and only in one namespace.
fn jobs_alone(path: &str) -> (u16, Value) {
    let kinds = |kinds: &[(&str, &str)]| {
        let kinds = kinds.iter().map(|(name, kind)| json!({"name": name, "kind": kind}));
        (200, json!({"resources": kinds.collect::<Vec<_>>()}))
    };
    let job =
        json!({"metadata": {"name": "run-a", "namespace": "perf", "labels": {"meshmeter.dev/run": "a"}}});
    match path {
        "/version" => (200, version()),
        "/api/v1" => kinds(&[("services", "Service"), ("configmaps", "ConfigMap")]),
        "/apis/apps/v1" => kinds(&[("deployments", "Deployment")]),
        "/apis/batch/v1" => kinds(&[("jobs", "Job")]),
        "/apis/batch/v1/namespaces/perf/jobs" => (200, json!({"metadata": {}, "items": [job]})),
        _ if path.starts_with("/apis/") && path.matches('/').count() == 3 => {
            failure(404, "404 page not found")
        }
        _ => failure(403, "no"),
    }
}

#[test]
fn clean_reports_kinds_that_user_may_not_list_and_shows_others() {
    let (_folder, kubeconfig) = api_server(jobs_alone);
    let clean = |options: &[&str]| {
        let mut command = meshmeter();
        command.args(["cluster", "clean", "--kubeconfig"]).arg(&kubeconfig).args(options).output().unwrap()
    };
    let output = clean(&["--namespace=perf"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output).starts_with("run a: has left 1 objects\n  Job perf/run-a\n"),
        "{}",
        stdout(&output)
    );
    let warning = "this user may not list ConfigMap, Deployment, Service:";
    assert!(stderr(&output).contains(warning), "{}", stderr(&output));
    let everywhere = clean(&[]);
    assert_eq!(everywhere.status.code(), Some(3), "{}", stdout(&everywhere));
    assert!(stderr(&everywhere).contains("--namespace NAME"), "{}", stderr(&everywhere));
}

#[test]
fn lab_options_are_refused_on_clusters() {
    for (options, says) in [
        (
            &["--calibrate", "--detach", "--service-account=perf:meshmeter"][..],
            "--calibrate measures this machine",
        ),
        (&["--noise-floor=10s"], "--noise-floor is for this machine"),
        (&["--envoy=/usr/bin/envoy"], "a cluster runs the programs that are installed there"),
        (&["--istiod=/usr/bin/istiod", "--dry-run"], "a cluster runs the programs that are installed there"),
    ] {
        let output = run(&[&ON_CLUSTER[..], options].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{options:?}: {}", stderr(&output));
    }
}

#[test]
fn dry_run_prints_each_distinct_deployment() {
    let options = ["--set=modes=[none,sidecar]", "--set=proxy.workers=[1,2]", "--set=load.rate=[100,200]"];
    let output = dry_run(&options);
    let printed = stdout(&output);
    let mut headings: Vec<&str> = printed.lines().filter(|line| line.starts_with("# Mode")).collect();
    headings.sort_unstable();
    assert_eq!(headings.len(), 3, "{headings:?}");
    assert!(headings[0].starts_with("# Mode none"), "{headings:?}");
    assert!(headings[1].starts_with("# Mode sidecar with proxy.workers 1: "), "{headings:?}");
    assert!(headings[2].starts_with("# Mode sidecar with proxy.workers 2: "), "{headings:?}");
}

#[test]
fn dry_run_fails_for_unsupported_mode_if_all_are_required() {
    let options = ["--set=modes=[none,sidecar,egress-gateway]"];
    let output = dry_run(&options);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("paths out of the mesh are not deployed on clusters yet"));
    assert_eq!(dry_run(&[&options[..], &["--require-all-modes"]].concat()).status.code(), Some(3));
    let options = ["--set=modes=[none,sidecar,ambient]", "--cluster-mesh=linkerd"];
    let output = dry_run(&options);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("mode ambient is unavailable here: mesh linkerd has no such mode"));
    assert!(stdout(&output).contains("linkerd.io/inject: enabled"));
    assert_eq!(dry_run(&[&options[..], &["--require-all-modes"]].concat()).status.code(), Some(3));
}

#[test]
fn mesh_of_the_file_decides_what_pods_are_given() {
    let output = dry_run(&["--set=modes=sidecar", "--set=mesh=linkerd"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = stdout(&output);
    assert!(
        printed.contains("linkerd.io/inject: enabled") && !printed.contains("istio-injection"),
        "{printed}"
    );
    let output = dry_run(&["--set=modes=ambient", "--cluster-mesh=linkerd"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("mesh linkerd has no mode `ambient`"), "{}", stderr(&output));
}
