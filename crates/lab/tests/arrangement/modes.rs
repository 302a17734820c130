//! Modes: what proves a path, and what must not count as proof.

use crate::cases::LogFolder;
use crate::death::{check_named, container, end, signal};
use crate::observation::Observation;
use crate::trial::{CONNECTIONS, REQUESTS, flush_rules, trial};
use experiment::environment::deploy::{Deployment, Environment, HealthProbe};
use experiment::environment::{AccessLog, ComponentsSettings, DeploymentSpec, MutualTls, ProxySettings};
use experiment::{MeshKind, Protocol};
use lab::Lab;
use lab::environment::LocalLab;
use results::{ComponentUsage, ConfigurationCounts, Mode, Role};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

fn spec(mode: Mode) -> DeploymentSpec {
    DeploymentSpec::new(MeshKind::Envoy, mode)
}

pub fn every_mode_proves_its_path(_lab: &Lab, local_lab: &mut LocalLab) {
    for (mode, expected) in [
        (Mode::None, vec!["generator", "server"]),
        (Mode::Gateway, vec!["generator", "gateway", "server"]),
        (Mode::Sidecar, vec!["generator", "client-proxy", "server-proxy", "server"]),
    ] {
        let trial = trial(local_lab, &spec(mode), |_| ());
        let Observation { usage, evidence } = &trial.observation;
        let (path, machine) = (&evidence.path, &usage.machine);
        assert!(path.proven, "{mode}: {:?}", path.reasons);
        assert_eq!(trial.unanswered, 0, "{mode}");
        // The access log is off, and Envoy had nothing to warn about.
        assert_eq!(trial.proxy_logs, "", "{mode}");
        let names: Vec<_> =
            trial.observation.usage.components.iter().map(|component| component.name.as_str()).collect();
        assert_eq!(names, [expected.as_slice(), &["meshmeter", "kernel"]].concat(), "{mode}");
        for name in &expected {
            check_usage(mode, trial.component(name));
            check_holdings(mode, trial.component(name));
        }
        let stations: Vec<&str> = path.hops.iter().map(|hop| hop.to.as_str()).collect();
        assert_eq!(
            stations,
            if mode == Mode::None { &[] } else { &expected[1..] },
            "{mode}: {:?}",
            path.hops
        );
        assert!(path.hops.iter().all(|hop| hop.describe() == "HTTP/1.1"), "{mode}: {:?}", path.hops);
        for proxy in &path.proxies {
            assert_eq!(proxy.requests_received, REQUESTS, "{mode}: {}", proxy.name);
            let handshakes = if mode == Mode::Sidecar { 1..=CONNECTIONS } else { 0..=0 };
            assert!(handshakes.contains(&proxy.tls_handshakes), "{mode}: {proxy:?}");
            let kept: serde_json::Value = serde_json::from_str(&trial.configurations[&proxy.name]).unwrap();
            assert!(kept["configs"].as_array().is_some_and(|sections| sections.len() > 4), "{mode}: {kept}");
        }
        // Two readings take 1 % of a core over a window of 5 s. Only an observer that never rests takes half of one.
        let observer = trial.component("meshmeter");
        let cores = (observer.cpu_user_s + observer.cpu_system_s) / observer.window_s;
        assert!(cores < 0.5, "{mode}: {observer:?}");
        let machine = machine.as_ref().expect("the window was opened and closed");
        assert!(machine.busy_cores > 0.0 && machine.cpus > 0, "{machine:?}");
    }
}

fn check_usage(mode: Mode, component: &ComponentUsage) {
    let name = &component.name;
    // Without cgroups CPU is counted in ticks of 10 ms, and such a short window may not contain one.
    let least_cpu_s = if component.cpu_source == "proc" { 0.0 } else { 0.0005 };
    assert!(component.cpu_user_s + component.cpu_system_s >= least_cpu_s, "{mode}: {component:?}");
    assert!(component.window_s > 0.0, "{mode}: {component:?}");
    assert!(component.memory_resident_bytes > 500_000, "{mode}: {component:?}");
    // In a pod with a sidecar, only the sidecar faces the network.
    let behind_proxy = mode == Mode::Sidecar && component.role != Role::Proxy;
    assert_eq!(component.network.is_none(), behind_proxy, "{mode}: {component:?}");
    if let Some(network) = component.network {
        let (least, most) =
            (network.received_bytes.min(network.sent_bytes), network.received_bytes.max(network.sent_bytes));
        assert!(least > REQUESTS * 50 && most > REQUESTS * 1024, "{mode}: {name}: {network:?}");
    }
}

