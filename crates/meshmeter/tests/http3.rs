//! HTTP/3 of `meshmeter load` against `meshmeter serve` and against Envoy (Google's QUIC).

mod command;

use command::{Serving, run, stderr};
use components::{Component, Overrides, find};
use results::{LoadResult, SpokenProtocol};
use std::fs;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Timeout for Envoy to listen.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A service over HTTP/3 with the certificate of its authority.
struct Service {
    serving: Serving,
    folder: tempfile::TempDir,
}

impl Service {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = folder.path().join("ca.pem").display().to_string();
        let fixed = ["--http3", "--tls-listen", "127.0.0.1:0", "--tls-ca-out", &authority];
        Self { serving: Serving::start(&[&fixed, arguments].concat()), folder }
    }

    /// URL over HTTPS with this path and query.
    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.serving.listeners()[1])
    }

    fn load(&self, arguments: &[&str], path: &str) -> LoadResult {
        let authority = self.folder.path().join("ca.pem").display().to_string();
        let url = self.url(path);
        load(&[&["--cacert", &authority][..], arguments, &[&url]].concat())
    }

    /// The service's own counts of HTTP/3: connections, requests, answered, failed.
    fn counts(&self) -> [u64; 4] {
        let counters = self.serving.get("/meshmeter/counters");
        let json: serde_json::Value =
            serde_json::from_str(counters.split_once("\r\n\r\n").expect("a body").1.trim()).expect("JSON");
        let of_http3 = &json["protocols"]["http/3"];
        ["connections", "requests", "answered", "failed"].map(|name| of_http3[name].as_u64().expect(name))
    }
}

/// The result of a load over HTTP/3.
fn load(arguments: &[&str]) -> LoadResult {
    let usual = ["load", "--http", "3", "--progress", "off", "--json", "-"];
    let output = run(&[&usual[..], arguments].concat());
    let result: LoadResult =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    assert_eq!(result.protocol, SpokenProtocol::Http3);
    result
}

fn assert_all_answered(result: &LoadResult) {
    let requests = &result.requests;
    assert!(requests.completed > 0 && requests.completed == requests.sent, "{requests:?}");
    assert!(requests.errors.is_empty(), "{requests:?}");
}

#[test]
fn service_answers_as_over_other_versions() {
    let service = Service::start(&["--threads", "2"]);
    let fixed = ["--requests", "300", "--clients", "8", "--connections", "4", "--streams", "4"];
    let result = service.load(&fixed, "/?size=100KB&delay=1ms");
    assert_all_answered(&result);
    assert!(result.response_size_bytes.min >= 100_000, "{:?}", result.response_size_bytes);
    assert!(result.service_time_us.min >= 1000.0, "{:?}", result.service_time_us);
    let all = [&fixed[..], &["--body-size", "300KB", "--method", "POST", "--expect-status", "404"]].concat();
    assert_all_answered(&service.load(&all, "/?status=404"));
    let [connections, requests, answered, failed] = service.counts();
    assert_eq!((connections, failed), (8, 0));
    assert_eq!((requests, answered), (600, 600));
}

#[test]
fn connections_are_closed_at_the_end_of_a_load() {
    let service = Service::start(&["--max-connections", "8"]);
    for _ in 0..3 {
        assert_all_answered(
            &service.load(&["--requests", "20", "--clients", "6", "--connections", "6"], "/"),
        );
    }
}

