//! TLS against rustls' client: every protocol over it, certificates of both sides, and failing handshakes.

mod client;

use client::{IDLE_TIMEOUT, Running, settings};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use service::{Answer, Listener, Protocol, Settings, TcpSizes, Tls};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// The authority of a test.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap())
    }

    /// Issues a certificate; returns it and its key as PEM.
    fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (parameters.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }
}

/// Configures a client that trusts this authority, presents this identity, and offers these protocols.
fn config(authority: &str, identity: Option<&(String, String)>, protocols: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// Settings with HTTPS on the second listener and TCP over TLS on the third.
fn with_tls(tls: Tls) -> Settings {
    let mut settings = settings(1024);
    let address = settings.listeners[0].address;
    settings.listeners.push(Listener { address, protocol: Protocol::Http, tls: true });
    settings.listeners.push(Listener { address, protocol: Protocol::Tcp, tls: true });
    settings.tls = Some(tls);
    settings
}

fn own() -> (Tls, String) {
    Tls::own(&["shop.example".to_owned(), "127.0.0.1".to_owned()], None).unwrap()
}

fn connect(server: &Running, listener: usize, config: &Arc<ClientConfig>, name: &str) -> Stream {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    StreamOwned::new(
        ClientConnection::new(Arc::clone(config), name).unwrap(),
        server.client_of(listener).stream(),
    )
}

/// The end of a response to a request that closes the connection, and its length.
fn get(stream: &mut Stream, target: &str) -> io::Result<(String, usize)> {
    write!(stream, "GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
    let mut response = Vec::new();
    // The server sends a close_notify: this would fail otherwise.
    stream.read_to_end(&mut response)?;
    let text = String::from_utf8_lossy(&response).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    Ok((head.to_owned(), body.len()))
}

#[test]
fn http1_over_tls_equals_plaintext() {
    let (tls, authority) = own();
    let server = Running::start(&with_tls(tls));
    for protocols in [&["http/1.1"][..], &[]] {
        let config = config(&authority, None, protocols);
        for (name, target, length) in [
            ("shop.example", "/", 1024),
            ("127.0.0.1", "/?size=3MB", 3_000_000),
            ("127.0.0.1", "/?delay=5ms", 1024),
        ] {
            let mut stream = connect(&server, 1, &config, name);
            let (head, body) = get(&mut stream, target).unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
            assert_eq!(body, length);
        }
    }
    let mut wrong = connect(&server, 1, &config(&authority, None, &[]), "other.example");
    assert!(get(&mut wrong, "/").unwrap_err().to_string().contains("not valid for name"));
    drop(wrong);
    let counters = server.stop();
    assert_eq!((counters.http1.answered, counters.tls_handshakes), (6, 6));
    assert!(counters.bytes_sent > 6_000_000);
}

#[test]
fn requests_over_tls_may_be_pipelined_and_long() {
    let (tls, authority) = own();
    let server = Running::start(&with_tls(tls));
    let mut stream = connect(&server, 1, &config(&authority, None, &[]), "127.0.0.1");
    let upload = format!(
        "POST /?size=10 HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n{}",
        "x".repeat(500_000)
    );
    stream.write_all(upload.as_bytes()).unwrap();
    for index in 0..100 {
        let close = if index == 99 { "Connection: close\r\n" } else { "" };
        write!(stream, "GET /?size=100 HTTP/1.1\r\nHost: a\r\n{close}\r\n").unwrap();
    }
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert_eq!(response.matches("HTTP/1.1 200 OK\r\n").count(), 101);
    assert_eq!(server.stop().http1.answered, 101);
}

#[test]
fn http2_is_selected_by_alpn() {
    let (tls, authority) = own();
    let server = Running::start(&with_tls(tls));
    let config = config(&authority, None, &["h2", "http/1.1"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(server.address_of(1)).await.unwrap();
        let name = ServerName::try_from("shop.example").unwrap();
        let stream = tokio_rustls::TlsConnector::from(config).connect(name, socket).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        for size in [10, 100_000, 2_000_000] {
            let request = http::Request::get(format!("https://shop.example/?size={size}")).body(()).unwrap();
            let response = client.send_request(request, true).unwrap().0.await.unwrap();
            let mut body = response.into_body();
            let mut received = 0;
            while let Some(piece) = body.data().await {
                let length = piece.unwrap().len();
                body.flow_control().release_capacity(length).unwrap();
                received += length;
            }
            assert_eq!(received, size);
        }
    });
    drop(runtime);
    let counters = server.stop();
    assert_eq!((counters.http2.answered, counters.tls_handshakes), (3, 1));
}

#[test]
fn raw_tcp_over_tls_is_answered() {
    let (tls, authority) = own();
    let bytes = |bytes| NonZeroU64::new(bytes).unwrap();
    let tcp = TcpSizes { request_bytes: bytes(50_000), reply_bytes: bytes(100_000) };
    let answer = Answer { delay: Duration::from_millis(1), ..Answer::default() };
    let server = Running::start(&Settings { tcp, answer, ..with_tls(tls) });
    let mut stream = connect(&server, 2, &config(&authority, None, &[]), "127.0.0.1");
    let mut reply = vec![0; 100_000];
    for _ in 0..5 {
        stream.write_all(&[1; 50_000]).unwrap();
        stream.read_exact(&mut reply).unwrap();
        assert!(reply.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at % 251));
    }
    assert_eq!(server.stop().tcp.answered, 5);
}

#[test]
fn clients_must_present_certificate_if_required() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (servers, clients, strangers) =
        (Authority::new("servers"), Authority::new("clients"), Authority::new("strangers"));
    let (certificate, key) = servers.issue("127.0.0.1");
    let tls = Tls::from_files(
        &file("server.pem", &certificate),
        &file("server.key", &key),
        Some(&file("clients.pem", &clients.0.pem())),
    );
    let server = Running::start(&with_tls(tls.unwrap()));
    let known = clients.issue("client.example");
    let stranger = strangers.issue("client.example");
    for (identity, alert) in
        [(Some(&known), None), (None, Some("CertificateRequired")), (Some(&stranger), Some("UnknownCA"))]
    {
        let config = config(&servers.0.pem(), identity, &[]);
        let outcome = get(&mut connect(&server, 1, &config, "127.0.0.1"), "/");
        match alert {
            None => assert_eq!(outcome.unwrap().1, 1024),
            // The alert arrives although the server closes the connection.
            Some(alert) => {
                assert!(
                    outcome.as_ref().is_err_and(|error| error.to_string().contains(alert)),
                    "{outcome:?}"
                );
            }
        }
    }
    let counters = server.stop();
    assert_eq!((counters.tls_handshakes, counters.tls_handshakes_failed, counters.http1.answered), (1, 2, 1));
}