/// Each of these proxies has one listener with one route to one address; the server's proxy learns it from
/// the connections. The client's proxy has a second listener and cluster, for destinations that the mesh does
/// not know.
fn check_holdings(mode: Mode, component: &ComponentUsage) {
    let is_generator = component.role == Role::Generator;
    assert_eq!(component.memory_before_load_bytes.is_none(), is_generator, "{mode}: {component:?}");
    assert_eq!(component.memory_after_load_bytes.is_none(), is_generator, "{mode}: {component:?}");
    if component.role != Role::Proxy {
        assert_eq!(component.holdings, None, "{mode}");
        return;
    }
    // Envoy's program alone takes more.
    assert!(component.memory_before_load_bytes > Some(20_000_000), "{mode}: {component:?}");
    let held = component.holdings.as_ref().expect("a proxy says what it holds");
    assert_eq!(held.unread, Vec::<String>::new(), "{mode}");
    for heap in [held.heap_before_load, held.heap_after_load] {
        let heap = heap.expect("Envoy tells of its heap");
        assert!(
            heap.allocated_bytes > 1_000_000 && heap.heap_bytes > heap.allocated_bytes,
            "{mode}: {heap:?}"
        );
    }
    let configuration = held.configuration.expect("Envoy tells of its configuration");
    assert!(configuration.size_bytes > 2_000, "{mode}: {configuration:?}");
    assert!(configuration.dump_bytes > configuration.size_bytes + 10_000, "{mode}: {configuration:?}");
    let one = Some(1);
    let listeners = Some(if component.name == "client-proxy" { 2 } else { 1 });
    let expected = ConfigurationCounts {
        clusters: listeners,
        listeners,
        route_tables: one,
        virtual_hosts: one,
        routes: one,
        endpoints: Some(if component.name == "server-proxy" { 0 } else { 1 }),
        certificates: Some(0),
        rejected_updates: Some(0),
        ..ConfigurationCounts::default()
    };
    assert_eq!(configuration.counts, expected, "{mode}: {}", component.name);
}

pub fn without_mutual_tls_there_are_no_handshakes(_lab: &Lab, local_lab: &mut LocalLab) {
    let proxy =
        ProxySettings { mtls: MutualTls::Off, access_log: AccessLog::Json, ..ProxySettings::default() };
    let trial = trial(local_lab, &DeploymentSpec { proxy, ..spec(Mode::Sidecar) }, |_| ());
    let path = &trial.observation.evidence.path;
    assert!(path.proven, "{:?}", path.reasons);
    assert!(path.proxies.iter().all(|proxy| proxy.tls_handshakes == 0 && !proxy.tls_expected));
    assert!(trial.proxy_logs.starts_with('{') && trial.proxy_logs.contains("\"response_code\":200"));
}

/// The generator of this test speaks HTTP/1.1 only.
pub fn wrong_protocol_is_detected(_lab: &Lab, local_lab: &mut LocalLab) {
    let trial = trial(local_lab, &spec(Mode::Gateway).with_protocol(Protocol::Http2), |_| ());
    let path = &trial.observation.evidence.path;
    assert!(!path.proven);
    let why = "client and gateway spoke HTTP/1.1 with each other, though the experiment requires HTTP/2 on this hop";
    assert!(path.reasons.iter().any(|reason| reason == why), "{:?}", path.reasons);
}

pub fn client_bypassing_proxy_is_refused(_lab: &Lab, local_lab: &mut LocalLab) {
    let trial = trial(local_lab, &spec(Mode::Sidecar), |deployment| flush_rules(deployment.client_pod()));
    trial.check_plain_text_was_refused();
}

pub fn traffic_bypassing_both_proxies_is_detected(_lab: &Lab, local_lab: &mut LocalLab) {
    let trial = trial(local_lab, &spec(Mode::Sidecar), |deployment| {
        flush_rules(deployment.client_pod());
        flush_rules(deployment.server_pod());
    });
    assert_eq!(trial.unanswered, 0);
    let path = &trial.observation.evidence.path;
    assert!(!path.proven);
    assert!(path.proxies.iter().all(|proxy| proxy.requests_received == 0));
}