/// Some attempts are always under way while many connections are refused.
#[test]
fn untrusted_certificate_is_known_before_the_timeout() {
    let service = Service::start(&[]);
    let url = service.url("/");
    let fixed = ["load", "--http", "3", "--connections", "32", "--requests", "1", "--timeout", "10m"];
    let output = run(&[&fixed[..], &[&url]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}

#[test]
fn streams_of_events_have_their_times() {
    let service = Service::start(&[]);
    let fixed = ["--requests", "20", "--clients", "4", "--connections", "2", "--streams", "2"];
    let result = service.load(&fixed, "/?events=5&first=20ms&gap=5ms");
    assert_all_answered(&result);
    let events = result.events.expect("events are counted");
    assert_eq!(events.received, 100);
    assert!(result.first_event_us.expect("first events").min >= 20_000.0);
}

#[test]
fn connections_that_the_service_ends_lose_nothing() {
    let service = Service::start(&["--connection-close-after", "10"]);
    let result = service.load(&["--requests", "100", "--clients", "2", "--connections", "2"], "/");
    assert_all_answered(&result);
    let [connections, requests, answered, failed] = service.counts();
    assert!(connections >= 10, "{connections}");
    assert_eq!([requests, answered, failed], [100, 100, 0]);
}

#[test]
fn each_request_can_have_a_connection() {
    let service = Service::start(&[]);
    let result = service.load(&["--rate", "50", "--duration", "1s", "--new-connection-per-request"], "/");
    assert_all_answered(&result);
    assert!(service.counts()[0] >= result.requests.completed);
}

#[test]
fn what_does_not_go_with_http3_is_refused() {
    for (arguments, reason) in [
        (&["http://127.0.0.1:1/"][..], "--http 3 is for https:// URLs"),
        (&["grpcs://127.0.0.1:1/"], "--http 3 is for https:// URLs"),
        (&["--tls-version", "1.2", "https://127.0.0.1:1/"], "QUIC has TLS 1.3"),
        (&["--network", "io-uring", "https://127.0.0.1:1/"], "UDP sockets on epoll"),
        (&["--proxy-protocol", "1", "https://127.0.0.1:1/"], "its header is for TCP"),
    ] {
        let output = run(&[&["load", "--http", "3", "--insecure"][..], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(reason), "{arguments:?}: {}", stderr(&output));
    }
}

/// Envoy with a listener for HTTP/3 in front of a service; stopped when dropped.
struct Envoy {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Envoy {
    fn start(upstream: &str) -> Self {
        let program = find(Component::Envoy, &Overrides::default())
            .expect("this test needs Envoy: `meshmeter lab install`");
        let folder = tempfile::tempdir().expect("a folder");
        let certificate =
            rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
        fs::write(folder.path().join("server.pem"), certificate.cert.pem()).expect("a file");
        fs::write(folder.path().join("server.key"), certificate.signing_key.serialize_pem()).expect("a file");
        // Free a moment ago; nothing else here uses UDP.
        let address =
            UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
        let admin =
            TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
        fs::write(folder.path().join("envoy.yaml"), configuration(folder.path(), address, admin, upstream))
            .expect("a file");
        let child = Command::new(&program.path)
            .args(["-c", "envoy.yaml", "--concurrency", "1", "--disable-hot-restart", "-l", "warning"])
            .current_dir(folder.path())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("Envoy starts");
        let envoy = Self { child, address, _folder: folder };
        let give_up = Instant::now() + START_TIMEOUT;
        while std::net::TcpStream::connect(admin).is_err() {
            assert!(Instant::now() < give_up, "Envoy does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        envoy
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn configuration(folder: &Path, address: SocketAddr, admin: SocketAddr, upstream: &str) -> String {
    let file = |name: &str| folder.join(name).display().to_string();
    let (host, port) = upstream.split_once(':').expect("an address with a port");
    format!(
        r#"
admin: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {admin_port}}}}}}}
static_resources:
  listeners:
  - address: {{socket_address: {{protocol: UDP, address: 127.0.0.1, port_value: {port_value}}}}}
    udp_listener_config: {{quic_options: {{}}, downstream_socket_config: {{prefer_gro: true}}}}
    filter_chains:
    - transport_socket:
        name: quic
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.quic.v3.QuicDownstreamTransport
          downstream_tls_context:
            common_tls_context:
              tls_certificates:
              - certificate_chain: {{filename: {certificate}}}
                private_key: {{filename: {key}}}
      filters:
      - name: http
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          codec_type: HTTP3
          stat_prefix: ingress
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes: [{{match: {{prefix: /}}, route: {{cluster: service}}}}]
          http_filters:
          - name: router
            typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
  clusters:
  - name: service
    load_assignment:
      cluster_name: service
      endpoints:
      - lb_endpoints:
        - endpoint: {{address: {{socket_address: {{address: {host}, port_value: {port}}}}}}}
"#,
        admin_port = admin.port(),
        port_value = address.port(),
        certificate = file("server.pem"),
        key = file("server.key"),
    )
}

#[test]
fn envoy_carries_requests_of_http3() {
    let serving = Serving::start(&[]);
    let envoy = Envoy::start(serving.authority());
    let url = |path: &str| format!("https://{}{path}", envoy.address);
    let fixed =
        ["--insecure", "--clients", "16", "--connections", "4", "--streams", "4", "--requests", "2000"];
    let result = load(&[&fixed[..], &[&url("/")]].concat());
    assert_all_answered(&result);
    assert_eq!(serving.requests(), result.requests.completed + result.warmup.completed);
    // Bodies both ways, and more connections than before.
    let bodies =
        ["--insecure", "--clients", "8", "--connections", "8", "--requests", "100", "--method", "POST"];
    let large = url("/?size=300KB");
    let arguments = [&bodies[..], &["--body-size", "200KB", &large]].concat();
    assert_all_answered(&load(&arguments));
    let churn = ["--insecure", "--rate", "50", "--duration", "1s", "--new-connection-per-request"];
    assert_all_answered(&load(&[&churn[..], &[&url("/")]].concat()));
}
