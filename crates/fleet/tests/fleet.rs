//! Fleets against a small control plane in this process.

mod server;

use fleet::xds::{Mark, Presence, ProxyKind, ProxySpec, ResourceType};
use fleet::{ChangeMarks, Credentials, Fleet, FleetSpec, Keepalive, Security, Selection, Spread};
use results::FleetResult;
use server::{Forward, Misbehaviour, Server, TOKEN};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn proxies(count: u8) -> Vec<(ProxySpec, Credentials)> {
    (0..count)
        .map(|number| {
            let proxy = ProxySpec {
                kind: ProxyKind::Sidecar,
                name: format!("client-{number}"),
                namespace: format!("namespace-{}", number % 2),
                address: Ipv4Addr::new(10, 0, 0, number),
                service_account: "default".to_owned(),
                labels: BTreeMap::new(),
                node: "node".to_owned(),
                cluster_id: "Kubernetes".to_owned(),
                istio_version: "1.30.0".to_owned(),
                dns_capture: false,
                on_demand: false,
                demands: Vec::new(),
            };
            (proxy, Credentials { token: Some(TOKEN.into()) })
        })
        .collect()
}

fn spec(server: &Server, count: u8) -> FleetSpec {
    FleetSpec { threads: Some(2), ..FleetSpec::new(server.target(), proxies(count)) }
}

fn deadline() -> Instant {
    Instant::now() + LONG
}

fn complete(spec: FleetSpec) -> Fleet {
    let fleet = Fleet::start(spec).unwrap();
    let waited = fleet.wait_complete(deadline());
    assert!(waited.is_complete(), "{waited:?}, {:#?}", fleet.finish());
    fleet
}

fn endpoints_with(needle: &str, kind: &str) -> ChangeMarks {
    ChangeMarks {
        kind: kind.to_owned(),
        marks: vec![Mark {
            resource_type: ResourceType::Endpoints,
            presence: Presence::Present,
            resource: Some("service-1.mesh.svc.cluster.local".to_owned()),
            needle: needle.as_bytes().to_vec(),
        }],
        expected: Selection::All,
        objects: 1,
    }
}

/// Makes a change and waits until it has reached all proxies.
fn change(fleet: &Fleet, server: &Server, needle: &str) {
    let change = fleet.expect(endpoints_with(needle, "endpoint-added"));
    let first_sent = Instant::now();
    server.state.content.send(needle.to_owned()).unwrap();
    fleet.written(change, first_sent, Instant::now());
    let waited = fleet.wait(change, deadline());
    assert!(waited.is_complete() && waited.expected > 0, "{waited:?}");
}

fn check_converged(result: &FleetResult, count: u64) {
    let proxies = &result.proxies;
    assert_eq!(
        (proxies.wanted, proxies.connected, proxies.converged, proxies.never),
        (count, count, count, 0)
    );
    assert_eq!(result.first_configuration_us.count, count);
    assert_eq!(result.violations, BTreeMap::new());
}

#[test]
fn change_reaches_every_proxy_in_plaintext() {
    let server = Server::start(Security::Plaintext);
    let fleet = complete(spec(&server, 20));
    change(&fleet, &server, "second");
    change(&fleet, &server, "third");
    let result = fleet.finish();
    check_converged(&result, 20);
    assert_eq!((result.changes.len(), result.convergence_us.count), (2, 40));
    assert_eq!((result.changes[0].expected, result.changes[0].reached), (20, 20));
    assert_eq!(result.pushes["cds"].by_trigger, BTreeMap::from([("connect".to_owned(), 20)]));
    assert_eq!(result.pushes["eds"].by_trigger["endpoint-added"], 40);
    assert!(result.pushes["eds"].bytes > 60 * 60_000, "{:?}", result.pushes);
    assert_eq!(result.acknowledgements, result.pushes.values().map(|pushes| pushes.count).sum::<u64>());
    assert_eq!(result.fleet.lag_us.count, result.acknowledgements);
}

