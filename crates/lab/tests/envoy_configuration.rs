//! Every configuration that the lab can generate: what it looks like, and that the real Envoy accepts it.

use experiment::Protocol;
use experiment::environment::AccessLog;
use lab::certificates::{RunAuthority, spiffe_identity};
use lab::components::{Component, Overrides, find};
use mesh::envoy::bootstrap::{MutualTls, Position, ProxyConfiguration, configuration};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::Command;

const SERVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 3), 8080);

fn positions() -> [(&'static str, Position); 3] {
    [
        ("client-proxy", Position::ClientSidecar { service: SERVICE }),
        ("server-proxy", Position::ServerSidecar { port: 8080 }),
        ("gateway", Position::Gateway { port: 8080, service: SERVICE }),
    ]
}

/// Credentials written to `folder`, as the proxy at this position has them.
fn mutual_tls(folder: &Path, name: &str) -> MutualTls {
    let (own, peer) = if name == "client-proxy" { ("client", "server") } else { ("server", "client") };
    let credentials = RunAuthority::create().unwrap().issue(&spiffe_identity(own)).unwrap();
    let credentials = credentials.write(&folder.join("credentials"), None).unwrap();
    MutualTls { credentials, peer_identity: spiffe_identity(peer) }
}

fn proxy(folder: &Path, name: &str, position: Position) -> ProxyConfiguration {
    ProxyConfiguration {
        name: name.to_owned(),
        position,
        protocol: Protocol::Http1,
        mutual_tls: Some(mutual_tls(folder, name)),
        access_log: AccessLog::Off,
        socket_mark: None,
        admin_socket: folder.join("admin"),
    }
}

#[test]
fn envoy_accepts_every_configuration() {
    let envoy = find(Component::Envoy, &Overrides::default())
        .expect("this test needs Envoy: `meshmeter lab install`");
    for (name, position) in positions() {
        let folder = tempfile::tempdir().unwrap();
        let full = proxy(folder.path(), name, position);
        for variant in [
            full.clone(),
            ProxyConfiguration { access_log: AccessLog::Text, socket_mark: Some(1337), ..full.clone() },
            ProxyConfiguration { access_log: AccessLog::Json, mutual_tls: None, ..full.clone() },
            ProxyConfiguration { protocol: Protocol::Http2, ..full },
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
fn configurations_are_as_a_mesh_would_have_them() {
    for (name, position) in positions() {
        let folder = tempfile::tempdir().unwrap();
        let value = configuration(&proxy(folder.path(), name, position));
        let text = serde_json::to_string_pretty(&value).unwrap();
        let text = text.replace(&folder.path().display().to_string(), "[folder]");
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn switches_change_what_they_name_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let full = proxy(folder.path(), "client-proxy", positions()[0].1);
    let of = |proxy: &ProxyConfiguration| configuration(proxy).to_string();

    let plain = of(&ProxyConfiguration { mutual_tls: None, ..full.clone() });
    assert!(!plain.contains("transport_sockets.tls") && of(&full).contains("transport_sockets.tls"));

    let marked = of(&ProxyConfiguration { socket_mark: Some(1337), ..full.clone() });
    assert!(marked.contains(r#""int_value":1337"#) && !of(&full).contains("socket_options"));

    let logged = of(&ProxyConfiguration { access_log: AccessLog::Json, ..full.clone() });
    assert!(logged.contains("json_format") && !of(&full).contains("access_loggers"));
}
