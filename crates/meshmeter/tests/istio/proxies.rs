//! Settings of proxies: mutual TLS, keys, access logs, worker threads.

use crate::cases::LogFolder;
use crate::exchange::{Target, ask, get_json};
use crate::trial::{TEST_TIMEOUT, bring_up, run, settings, switched};
use base64::prelude::{BASE64_STANDARD, Engine};
use experiment::MeshSettings;
use experiment::environment::{AccessLog, DeploymentSpec, GatewaySettings, MutualTls, ProxySettings};
use experiment::mesh_settings::WorkloadKeys;
use lab::Pod;
use lab::deployment::LabDeployment;
use lab::environment::LocalLab;
use results::Mode;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn with(mode: Mode, proxy: ProxySettings) -> DeploymentSpec {
    DeploymentSpec { proxy, ..switched(mode, settings()) }
}

/// A client without a proxy is accepted if plaintext is allowed. With a proxy, connections use mutual TLS if
/// it is enabled.
pub fn mutual_tls_matches_the_setting(lab: &LocalLab) {
    for mode in [Mode::Sidecar, Mode::Ingress] {
        for (mtls, takes_plain_text, handshakes) in [
            (MutualTls::Strict, false, true),
            (MutualTls::Permissive, true, true),
            (MutualTls::Off, true, false),
        ] {
            let what = format!("{mode}, {}", mtls.name());
            let logs = LogFolder::create();
            let proxy = ProxySettings { mtls, ..ProxySettings::default() };
            let deployment = bring_up(lab, &with(mode, proxy), logs.path());
            let plain = Target::server_pod(&deployment).get_from_outside("/");
            assert_eq!(plain.is_ok_and(|answer| answer.status == 200), takes_plain_text, "{what}");
            let trial = run(deployment, logs.path(), &[]);
            trial.check_path(&what);
            for proof in &trial.observation.evidence.path.proxies {
                assert_eq!(proof.tls_expected, handshakes, "{what}: {proof:?}");
                assert_eq!(proof.tls_handshakes > 0, handshakes, "{what}: {proof:?}");
            }
            let server = trial.proxy("server-proxy");
            assert_eq!(server.takes_plain_text, Some(takes_plain_text), "{what}");
        }
    }
}

/// DER of the object identifier of elliptic-curve public keys, 1.2.840.10045.2.1.
const EC_PUBLIC_KEY: &[u8] = b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01";

pub fn workload_keys_match_the_setting(lab: &LocalLab) {
    for (mode, workload_keys) in [(Mode::Sidecar, WorkloadKeys::Rsa), (Mode::Ingress, WorkloadKeys::Ecdsa)] {
        let logs = LogFolder::create();
        let settings = MeshSettings { workload_keys, ..MeshSettings::default() };
        let deployment = bring_up(lab, &switched(mode, settings), logs.path());
        for (name, pod) in proxies(&deployment, mode) {
            let certificate = workload_certificate(pod);
            let is_ecdsa = certificate.windows(EC_PUBLIC_KEY.len()).any(|part| part == EC_PUBLIC_KEY);
            assert_eq!(is_ecdsa, workload_keys == WorkloadKeys::Ecdsa, "{mode}: {name}");
        }
        run(deployment, logs.path(), &[]).check_path(mode.name());
    }
}

/// DER of the certificate with which an Envoy identifies itself to others.
fn workload_certificate(pod: &Pod) -> Vec<u8> {
    let dump = get_json(pod, "/config_dump?resource=dynamic_active_secrets");
    let secrets = dump["configs"].as_array().expect("secrets");
    let own = secrets.iter().find(|secret| secret["name"] == "default").expect("the workload's own secret");
    let chain =
        own["secret"]["tls_certificate"]["certificate_chain"]["inline_bytes"].as_str().expect("a chain");
    let chain = String::from_utf8(BASE64_STANDARD.decode(chain).expect("base64")).expect("PEM");
    let body = chain.lines().skip(1).take_while(|line| !line.starts_with('-')).collect::<String>();
    BASE64_STANDARD.decode(body).expect("base64 between the lines of PEM")
}

/// Pods of a mode whose Envoys write access logs, each with the name of its proxy.
fn proxies<'a>(deployment: &'a LabDeployment<'_>, mode: Mode) -> Vec<(&'static str, &'a Pod)> {
    let find = |name: &str| {
        let found = deployment.pods().into_iter().find(|pod| pod.name() == name);
        found.unwrap_or_else(|| panic!("{mode} has no pod {name}"))
    };
    match mode {
        Mode::Sidecar => vec![("client-proxy", find("client")), ("server-proxy", find("server"))],
        Mode::Ingress => vec![("ingress-gateway", find("ingress")), ("server-proxy", find("server"))],
        _ => vec![("waypoint", find("waypoint"))],
    }
}

pub fn access_logs_have_a_line_per_request_and_workers_match_the_setting(lab: &LocalLab) {
    access_logs_and_workers(lab, Mode::Sidecar);
    access_logs_and_workers(lab, Mode::Ingress);
}

pub fn access_logs_and_workers_of_waypoints_match_the_setting(lab: &LocalLab) {
    access_logs_and_workers(lab, Mode::AmbientWaypoint);
}

const ASKED: usize = 5;