#[test]
fn change_reaches_every_proxy_with_token() {
    let server = Server::start(Security::Token);
    let fleet = complete(spec(&server, 10));
    change(&fleet, &server, "second");
    // Istio's agent has a certificate for the application's traffic, whatever its credentials for istiod.
    let rotation = fleet.rotate_certificates(Selection::All).unwrap();
    assert!(fleet.wait(rotation, deadline()).is_complete());
    check_converged(&fleet.finish(), 10);
}

#[test]
fn failed_change_is_not_expected_of_any_proxy() {
    let server = Server::start(Security::Plaintext);
    let fleet = complete(spec(&server, 3));
    let failed = fleet.expect(endpoints_with("never", "endpoint-added"));
    fleet.failed(failed, "no permission");
    assert!(fleet.wait(failed, deadline()).is_complete());
    change(&fleet, &server, "second");
    let result = fleet.finish();
    check_converged(&result, 3);
    assert_eq!(result.changes[0].failure.as_deref(), Some("no permission"));
    assert_eq!((result.changes[0].expected, result.convergence_us.count), (0, 3));
}

#[test]
fn connect_storm_counts_reconnecting_proxies() {
    let server = Server::start(Security::Plaintext);
    let port = Forward::reserve();
    let mut spec = spec(&server, 3);
    spec.targets[0].address = port.local_addr().unwrap().to_string();
    let fleet = Fleet::start(spec).unwrap();
    let refused = |fleet: &Fleet| fleet.events().iter().any(|event| event.kind == "connection-refused");
    assert!(fleet.wait_until(deadline(), refused));
    let _forward = Forward::listen(port, server.address);
    let storm = fleet.reconnect("connect-storm", Selection::All);
    let waited = fleet.wait(storm, deadline());
    assert_eq!((waited.expected, waited.reached), (3, 3));
}

#[test]
fn change_reaches_every_proxy_with_mutual_tls() {
    let server = Server::start(Security::MutualTls);
    let fleet = complete(FleetSpec { threads: Some(1), ..spec(&server, 10) });
    assert_eq!(server.seen().certificates, 2, "one per service account");
    change(&fleet, &server, "second");
    let rotation = fleet.rotate_certificates(Selection::All).unwrap();
    assert!(fleet.wait(rotation, deadline()).is_complete());
    assert_eq!(server.seen().certificates, 4);
    let storm = fleet.reconnect("connect-storm", Selection::All);
    assert!(fleet.wait(storm, deadline()).is_complete());
    let result = fleet.finish();
    assert_eq!(result.proxies.converged, 10, "{result:#?}");
    let kinds: Vec<_> = result.changes.iter().map(|change| (change.kind.as_str(), change.reached)).collect();
    assert_eq!(kinds, [("endpoint-added", 10), ("certificate-rotation", 10), ("connect-storm", 10)]);
    assert_eq!(result.convergence_us.count, 10, "of changes of the mesh alone");
}

#[test]
fn wrong_token_is_reported() {
    for security in [Security::Token, Security::MutualTls] {
        let server = Server::start(security);
        let mut spec = spec(&server, 1);
        spec.proxies[0].1.token = Some("another".into());
        let fleet = Fleet::start(spec).unwrap();
        let expected =
            if security == Security::Token { "grpc-unauthenticated" } else { "certificate-refused" };
        let result = finish_with_violation(fleet, expected);
        assert_eq!((result.proxies.never, result.proxies.never_names.len()), (1, 1));
        let event = result.events.iter().find(|event| event.kind == expected).unwrap();
        assert!(
            event.detail.contains("client-0.namespace-0") && event.detail.contains("in words"),
            "{event:?}"
        );
    }
}

/// Waits for an event of this kind, then ends the fleet.
fn finish_with_violation(fleet: Fleet, kind: &str) -> FleetResult {
    let has_come = |fleet: &Fleet| fleet.events().iter().any(|event| event.kind == kind);
    let came = fleet.wait_until(deadline(), has_come);
    let result = fleet.finish();
    assert!(came && result.violations[kind] > 0, "no `{kind}`: {result:#?}");
    result
}

