//! `meshmeter fleet` when it cannot run: a one-line reason, a hint, the right exit status, and nothing
//! written.

mod command;

use command::{Serving, run, stderr};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::TempDir;

/// Address without a listener.
const NOBODY: &str = command::NOBODY;

/// Runs the fleet. Returns the exit status and standard error.
fn fleet(arguments: &[&str]) -> (Option<i32>, String) {
    let output = run(&[&["fleet"], arguments].concat());
    (output.status.code(), stderr(&output))
}

fn assert_refused(arguments: &[&str], status: i32, parts: &[&str]) {
    let (code, said) = fleet(arguments);
    assert_eq!(code, Some(status), "{arguments:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{arguments:?}: `{part}` is not in {said}");
    }
}

#[test]
fn contradictory_options_are_usage_errors() {
    let cases: &[(&[&str], &str, &str)] = &[
        (
            &["--proxies", "50", "--pods", "20"],
            "--proxies: 50 sidecars in a mesh of 20 pods",
            "expected at most 20, or more `--pods`",
        ),
        (
            &["--topology", "tiered", "--proxies", "5"],
            "--proxies: 5 sidecars in a mesh of 4 pods",
            "expected at most 4, or a topology of more pods than `tiered`",
        ),
        (&["--kind", "gateway=2"], "--kind: `gateway=2` are 2 proxies of 100", "one kind without a number"),
        (
            &["--kind", "ztunnel", "--xds", "state-of-the-world"],
            "--xds: ztunnels do not speak state-of-the-world",
            "expected `delta`",
        ),
        (
            &["--security", "token", "--change", "certificate-rotation"],
            "--change: `certificate-rotation` needs proxies with certificates",
            "expected with `--security mutual-tls`",
        ),
        (&["--istiod", "istiod.example"], "`istiod.example` has no port", "HOST:PORT"),
        (&["--istiod", "/no/such/program"], "there is no program /no/such/program", "HOST:PORT"),
        (&["--istiod", NOBODY, "--istiod", "/bin/sh"], "names a program, /bin/sh, and an address", "compare"),
        (&["--istiod", NOBODY, "--change", "istiod-restart"], "is made in a lab", "leave --istiod out"),
        (&["--kubeconfig", "f"], "--kubeconfig is for an istiod elsewhere", "--istiod HOST:PORT"),
        (&["--keep-mesh"], "--keep-mesh is for an istiod elsewhere", "--istiod HOST:PORT"),
        (
            &["--istiod", NOBODY, "--json", "/no/such/folder/f"],
            "there is no folder `/no/such/folder`",
            "--json",
        ),
        (
            &["--istiod", NOBODY, "--istiod-metrics", "http://a:1/m", "--istiod-metrics", "http://b:1/m"],
            "2 --istiod-metrics for 1 --istiod",
            "one per istiod",
        ),
        (&["--istiod", "a:1", "--istiod", "a:2"], "two --istiod have one host", "--istiod-metrics"),
        (&["--witness", "a:15090"], "--witness is for an istiod elsewhere", "--istiod HOST:PORT"),
        (&["--spread", "shared"], "--spread shared is for an istiod elsewhere", "--istiod HOST:PORT"),
        (&["--change", "endpoint-aded"], "did you mean endpoint-added?", "--change"),
        (
            &["--istiod-metrics", "https://a:1/metrics"],
            "expected http://HOST:PORT/metrics",
            "--istiod-metrics",
        ),
    ];
    for (arguments, message, hint) in cases {
        assert_refused(arguments, 2, &[message, hint]);
    }
}

#[test]
fn unusable_kubeconfig_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let path = path.to_str().unwrap();
    let arguments = ["--istiod", NOBODY, "--kubeconfig", path];
    let reading = format!("read the kubeconfig {path}: ");
    assert_refused(&arguments, 3, &[&reading, "No such file or directory", "--kubeconfig FILE"]);
    fs::write(path, "clusters: [").unwrap();
    assert_refused(&arguments, 3, &[&reading]);
    fs::write(path, kubeconfig(NOBODY).to_string()).unwrap();
    assert_refused(
        &arguments,
        3,
        &["query the version of the Kubernetes API", "can it be reached from here?"],
    );
    assert_refused(&["--remove", "a", "--kubeconfig", path], 3, &["the Kubernetes API"]);
}

