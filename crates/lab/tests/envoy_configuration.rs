//! Snapshots of every configuration that the lab can generate, and a check that the real Envoy accepts each.

use components::{Component, Overrides, find};
use experiment::Protocol;
use experiment::environment::AccessLog;
use lab::certificates::{CredentialFiles, RunAuthority};
use mesh::envoy::bootstrap::{Callee, Inbound, Position, ProxyConfiguration, configuration};
use mesh::filters::GatewayFilters;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const SERVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 3), 8080);

fn host(name: &str) -> String {
    format!("{name}.default.svc.cluster.local")
}

fn identity(name: &str) -> String {
    format!("spiffe://cluster.local/ns/default/sa/{name}")
}

fn callee(protocol: Protocol) -> Callee {
    let identity = Some(identity("server"));
    Callee { host: host("server"), protocol, address: SERVICE, endpoints: vec![SERVICE], identity }
}

/// Positions in a pair, and in the middle of a graph.
fn positions(protocol: Protocol) -> [(&'static str, Position); 4] {
    let inbound = Inbound { host: host("server"), port: 8080, callers: vec![identity("client")] };
    let endpoints = [4, 5].map(|number| SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, number), 8080));
    let address = SocketAddrV4::new(Ipv4Addr::new(10, 78, 0, 1), 8080);
    let others = [
        Callee { host: host("replicated"), address, endpoints: endpoints.into(), ..callee(Protocol::Grpc) },
        Callee { host: host("outside"), address: endpoints[0], identity: None, ..callee(Protocol::Http1) },
    ];
    let callees = vec![callee(protocol)];
    [
        ("client-proxy", Position::Sidecar { inbound: None, callees: callees.clone() }),
        ("server-proxy", Position::Sidecar { inbound: Some(inbound.clone()), callees: Vec::new() }),
        (
            "middle-proxy",
            Position::Sidecar { inbound: Some(inbound), callees: [callees, others.into()].concat() },
        ),
        (
            "gateway",
            Position::Gateway {
                port: 8080,
                callee: Callee { identity: None, ..callee(protocol) },
                domains: None,
                filters: GatewayFilters::default(),
            },
        ),
    ]
}

fn credentials(folder: &Path) -> CredentialFiles {
    let credentials = RunAuthority::create().unwrap().issue(&identity("own")).unwrap();
    credentials.write(&folder.join("credentials"), None).unwrap()
}

fn proxy(folder: &Path, name: &str, position: Position) -> ProxyConfiguration {
    ProxyConfiguration {
        name: name.to_owned(),
        position,
        credentials: Some(credentials(folder)),
        access_log: AccessLog::Off,
        cpu_time: Duration::ZERO,
        socket_mark: None,
        admin_socket: folder.join("admin"),
    }
}

#[test]
fn envoy_accepts_every_configuration() {
    let envoy = find(Component::Envoy, &Overrides::default())
        .expect("this test needs Envoy: `meshmeter lab install`");
    for (name, position) in positions(Protocol::Http1) {
        let folder = tempfile::tempdir().unwrap();
        let full = proxy(folder.path(), name, position);
        let http2 = positions(Protocol::Http2).into_iter().find(|(other, _)| *other == name).unwrap().1;
        for variant in [
            full.clone(),
            ProxyConfiguration { access_log: AccessLog::Text, socket_mark: Some(1337), ..full.clone() },
            ProxyConfiguration { access_log: AccessLog::Json, credentials: None, ..full.clone() },
            ProxyConfiguration { cpu_time: Duration::from_micros(50), ..full.clone() },
            ProxyConfiguration { position: http2, ..full },
        ] {
            let path = folder.path().join("envoy.json");
            std::fs::write(&path, configuration(&variant).to_string()).unwrap();
            let output = Command::new(&envoy.path)
                .args(["--mode", "validate", "--log-level", "warning", "--config-path"])
                .arg(&path)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name}: {said}");
            // Deprecated fields and ignored settings show as warnings.
            assert!(said.trim().is_empty(), "{name}: {said}");
        }
    }
}

#[test]
fn configurations_match_snapshots() {
    let of_a_pair = positions(Protocol::Http1).into_iter().filter(|(name, _)| *name != "middle-proxy");
    for (name, position) in of_a_pair {
        let folder = tempfile::tempdir().unwrap();
        let value = configuration(&proxy(folder.path(), name, position));
        let text = serde_json::to_string_pretty(&value).unwrap();
        let text = text.replace(&folder.path().display().to_string(), "[folder]");
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn switches_change_only_their_part_of_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let full = proxy(folder.path(), "client-proxy", positions(Protocol::Http1)[0].1.clone());
    let of = |proxy: &ProxyConfiguration| configuration(proxy).to_string();

    let plain = of(&ProxyConfiguration { credentials: None, ..full.clone() });
    assert!(!plain.contains("transport_sockets.tls") && of(&full).contains("transport_sockets.tls"));

    let marked = of(&ProxyConfiguration { socket_mark: Some(1337), ..full.clone() });
    assert!(marked.contains(r#""int_value":1337"#) && !of(&full).contains("socket_options"));

    let logged = of(&ProxyConfiguration { access_log: AccessLog::Json, ..full.clone() });
    assert!(logged.contains("json_format") && !of(&full).contains("access_loggers"));

    let computing = of(&ProxyConfiguration { cpu_time: Duration::from_micros(50), ..full.clone() });
    assert!(computing.contains("thread_cpu_ns() + 50000 ") && !of(&full).contains("filters.http.lua"));
}