#[test]
fn misbehaviour_is_reported_and_proxies_catch_up() {
    let quick = Keepalive { interval: Duration::from_millis(100), timeout: Duration::from_millis(100) };
    let cases = [
        (Misbehaviour::LargeMessage, "message-too-large"),
        (Misbehaviour::Reset, "stream-reset"),
        (Misbehaviour::EndConnection, "connection-lost"),
    ];
    for (misbehaviour, kind) in cases {
        let server = Server::start(Security::Plaintext);
        server.misbehave(Some(misbehaviour));
        let fleet = Fleet::start(FleetSpec { keepalive: quick, ..spec(&server, 2) }).unwrap();
        let has_come = |fleet: &Fleet| fleet.events().iter().any(|event| event.kind == kind);
        assert!(fleet.wait_until(deadline(), has_come), "no `{kind}`: {:#?}", fleet.finish());
        server.misbehave(None);
        assert!(fleet.wait_complete(deadline()).is_complete());
        let result = fleet.finish();
        assert!(result.violations[kind] > 0 && result.proxies.converged == 2, "{result:#?}");
    }
}

#[test]
fn dead_link_is_detected_by_ping_timeout() {
    let server = Server::start(Security::Plaintext);
    // Long for a live link on a busy machine.
    let timeout = Duration::from_secs(3);
    let keepalive = Keepalive { interval: Duration::from_millis(50), timeout };
    let forward = Forward::start(server.address);
    let mut spec = FleetSpec { keepalive, ..spec(&server, 2) };
    spec.targets[0].address = forward.address.to_string();
    let fleet = complete(spec);
    let outage = fleet.expect_return("link-down", Selection::All);
    forward.stall(true);
    let missed = fleet.expect(endpoints_with("second", "endpoint-added"));
    server.state.content.send("second".to_owned()).unwrap();
    fleet.written(missed, Instant::now(), Instant::now());
    let is_silent = |fleet: &Fleet| fleet.status().connected == 0;
    assert!(fleet.wait_until(deadline(), is_silent));
    assert_eq!(fleet.reached(missed).reached, 0);
    forward.stall(false);
    assert!(fleet.wait(missed, deadline()).is_complete(), "it is seen to catch up");
    assert!(fleet.wait(outage, deadline()).is_complete());
    let result = fleet.finish();
    assert!(result.violations["ping-timeout"] >= 2, "{result:#?}");
    let causes: Vec<_> =
        result.cut_off.iter().map(|outage| (outage.cause.as_str(), outage.proxies)).collect();
    assert_eq!(causes, [("link-down", 2)]);
    assert_eq!(result.cut_off[0].recovery_us.count, 2);
}

#[test]
fn cut_off_proxies_miss_change_until_restored() {
    let server = Server::start(Security::Plaintext);
    let fleet = complete(spec(&server, 4));
    let namespace = Selection::Namespaces(BTreeSet::from(["namespace-1".to_owned()]));
    let cut_off = fleet.cut_off("link-down", namespace);
    let is_cut = |fleet: &Fleet| fleet.status().connected == 2;
    assert!(fleet.wait_until(deadline(), is_cut));
    let change = fleet.expect(endpoints_with("second", "endpoint-added"));
    server.state.content.send("second".to_owned()).unwrap();
    fleet.written(change, Instant::now(), Instant::now());
    assert!(fleet.wait_until(deadline(), |fleet| fleet.reached(change).reached == 2));
    let entry = &fleet.change(change)[0];
    assert_eq!((entry.expected, entry.reached, entry.convergence_us.censored), (4, 2, 2));
    fleet.restore(cut_off);
    assert!(fleet.wait(change, deadline()).is_complete());
    assert!(fleet.wait(cut_off, deadline()).is_complete());
    assert!(server.seen().resumed > 0, "a return names the versions that are held");
    let result = fleet.finish();
    assert_eq!((result.proxies.converged, result.changes.len()), (4, 1));
    assert_eq!(result.cut_off[0].names, ["client-1.namespace-1", "client-3.namespace-1"]);
}