#[test]
fn low_open_file_limit_is_reported_before_anything_else() {
    let meshmeter = env!("CARGO_BIN_EXE_meshmeter");
    let script = format!("ulimit -n 600 && exec {meshmeter} fleet --istiod {NOBODY} --proxies 200");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("200 connections take 712 open files, and the limit is 600"), "{said}");
    assert!(said.contains("ulimit -Hn 712"), "{said}");
}

#[test]
fn api_that_rejects_requests_is_named() {
    let api = Api::start(|_, path| match path {
        "/version" => refusal(401, "Unauthorized"),
        _ => refusal(500, "not asked for"),
    });
    let arguments = api.arguments(NOBODY);
    assert_refused(&words(&arguments), 3, &["Unauthorized", "credentials: have they expired?"]);

    let api = Api::start(|_, path| match path {
        "/version" => (200, json!({"gitVersion": "v1.36.3"})),
        _ => refusal(404, "not found"),
    });
    let mut arguments = api.arguments(NOBODY);
    arguments.truncate(4);
    let missing = "namespace istio-system has no ConfigMap istio-ca-root-cert";
    assert_refused(&words(&arguments), 3, &[missing, "is this the API that istiod watches?"]);
    assert!(api.writes().is_empty(), "{:?}", api.writes());
}

#[test]
fn server_that_is_not_istiod_is_named_before_anything_is_written() {
    let api = Api::start(willing);
    let refused = api.arguments(NOBODY);
    assert_refused(
        &words(&refused),
        3,
        &["connect to istiod at 127.0.0.1:1", "its port for proxies is 15012"],
    );

    let other = server(b"HTTP/1.1 400 Bad Request\r\n\r\n").to_string();
    let not_istiod = format!("what listens at {other} is not an istiod");
    assert_refused(&words(&api.arguments(&other)), 3, &[&not_istiod, "15012"]);

    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("authority.pem");
    let certificate = rcgen::generate_simple_self_signed(["istiod".to_owned()]).unwrap();
    fs::write(&authority, certificate.cert.pem()).unwrap();
    let serving = Serving::start(&["--tls-listen", "127.0.0.1:0", "--tls"]);
    let https = serving.listeners().iter().find_map(|url| url.strip_prefix("https://")).expect("it has one");
    let mut arguments = api.arguments(https);
    arguments.truncate(4);
    arguments.extend(["--istiod-ca", authority.to_str().unwrap()].map(str::to_owned));
    assert_refused(&words(&arguments), 3, &[&format!("TLS with istiod at {https}"), "--istiod-ca FILE"]);
    assert!(api.writes().is_empty(), "{:?}", api.writes());
}

/// Without TLS the fleet needs no certificate authority, which this API lacks.
#[test]
fn fleet_of_a_run_authenticates_as_its_settings_say() {
    let api = Api::start(willing);
    let folder = tempfile::tempdir().unwrap();
    let spec = folder.path().join("fleet.yaml");
    let mut arguments = api.arguments(NOBODY);
    arguments.truncate(4);
    arguments.extend(["--spec", spec.to_str().unwrap()].map(str::to_owned));
    for (security, said) in [
        ("plaintext", "connect to istiod at 127.0.0.1:1"),
        ("token", "has no ConfigMap istio-ca-root-cert"),
        ("mutual-tls", "has no ConfigMap istio-ca-root-cert"),
    ] {
        fs::write(&spec, format!("fleet: {{proxies: 2, security: {security}, changes: [endpoint-added]}}\n"))
            .unwrap();
        assert_refused(&words(&arguments), 3, &[said]);
    }
}

#[test]
fn missing_istio_kinds_or_permission_is_reported_before_anything_is_written() {
    let settings = server(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00").to_string();
    let api = Api::start(|method, path| match path {
        path if path.contains("networking.istio.io") => refusal(404, "404 page not found"),
        path => willing(method, path),
    });
    assert_refused(
        &words(&api.arguments(&settings)),
        3,
        &["the Kubernetes API has no kind", "Istio's definitions (CRDs)"],
    );
    assert!(api.writes().is_empty(), "{:?}", api.writes());

    let settings = server(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00").to_string();
    let api = Api::start(|method, path| match path {
        path if path.contains("selfsubjectaccessreviews") => (201, json!({"status": {"allowed": false}})),
        path => willing(method, path),
    });
    let denied = "the kubeconfig's user may not ";
    assert_refused(&words(&api.arguments(&settings)), 3, &[denied, "create services", "in all namespaces"]);
    assert!(api.writes().is_empty(), "{:?}", api.writes());
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

fn kubeconfig(authority: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": format!("http://{authority}")}}],
        "users": [{"name": "a", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    })
}

fn refusal(code: u16, message: &str) -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": code,
    });
    (code, status)
}