fn access_logs_and_workers(lab: &LocalLab, mode: Mode) {
    for (access_log, workers) in [(AccessLog::Text, 1), (AccessLog::Json, 3), (AccessLog::Off, 2)] {
        let logs = LogFolder::create();
        let settings = ProxySettings { access_log, workers, ..ProxySettings::default() };
        let deployment = bring_up(lab, &with(mode, settings), logs.path());
        check_workers(&deployment, mode, workers);
        let target = Target::of_client(lab, &deployment);
        for number in 0..ASKED {
            let path = format!("/logged/{number}");
            let answer = target.get(deployment.client_pod(), &path, &[]).expect("an answer");
            assert_eq!(answer.status, 200);
        }
        let expected = if access_log == AccessLog::Off { 0 } else { ASKED };
        for (name, pod) in proxies(&deployment, mode) {
            let what = format!("{mode}, {access_log:?}: {name}");
            if access_log == AccessLog::Off {
                // No later line can be waited for: there is no log to write to.
                assert!(!ask(pod, "/config_dump").contains("/dev/stdout"), "{what}");
            }
            let file = logs.path().join(format!("{name}.log"));
            // Envoy flushes its log once per second.
            lab::wait_for("the log has its lines", TEST_TIMEOUT, || {
                Ok((logged(&file, access_log).len() >= expected).then_some(()))
            })
            .unwrap_or_else(|_| panic!("{what}: {:?}", logged(&file, access_log)));
            let paths: Vec<String> = (0..expected).map(|number| format!("/logged/{number}")).collect();
            assert_eq!(logged(&file, access_log), paths, "{what}");
        }
    }
}

/// A ztunnel does not read requests: it writes a line per connection when it ends, on both sides.
pub fn ztunnel_access_log_has_a_line_per_connection(lab: &LocalLab) {
    for access_log in [AccessLog::Text, AccessLog::Json, AccessLog::Off] {
        let logs = LogFolder::create();
        let settings = ProxySettings { access_log, ..ProxySettings::default() };
        let deployment = bring_up(lab, &with(Mode::Ambient, settings), logs.path());
        let target = Target::of_client(lab, &deployment);
        for _ in 0..ASKED {
            assert_eq!(target.get(deployment.client_pod(), "/", &[]).expect("an answer").status, 200);
        }
        let lines = || {
            let text = fs::read_to_string(logs.path().join("ztunnel.log")).expect("ztunnel has a log");
            let lines = text.lines().filter(|line| line.contains("connection complete"));
            lines.map(ToOwned::to_owned).collect::<Vec<String>>()
        };
        let expected = if access_log == AccessLog::Off { 0 } else { 2 * ASKED };
        lab::wait_for(
            "the log has its lines",
            TEST_TIMEOUT,
            || Ok((lines().len() >= expected).then_some(())),
        )
        .unwrap_or_else(|_| panic!("{access_log:?}: {:?}", lines()));
        assert_eq!(lines().len(), expected, "{access_log:?}: {:?}", lines());
        let are_json = lines().iter().all(|line| serde_json::from_str::<Value>(line).is_ok());
        assert!(
            expected == 0 || are_json == (access_log == AccessLog::Json),
            "{access_log:?}: {:?}",
            lines()
        );
    }
}

/// Paths of our requests in a proxy's log, in the given format.
fn logged(file: &Path, access_log: AccessLog) -> Vec<String> {
    let text = fs::read_to_string(file).expect("the proxy has a log");
    let lines = text.lines().filter(|line| line.contains("/logged/"));
    let path = |line: &str| match access_log {
        AccessLog::Json => {
            let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert_eq!((&line["method"], &line["response_code"]), (&"GET".into(), &200.into()), "{line}");
            line["path"].as_str().expect("a path").to_owned()
        }
        AccessLog::Text | AccessLog::Off => {
            let (_, request) = line.split_once("\"GET ").unwrap_or_else(|| panic!("no request: {line}"));
            let (path, answer) = request.split_once(' ').expect("a path ends");
            assert!(answer.starts_with("HTTP/1.1\" 200 "), "{line}");
            path.to_owned()
        }
    };
    lines.map(path).collect()
}

pub fn gateway_has_its_own_number_of_workers(lab: &LocalLab) {
    let logs = LogFolder::create();
    let gateway = GatewaySettings { workers: Some(3), ..GatewaySettings::default() };
    let spec = DeploymentSpec { gateway, ..with(Mode::Ingress, ProxySettings::default()) };
    let deployment = bring_up(lab, &spec, logs.path());
    let proxies = proxies(&deployment, Mode::Ingress).into_iter();
    let workers: Vec<_> = proxies.map(|(name, pod)| (name, worker_threads(pod, name))).collect();
    assert_eq!(workers, [("ingress-gateway", 3), ("server-proxy", 2)]);
}

fn check_workers(deployment: &LabDeployment<'_>, mode: Mode, workers: usize) {
    for (name, pod) in proxies(deployment, mode) {
        let information = get_json(pod, "/server_info");
        let told = information["command_line_options"]["concurrency"].as_u64();
        assert_eq!(told, Some(workers as u64), "{mode}: {name}");
        assert_eq!(worker_threads(pod, name), workers, "{mode}: {name}");
    }
}

/// Worker threads of a proxy, by Envoy's thread names.
fn worker_threads(pod: &Pod, proxy: &str) -> usize {
    let agent = pod.containers().iter().find(|container| container.name() == proxy).expect("it runs");
    // Any of the agent's threads may have started it.
    let tasks = fs::read_dir(format!("/proc/{}/task", agent.pid())).expect("it runs");
    let children = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    let children = children.collect::<Vec<String>>().concat();
    let envoy = children.split_whitespace().next().expect("the agent has an Envoy");
    let threads = fs::read_dir(format!("/proc/{envoy}/task")).expect("Envoy runs");
    let names = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("wrk:worker_")).count()
}
