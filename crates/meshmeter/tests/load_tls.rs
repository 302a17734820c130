//! `meshmeter load` over TLS against nginx (OpenSSL).

mod command;

use command::{run, stderr, stdout};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use results::LoadResult;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Timeout for nginx to listen.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// nginx with a certificate for `shop.example` and its address; stopped when dropped.
struct Nginx {
    child: Child,
    folder: TempDir,
    address: SocketAddr,
}

impl Nginx {
    /// `settings`: additional lines of its `server` block.
    fn start(settings: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // nginx cannot choose a port itself. A loopback address of its own has free ports that nobody else
        // takes.
        let address = SocketAddr::from((own_address(), 61443));
        write_certificates(&folder, address.ip());
        fs::write(folder.path().join("nginx.conf"), configuration(address, settings)).expect("a file");
        let child = Command::new("nginx")
            .arg("-p")
            .arg(folder.path())
            .args(["-c", "nginx.conf", "-e", "error.log"])
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx is installed");
        let nginx = Self { child, folder, address };
        let give_up = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(address).is_err() {
            let log = fs::read_to_string(nginx.folder.path().join("error.log")).unwrap_or_default();
            assert!(Instant::now() < give_up, "nginx does not listen after {START_TIMEOUT:?}: {log}");
            std::thread::sleep(Duration::from_millis(5));
        }
        nginx
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn url(&self) -> String {
        format!("https://{}/", self.address)
    }

    /// nginx's own count of requests.
    fn requests(&self) -> u64 {
        fs::read_to_string(self.folder.path().join("access.log")).expect("a log").lines().count() as u64
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It is a single process, and a test may have ended it already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn configuration(address: SocketAddr, settings: &str) -> String {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {kind};\n"))
        .concat();
    format!(
        "daemon off;\nmaster_process off;\npid nginx.pid;\nevents {{}}\nhttp {{\naccess_log access.log;\n{temporary}\
         server {{\nlisten {address} ssl;\nssl_certificate server.pem;\nssl_certificate_key server.key;\n{settings}\n\
         location / {{ return 200 \"a body\"; }}\n}}\n}}\n"
    )
}

/// A loopback address that no other test uses, nor another run of this one: derived from the process ID and a
/// counter.
fn own_address() -> Ipv4Addr {
    static COUNTED: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high | 1, low, COUNTED.fetch_add(1, Ordering::Relaxed))
}

/// A CA and its certificates: for a server with this address, and for a client.
fn write_certificates(folder: &TempDir, server: IpAddr) {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name.push(DnType::CommonName, "an authority of a test");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(parameters, key).expect("a certificate");
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    fs::write(path("authority.pem"), authority.pem()).expect("a file");
    for (name, subjects) in
        [("server", vec!["shop.example".to_owned(), server.to_string()]), ("client", vec![])]
    {
        let key = KeyPair::generate().expect("a key");
        let parameters = CertificateParams::new(subjects).expect("names");
        let certificate = parameters.signed_by(&key, &authority).expect("a certificate");
        fs::write(path(&format!("{name}.pem")), certificate.pem()).expect("a file");
        fs::write(path(&format!("{name}.key")), key.serialize_pem()).expect("a file");
    }
}

fn load(arguments: &[&str]) -> std::process::Output {
    let usual = ["load", "--progress", "off", "--rate", "100", "--connections", "4", "--duration", "2s"];
    run(&[&usual, arguments].concat())
}

fn result_of(arguments: &[&str]) -> LoadResult {
    let output = load(&[&["--json", "-"], arguments].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

#[test]
fn nginx_counts_what_the_generator_counts_in_both_versions_of_tls() {
    for version in ["TLSv1.2", "TLSv1.3"] {
        let nginx = Nginx::start(&format!("ssl_protocols {version};"));
        let result = result_of(&["--cacert", &nginx.file("authority.pem"), &nginx.url()]);
        assert_eq!(result.requests.completed, result.requests.sent, "{version}: {:?}", result.requests);
        assert!(result.requests.completed > 0);
        assert_eq!(nginx.requests(), result.requests.completed, "{version}");
        assert_eq!(result.handshake_time_us.count, 4);
    }
}

#[test]
fn connections_closed_by_nginx_are_reopened_with_handshake() {
    let nginx = Nginx::start("keepalive_timeout 0;");
    let result = result_of(&["--insecure", &nginx.url()]);
    assert!(result.requests.errors.is_empty(), "{:?}", result.requests);
    assert_eq!(nginx.requests(), result.requests.completed);
    assert!(result.handshake_time_us.count >= result.requests.completed);
}

#[test]
fn client_certificate_is_required_and_accepted() {
    let nginx = Nginx::start("ssl_client_certificate authority.pem;\nssl_verify_client on;");
    let (authority, certificate, key) =
        (nginx.file("authority.pem"), nginx.file("client.pem"), nginx.file("client.key"));
    let refused = result_of(&["--cacert", &authority, &nginx.url()]);
    // nginx completes the handshake and responds with a status.
    assert_eq!(refused.requests.status.keys().collect::<Vec<_>>(), ["400"], "{:?}", refused.requests);
    let url = nginx.url();
    let arguments =
        ["--cacert", &authority, "--cert", &certificate, "--key", &key, "--sni", "shop.example", &url];
    let welcome = result_of(&arguments);
    assert_eq!(welcome.requests.status.keys().collect::<Vec<_>>(), ["200"], "{:?}", welcome.requests);
    let text = stdout(&load(&arguments));
    assert!(
        text.lines().any(|line| line.starts_with("TLS  ") && line.contains("4 full handshakes")),
        "{text}"
    );
}

#[test]
fn untrusted_or_plaintext_server_is_a_one_line_error_with_hint() {
    let nginx = Nginx::start("");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_address = silent.local_addr().unwrap();
    let (authority, url) = (nginx.file("authority.pem"), nginx.url());
    let silent_url = format!("https://{silent_address}/");
    for (arguments, address, expected) in [
        (
            &["--cacert", &nginx.file("client.pem"), &url][..],
            nginx.address,
            "the server's certificate is not signed by a trusted authority\nhint: name its authority with --cacert, or do \
             not verify it with --insecure\n",
        ),
        (
            &["--cacert", &authority, "--sni", "other.example", &url],
            nginx.address,
            "the server's certificate is for another name\nhint: say with --sni which name it has, or do not verify it \
             with --insecure\n",
        ),
        (
            &["--insecure", "--timeout", "300ms", &silent_url],
            silent_address,
            "the TLS handshake was not complete within the timeout\nhint: does the port speak TLS? else the server is too \
             slow for --timeout\n",
        ),
    ] {
        let output = load(arguments);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}");
        assert_eq!(stderr(&output), format!("error: connect to {address}: {expected}"), "{arguments:?}");
    }
}

#[test]
fn a_system_without_authorities_is_named_with_the_files_looked_at() {
    let mut command = command::meshmeter();
    command.args(["load", "--rate=10", "--duration=1s", "https://127.0.0.1:1/"]);
    let output = command.env_remove("SSL_CERT_DIR").env("SSL_CERT_FILE", "/nowhere/ca.pem").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = stderr(&output);
    assert!(said.contains("/nowhere/ca.pem") && said.contains("SSL_CERT_FILE"), "{said}");
}

#[test]
fn ineffective_or_incomplete_tls_options_are_rejected() {
    for (arguments, expected) in [
        (
            &["--insecure", "http://127.0.0.1/"][..],
            "--insecure is for https://, grpcs://, wss:// and tls:// URLs",
        ),
        (
            &["--sni", "shop.example", "http://127.0.0.1/"],
            "--sni is for https://, grpcs://, wss:// and tls:// URLs",
        ),
        (&["--cert", "x", "https://127.0.0.1/"], "--key"),
        (&["--key", "x", "https://127.0.0.1/"], "--cert"),
        (&["--insecure", "--cacert", "x", "https://127.0.0.1/"], "cannot be used with"),
        (&["--cacert", "/does/not/exist", "https://127.0.0.1/"], "/does/not/exist"),
        (&["--sni", "no name", "https://127.0.0.1/"], "`no name` is not a name of a server"),
    ] {
        let output = load(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
}