/// An API that has no objects and permits everything.
fn willing(_method: &str, path: &str) -> (u16, Value) {
    match path {
        "/version" => (200, json!({"gitVersion": "v1.36.3"})),
        path if path.contains("selfsubjectaccessreviews") => (201, json!({"status": {"allowed": true}})),
        "/apis/networking.istio.io/v1" => served(&[
            ("virtualservices", "VirtualService"),
            ("destinationrules", "DestinationRule"),
            ("serviceentries", "ServiceEntry"),
        ]),
        "/apis/security.istio.io/v1" => served(&[
            ("authorizationpolicies", "AuthorizationPolicy"),
            ("peerauthentications", "PeerAuthentication"),
        ]),
        "/apis/discovery.k8s.io/v1" => served(&[("endpointslices", "EndpointSlice")]),
        "/api/v1" => served(&[
            ("namespaces", "Namespace"),
            ("pods", "Pod"),
            ("services", "Service"),
            ("serviceaccounts", "ServiceAccount"),
        ]),
        path if path.contains("/configmaps/") => refusal(404, "not found"),
        _ => (200, json!({"kind": "List", "metadata": {}, "items": []})),
    }
}

fn served(kinds: &[(&str, &str)]) -> (u16, Value) {
    let kind = |(name, kind): &(&str, &str)| json!({"name": name, "kind": kind});
    (200, json!({"kind": "APIResourceList", "resources": kinds.iter().map(kind).collect::<Vec<_>>()}))
}

/// A Kubernetes API, as far as these tests use it.
struct Api {
    kubeconfig: PathBuf,
    /// Methods and paths of requests that modify something.
    writes: Arc<Mutex<Vec<String>>>,
    _folder: TempDir,
}

impl Api {
    fn start(respond: fn(&str, &str) -> (u16, Value)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let authority = listener.local_addr().unwrap().to_string();
        fs::write(&kubeconfig, self::kubeconfig(&authority).to_string()).unwrap();
        let writes = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&writes);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let noted = Arc::clone(&noted);
                // A client that has disconnected is done.
                thread::spawn(move || serve(&client, respond, &noted).unwrap_or_default());
            }
        });
        Self { kubeconfig, writes, _folder: folder }
    }

    /// Arguments for a small fleet without TLS; the first four name the istiod and the kubeconfig.
    fn arguments(&self, istiod: &str) -> Vec<String> {
        let kubeconfig = self.kubeconfig.to_str().unwrap();
        let words =
            ["--istiod", istiod, "--kubeconfig", kubeconfig, "--security", "plaintext", "--proxies", "2"];
        words.map(str::to_owned).to_vec()
    }

    fn writes(&self) -> Vec<String> {
        self.writes.lock().unwrap().clone()
    }
}

fn serve(
    client: &TcpStream,
    respond: fn(&str, &str) -> (u16, Value),
    writes: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(client);
    let mut writer = client;
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let mut words = request.split_whitespace();
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let path = target.split('?').next().unwrap_or_default();
        if method != "GET" && !path.contains("selfsubjectaccessreviews") {
            writes.lock().unwrap().push(format!("{method} {path}"));
        }
        let (code, value) = respond(method, path);
        let text = value.to_string();
        let head = "content-type: application/json\r\ncontent-length";
        write!(writer, "HTTP/1.1 {code} Reason\r\n{head}: {}\r\n\r\n{text}", text.len())?;
    }
}

/// A server that reads the start of what each client sends, responds with `says`, and waits for the client to
/// close.
fn server(says: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let mut first = [0; 16];
            if client.read_exact(&mut first).and_then(|()| client.write_all(says)).is_ok() {
                let _ = std::io::copy(&mut client, &mut std::io::sink());
            }
        }
    });
    address
}