#[test]
fn invalid_handshake_ends_connection() {
    let (tls, _) = own();
    let server = Running::start(&Settings { idle_timeout: IDLE_TIMEOUT, ..with_tls(tls) });
    // Plaintext on a TLS listener; a handshake that stops; one that is cut off.
    let mut clear = server.client_of(1);
    clear.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let alert = clear.read_rest();
    assert_eq!(alert.first(), Some(&21), "an alert (type 21), not {alert:?}");
    let mut slow = server.client_of(1);
    slow.send("\u{16}\u{3}\u{1}");
    assert_eq!(slow.read_rest(), b"");
    let cut_off = server.client_of(1);
    cut_off.stream().shutdown(Shutdown::Write).unwrap();
    assert_eq!(cut_off.stream().read(&mut [0; 8]).unwrap(), 0);
    // TLS on a plaintext listener.
    let mut other_way = server.client();
    other_way.send("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}");
    assert_eq!(other_way.read_response(false).status, 400);
    let counters = server.stop();
    assert_eq!((counters.tls_handshakes, counters.tls_handshakes_failed, counters.rejected), (0, 3, 1));
}

#[test]
fn wrong_files_are_named_in_errors() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let authority = Authority::new("servers");
    let ((certificate, key), (_, other_key)) = (authority.issue("a.example"), authority.issue("a.example"));
    let (certificate, key) = (file("server.pem", &certificate), file("server.key", &key));
    let other_key = file("other.key", &other_key);
    let missing = folder.path().join("missing.pem");
    for (certificate, key, authority, message) in [
        (&missing, &key, None, "read the certificate in "),
        (&key, &key, None, "there is no certificate in "),
        (&certificate, &certificate, None, "there is no private key in "),
        (&certificate, &other_key, None, "use the certificate and its key"),
        (&certificate, &key, Some(&key), "there is no certificate in "),
    ] {
        let error = Tls::from_files(certificate, key, authority.map(|path| &**path)).unwrap_err();
        assert!(error.to_string().starts_with(message), "{error}");
    }
    let error = Tls::own(&["naïve".to_owned()], None).unwrap_err().to_string();
    assert_eq!(error, "make a certificate for naïve");
    let unready = Settings { tls: None, ..with_tls(own().0) };
    let error = service::Server::bind(&unready).unwrap_err().to_string();
    assert!(error.starts_with("expected a certificate and a key for https://127.0.0.1"), "{error}");
}