pub fn dead_static_envoy_is_reported_with_log(_lab: &Lab, local_lab: &mut LocalLab) {
    let logs = LogFolder::create();
    let mut deployment = local_lab.bring_up(&spec(Mode::Sidecar), logs.path()).expect("it comes up");
    assert_eq!(deployment.health(HealthProbe::Processes), None);
    // Envoy prints a backtrace when it is aborted.
    end(container(deployment.pods(), "server-proxy"), Signal::ABORT);
    let failure = deployment.health(HealthProbe::Processes).expect("it has died");
    assert!(failure.how.contains("signal: 6"), "{failure:?}");
    let observation = check_named(deployment, "server-proxy", "Caught Aborted");
    assert!(!observation.evidence.path.proven);
}

pub fn stopped_and_dead_components_of_many_are_found_by_polling(_lab: &Lab, local_lab: &mut LocalLab) {
    let logs = LogFolder::create();
    let mut many = spec(Mode::None);
    let server = many.topology.drivers[0].target;
    Arc::make_mut(&mut many.topology).workloads[server].replicas = 60;
    let mut deployment = local_lab.bring_up(&many, logs.path()).expect("it comes up");
    let container = |name: &str| container(deployment.pods(), name).clone();
    let (last, other) = (container("server-60"), container("server-59"));
    signal(last.pid().cast_signed(), Signal::STOP);
    let pid = Pid::from_raw(last.pid().cast_signed()).expect("a running process has a number");
    waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT).expect("it is a child of ours");
    // A few of the 60 are looked at in each poll.
    let mut polls = std::iter::repeat_with(|| deployment.health(HealthProbe::Polled));
    let found = polls.by_ref().take(3).flatten().next().expect("it is unresponsive");
    assert_eq!(found.component, "server-60");
    assert!(found.how.contains("stopped by a signal"), "{found:?}");

    end(&other, Signal::KILL);
    let found = polls.next().flatten().expect("the first poll finds what has died");
    assert_eq!(found.component, "server-59");
    assert!(found.how.contains("has died"), "{found:?}");
}

pub fn unavailable_modes_report_reason(_lab: &Lab, local_lab: &mut LocalLab) {
    for mode in Mode::ALL {
        match mode {
            Mode::None | Mode::Gateway | Mode::Sidecar => {
                local_lab
                    .check_mode(MeshKind::Envoy, mode, &ComponentsSettings::default())
                    .expect("Envoy is installed");
            }
            _ => {
                let error = local_lab
                    .check_mode(MeshKind::Envoy, mode, &ComponentsSettings::default())
                    .expect_err("nothing stands in for a mode");
                assert_eq!(error.to_string(), format!("run mode {mode}"));
                assert!(error.hint.is_some());
                let logs = LogFolder::create();
                assert!(local_lab.deploy(&spec(mode), &logs.path().to_string_lossy()).is_err());
            }
        }
    }
}

pub fn secrets_are_private_and_removed_with_proxy(lab: &Lab, local_lab: &mut LocalLab) {
    let logs = LogFolder::create();
    let deployment = local_lab.bring_up(&spec(Mode::Sidecar), logs.path()).expect("it comes up");
    let folders = private_folders(lab);
    assert_eq!(folders.len(), 2, "{folders:?}");
    for folder in &folders {
        let mode =
            |path: &Path| std::fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode(folder), 0o700);
        assert_eq!(mode(&folder.join("admin")), 0o600);
        assert_eq!(mode(&folder.join("envoy.json")), 0o600);
        let key = folder.join("credentials/key.pem");
        assert_eq!(mode(&key), 0o600);
        let owner = std::fs::metadata(&key).expect("it is there").uid();
        let expected = if lab.proxy_identity() == lab::ProxyIdentity::Uid {
            1337
        } else {
            rustix::process::getuid().as_raw()
        };
        assert_eq!(owner, expected);
    }
    drop(deployment);
    assert!(private_folders(lab).is_empty());
    let logged = std::fs::read_dir(logs.path()).expect("it is there").count();
    assert_eq!(logged, 3, "logs of the server and two proxies, and nothing else");
}

fn private_folders(lab: &Lab) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(lab.private_dir()).expect("the lab has a private folder");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    paths.filter(|path| path.to_string_lossy().contains("-proxy")).collect()
}
