//! One trial of a test: a deployment, the minimal generator in its client's pod, and the observations.

use crate::cases::LogFolder;
use crate::observation::Observation;
use crate::programs::request;
use experiment::environment::deploy::{Argument, Deployment, DriverEventKind, DriverLoad, DriverStart};
use experiment::environment::{DeploymentSpec, SentLoad, Snapshot, error_chain};
use flate2::read::GzDecoder;
use lab::Pod;
use lab::deployment::LabDeployment;
use lab::environment::LocalLab;
use results::{ComponentUsage, Mode};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub const REQUESTS: u64 = 800;
pub const CONNECTIONS: u64 = 4;
pub const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Observations of a trial, and the number of its requests that were not answered (counted up to 100).
pub struct Trial {
    pub observation: Observation,
    pub unanswered: i32,
    /// Log output of the proxies.
    pub proxy_logs: String,
    /// The configuration that was kept per proxy, by proxy name.
    pub configurations: BTreeMap<String, String>,
}

impl Trial {
    pub fn component(&self, name: &str) -> &ComponentUsage {
        let found = self.observation.usage.components.iter().find(|component| component.name == name);
        found.unwrap_or_else(|| panic!("no component {name} in {:?}", self.observation.usage.components))
    }

    /// The client bypassed its proxy and the server's proxy takes mutual TLS only: each proxy must show it.
    pub fn check_plain_text_was_refused(&self) {
        assert_eq!(self.unanswered, 100, "plaintext passed a proxy that requires mutual TLS");
        let reasons = self.observation.evidence.path.reasons.join("\n");
        for part in [
            "client-proxy saw 0 of 800 requests: traffic did not pass it",
            "server-proxy saw 0 of 800 requests",
            "server-proxy refused 4 connections",
        ] {
            assert!(reasons.contains(part), "{part} is not in: {reasons}");
        }
    }
}

/// Runs the generator in the client's pod and observes its window.
pub fn run(mut deployment: LabDeployment<'_>, logs: &Path) -> Trial {
    let go = logs.join("go");
    let (requests, connections) = (REQUESTS.to_string(), CONNECTIONS.to_string());
    let arguments = [requests, connections, go.display().to_string()].map(Argument::Text).to_vec();
    let generator = DriverStart {
        driver: "generator".to_owned(),
        generator: "generator".to_owned(),
        arguments,
        ..DriverStart::default()
    };
    deployment.begin_trial(&logs.to_string_lossy()).expect("every component is there");
    deployment.start(&[generator]).expect("the generator starts");
    let mut snapshots: Vec<Snapshot> = Vec::new();
    let mut snapshot = |deployment: &mut LabDeployment<'_>| {
        snapshots.push(deployment.snapshot().expect("every component is there"));
    };
    let end = loop {
        let event = deployment.next_event(TEST_TIMEOUT).expect("the generator ends by itself");
        match event.kind {
            DriverEventKind::Message(line) => match line.as_str() {
                "window-opened" => {
                    snapshot(&mut deployment);
                    std::fs::write(&go, []).expect("a temporary folder can be written");
                }
                "window-closed" => snapshot(&mut deployment),
                other => panic!("the generator said {other}"),
            },
            event @ (DriverEventKind::Load(_) | DriverEventKind::Fleet(_)) => {
                panic!("the generator reported {event:?}")
            }
            DriverEventKind::Ended(end) => break end,
        }
    };
    let sent = SentLoad { requests: REQUESTS, request_bytes: Some(request_bytes(&deployment.url())) };
    let unanswered = end.exit_code.expect("it exits");
    let evidence = deployment.end_trial(&[DriverLoad { driver: "generator".to_owned(), sent }]);
    let usage = snapshots[1].usage_since(&snapshots[0]);
    let observation = Observation::new(usage, evidence);
    let proxies = || observation.evidence.path.proxies.iter().map(|proxy| proxy.name.as_str());
    let log = |name: &str| std::fs::read_to_string(logs.join(format!("{name}.log")));
    let proxy_logs = proxies().map(|name| log(name).expect("every proxy has a log")).collect();
    let configurations =
        proxies().filter_map(|name| Some((name.to_owned(), configuration(logs, name)?))).collect();
    Trial { observation, unanswered, proxy_logs, configurations }
}

/// The configuration that was kept of a proxy; `None` if none was.
fn configuration(logs: &Path, name: &str) -> Option<String> {
    let file = File::open(logs.join(format!("{name}.configuration.json.gz"))).ok()?;
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).expect("what is kept is whole");
    Some(text)
}

/// Bytes that the generator sends per request.
fn request_bytes(url: &str) -> f64 {
    let authority = url.trim_start_matches("http://").trim_end_matches('/');
    request(authority).len() as f64
}

pub fn trial(local_lab: &LocalLab, spec: &DeploymentSpec, tamper: impl FnOnce(&LabDeployment<'_>)) -> Trial {
    let logs = LogFolder::create();
    let deployment = local_lab.bring_up(spec, logs.path()).unwrap_or_else(|error| {
        panic!("{} ({})", error_chain(&error), error.hint.as_deref().unwrap_or("no hint"));
    });
    check_confinement(spec.mode);
    tamper(&deployment);
    run(deployment, logs.path())
}

/// Each running program of a registry or an image has its own file system and processes, a filter of system calls, and, in a lab of
/// root, a user of its own; a ztunnel keeps the lab's, as in a cluster.
fn check_confinement(mode: Mode) {
    let components = fs::canonicalize(components::folder().expect("it is known")).expect("it is there");
    let namespace = |process: &str, kind: &str| fs::read_link(format!("/proc/{process}/ns/{kind}")).ok();
    let has_users = fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| map.contains("4294967295"));
    let mut found = 0;
    for pid in lab::process_table::pids(Path::new("/proc")).expect("proc is mounted") {
        let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        if !program.starts_with(&components) {
            continue;
        }
        // One that has ended meanwhile does not run.
        let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
        found += 1;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        assert_eq!(field("Seccomp:"), Some("2"), "{program:?} has no filter: {status}");
        for kind in ["mnt", "pid", "ipc"] {
            assert_ne!(namespace(&pid.to_string(), kind), namespace("self", kind), "{program:?}: {kind}");
        }
        let is_lab_user = field("Uid:").is_some_and(|user| user.starts_with("0\t"));
        assert!(!has_users || program.ends_with("ztunnel") || !is_lab_user, "{program:?}: {status}");
    }
    assert!(found > 0 || mode == Mode::None, "{mode}: no such program runs");
}

/// Removes all redirect rules of a pod.
pub fn flush_rules(pod: &Pod) {
    let flushed = pod.run(|| Command::new("iptables").args(["-t", "nat", "-F"]).status());
    assert!(flushed.expect("the pod is there").expect("iptables is installed").success());
}