#[test]
fn interrupted_fleet_reports_unconverged_proxies() {
    let server = Server::start(Security::Plaintext);
    let fleet = complete(spec(&server, 3));
    let change = fleet.expect(endpoints_with("never", "endpoint-added"));
    fleet.written(change, Instant::now(), Instant::now());
    let interrupter = fleet.interrupter();
    std::thread::spawn(move || interrupter.interrupt());
    assert_eq!(fleet.wait(change, deadline()).reached, 0);
    let result = fleet.finish();
    assert_eq!((result.proxies.converged, result.proxies.never), (0, 3));
    assert_eq!((result.changes[0].reached, result.convergence_us.p50), (0, None));
    assert_eq!(result.verdict.reasons, ["not-converged: 3 of 3 proxies", "interrupted"]);
}

#[test]
fn control_plane_that_starts_late_is_reached() {
    let server = Server::start(Security::Plaintext);
    let port = Forward::reserve();
    let mut spec = spec(&server, 2);
    spec.targets[0].address = port.local_addr().unwrap().to_string();
    let fleet = Fleet::start(spec).unwrap();
    let refused = |fleet: &Fleet| fleet.events().iter().any(|event| event.kind == "connection-refused");
    assert!(fleet.wait_until(deadline(), refused));
    let _forward = Forward::listen(port, server.address);
    assert!(fleet.wait_complete(deadline()).is_complete());
    let result = fleet.finish();
    assert!(result.violations["connection-refused"] > 0 && result.proxies.converged == 2);
    assert_eq!(result.cut_off, [], "nothing was lost");
}

#[test]
fn fleet_connects_to_both_control_planes_or_spreads_over_them() {
    let servers = [Server::start(Security::Plaintext), Server::start(Security::Plaintext)];
    let targets: Vec<_> = servers.iter().map(Server::target).collect();
    let fleet =
        complete(FleetSpec { targets: targets.clone(), spread: Spread::Each, ..spec(&servers[0], 4) });
    let change = fleet.expect(endpoints_with("second", "endpoint-added"));
    servers.iter().for_each(|server| server.state.content.send("second".to_owned()).unwrap());
    fleet.written(change, Instant::now(), Instant::now());
    assert!(fleet.wait(change, deadline()).is_complete());
    let result = fleet.finish();
    check_converged(&result, 8);
    assert_eq!(result.by_istiod.iter().map(|part| part.proxies.converged).collect::<Vec<_>>(), [4, 4]);
    let reached: Vec<_> = result.changes.iter().map(|change| (change.istiod, change.reached)).collect();
    assert_eq!(reached, [(Some(0), 4), (Some(1), 4)]);

    let streams = servers.each_ref().map(|server| server.seen().streams);
    let fleet = complete(FleetSpec { targets, ..spec(&servers[0], 4) });
    check_converged(&fleet.finish(), 4);
    assert_eq!(servers.each_ref().map(|server| server.seen().streams), streams.map(|before| before + 2));
}

#[test]
fn invalid_spec_is_clear_error() {
    let server = Server::start(Security::Token);
    let error = |change: fn(&mut FleetSpec)| {
        let mut spec = spec(&server, 1);
        change(&mut spec);
        Fleet::start(spec).unwrap_err().to_string()
    };
    assert_eq!(error(|spec| spec.targets.clear()), "a fleet needs a control plane to connect to");
    assert_eq!(error(|spec| spec.proxies.clear()), "a fleet needs proxies");
    let without = error(|spec| spec.proxies[0].1.token = None);
    assert!(without.contains("`client-0.namespace-0` has no token"), "{without}");
    let nowhere = error(|spec| spec.targets[0].address = "nowhere".to_owned());
    assert_eq!(nowhere, "find the address of the control plane `nowhere`");
    let roots = error(|spec| spec.targets[0].roots = (*b"text").into());
    assert!(roots.starts_with("set up TLS for the control plane `127.0.0.1:"), "{roots}");
}
