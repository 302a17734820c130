//! A detached run that is attached to, stopped, and removed, by a user who has only the rights to detach.

use crate::cluster::OneNodeCluster;
use crate::runs::{Run, TIMEOUT, kubeconfig_of, meshmeter, text, trials};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// Namespace of the account and of the trials.
const NAMESPACE: &str = "perf";
const ACCOUNT: &str = "perf:meshmeter";
/// Account of the user who starts, follows and ends it.
const STARTER: &str = "perf:starter";

/// Creates the accounts and returns the kubeconfig of the user.
fn prepare(cluster: &OneNodeCluster) -> PathBuf {
    cluster.import_meshmeter();
    cluster.kubectl(&["create", "namespace", NAMESPACE]);
    for (account, options) in [(ACCOUNT, &[][..]), (STARTER, &["--detach"])] {
        let (_, name) = account.split_once(':').unwrap();
        cluster.kubectl(&["create", "serviceaccount", name, "--namespace", NAMESPACE]);
        let rbac = ["cluster", "rbac", "--namespace", NAMESPACE, "--service-account", account];
        let file = cluster.folder().join(format!("roles-of-{name}.yaml"));
        fs::write(&file, meshmeter(cluster).args(rbac).args(options).output().unwrap().stdout).unwrap();
        cluster.kubectl(&["apply", "--filename", file.to_str().unwrap()]);
    }
    let token = cluster.kubectl(&["create", "token", "starter", "--namespace", NAMESPACE]);
    let kubeconfig = starters_kubeconfig(cluster);
    fs::write(&kubeconfig, kubeconfig_of(cluster, &format!("  user: {{token: {}}}", token.trim()))).unwrap();
    kubeconfig
}

fn starters_kubeconfig(cluster: &OneNodeCluster) -> PathBuf {
    cluster.folder().join("starter.kubeconfig")
}

/// Detaches the run and returns its identifier.
fn detach(run: &Run<'_>) -> String {
    let output = run.output();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).split_whitespace().nth(1).unwrap().to_owned()
}

fn attach(cluster: &OneNodeCluster, run: &str) -> Command {
    let mut command = meshmeter(cluster);
    command
        .args(["cluster", "attach", run, "--namespace", NAMESPACE, "--kubeconfig"])
        .arg(starters_kubeconfig(cluster))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

#[test]
fn detached_run_is_attached_with_its_status_and_another_is_stopped_and_removed() {
    let cluster = &OneNodeCluster::up();
    let kubeconfig = prepare(cluster);
    let bounded = ["--repeats", "2", "--retakes", "0", "--kubeconfig", kubeconfig.to_str().unwrap()];
    let detached =
        [&["--existing-namespaces", "--detach", "--service-account", ACCOUNT], &bounded[..]].concat();
    let load = "rate: [50], connections: 2, warmup: 1s, duration: 2s";
    let short = Run::new(cluster, NAMESPACE, "pair", load).with(&detached);
    let printed = short.command().arg("--dry-run").output().unwrap();
    assert!(text(&printed.stdout).contains("cluster-runner"), "{}", text(&printed.stdout));

    let run = detach(&short);
    // Ctrl-C does not stop the run.
    let mut first = attach(cluster, &run).spawn().unwrap();
    let mut lines = BufReader::new(first.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("attached to run")));
    kill_process(Pid::from_child(&first), Signal::INT).unwrap();
    assert!(lines.any(|line| line.starts_with("detached; the run goes on")));
    assert_eq!(first.wait().unwrap().code(), Some(130));

    // The run ends while nobody is attached, and its results are kept.
    let job = format!("job/run-{run}");
    short.kubectl(&["wait", "--for=jsonpath={.status.ready}=1", "--timeout=300s", &job]);
    let out = cluster.folder().join("copied");
    let output = attach(cluster, &run).arg("--out").arg(&out).output().unwrap();
    assert_eq!(trials(&out).len(), 2, "{}", text(&output.stderr));
    assert!(out.join("report.html").exists() && out.join("experiment.yaml").exists());
    let pod = format!("--selector=job-name=run-{run}");
    let terminated = "{.items[0].status.containerStatuses[0].state.terminated.exitCode}";
    let read = || short.kubectl(&["get", "pod", &pod, &format!("--output=jsonpath={terminated}")]);
    short.wait_for("end of the Job", || !read().is_empty());
    // On a busy machine no trial may be valid, which is status 1.
    assert_eq!(output.status.code().map(|code| code.to_string()), Some(read()), "{}", text(&output.stderr));
    let again = attach(cluster, &run).arg("--out").arg(cluster.folder().join("again")).output().unwrap();
    assert!(text(&again.stderr).contains("results were copied"), "{}", text(&again.stderr));

    stopped_and_removed(cluster, &detached);
}

/// Stops the run once the API server is available again.
fn stop(cluster: &OneNodeCluster, run: &str, out: &Path) -> Output {
    let began = Instant::now();
    loop {
        let output = attach(cluster, run).arg("--stop").arg("--out").arg(out).output().unwrap();
        if out.exists() || began.elapsed() > TIMEOUT {
            return output;
        }
    }
}

/// The API server is killed in the meantime.
fn stopped_and_removed(cluster: &OneNodeCluster, detached: &[&str]) {
    let load = "rate: [50], connections: 2, warmup: 1s, duration: 100s";
    let long = Run::new(cluster, NAMESPACE, "pair", load).with(detached);
    let run = detach(&long);
    let out = cluster.folder().join("stopped");
    long.wait_until_loaded();
    cluster.run("enter", ["pkill", "-KILL", "-x", "kube-apiserver"]);
    let output = stop(cluster, &run, &out);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(trials(&out)[0]["verdict"]["valid"], false);

    let other = detach(&long);
    long.wait_until_loaded();
    let clean = ["cluster", "clean", "--run", &other, "--namespace", NAMESPACE, "--kubeconfig"];
    let clean = meshmeter(cluster).args(clean).arg(starters_kubeconfig(cluster)).output().unwrap();
    assert!(clean.status.success(), "{}", text(&clean.stderr));
    assert!(text(&clean.stdout).contains(&format!("Job {NAMESPACE}/run-{other}")), "{}", text(&clean.stdout));
    assert!(text(&clean.stderr).contains("may not list ConfigMap, Deployment"), "{}", text(&clean.stderr));
    // Objects that the user may not list are deleted with the Job that owns them.
    let label = format!("--selector=meshmeter.dev/run={other}");
    let kinds = "pods,jobs,deployments,services,serviceaccounts,configmaps";
    long.wait_for("end of what is left", || {
        long.kubectl(&["get", kinds, &label, "--output=name"]).trim().is_empty()
    });
}
