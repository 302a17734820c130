//! TLS servers that each behave in one particular way, and their certificates.

#![allow(dead_code, reason = "each test binary uses a part of this")]

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    RootCertStore, ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion, crypto::ring,
};
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

pub type TlsStream = StreamOwned<ServerConnection, TcpStream>;

/// What a server does after a response.
pub enum Then {
    /// Waits for the next request.
    GoOn,
    /// Sends a close_notify and closes.
    Close,
    /// Closes without a close_notify.
    Truncate,
}

/// A certificate authority with its certificate in a file, as users have it.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

/// A certificate with its key.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: KeyPair,
    /// The certificate as a file (PEM).
    pub certificate_file: PathBuf,
    /// The key as a file (PEM).
    pub key_file: PathBuf,
}

impl Authority {
    pub fn new() -> Self {
        Self::named("an authority of a test")
    }

    pub fn named(name: &str) -> Self {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(parameters, key).expect("a certificate");
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("authority.pem"), issuer.pem()).expect("a file");
        Self { issuer, folder }
    }

    /// Its certificate as a file (PEM).
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Issues a certificate for `name`, valid in these years.
    pub fn issue(&self, name: &str, first_year: i32, last_year: i32) -> Identity {
        let mut parameters = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        parameters.not_before = date_time_ymd(first_year, 1, 1);
        parameters.not_after = date_time_ymd(last_year, 12, 31);
        let key = KeyPair::generate().expect("a key");
        let certificate = parameters.signed_by(&key, &self.issuer).expect("a certificate");
        let file = |ending: &str| self.folder.path().join(format!("{name}-{first_year}.{ending}"));
        std::fs::write(file("pem"), certificate.pem()).expect("a file");
        std::fs::write(file("key"), key.serialize_pem()).expect("a file");
        Identity {
            certificate: certificate.der().clone(),
            key,
            certificate_file: file("pem"),
            key_file: file("key"),
        }
    }

    /// Issues a valid certificate for 127.0.0.1.
    pub fn issue_usual(&self) -> Identity {
        self.issue("127.0.0.1", 2020, 2100)
    }
}

/// Server-side TLS settings; `clients`: the authority whose certificates clients must present.
pub fn config(
    identity: &Identity,
    version: &'static SupportedProtocolVersion,
    clients: Option<&Authority>,
) -> ServerConfig {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[version])
        .expect("a version");
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.issuer.der().clone()).expect("an authority");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
        }
    };
    let key = PrivateKeyDer::try_from(identity.key.serialize_der()).expect("a key");
    builder.with_single_cert(vec![identity.certificate.clone()], key).expect("a certificate with its key")
}

/// A running server; stops accepting when dropped.
pub struct TlsServer {
    pub address: SocketAddr,
    /// Complete requests that the server has read.
    pub requests: Arc<AtomicU64>,
    stopping: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl TlsServer {
    /// Starts a server that calls `answer` per complete request head, with its ordinal number on its
    /// connection.
    pub fn start(
        config: ServerConfig,
        answer: impl Fn(&mut TlsStream, u64) -> Then + Send + Sync + 'static,
    ) -> Self {
        let (config, requests) = (Arc::new(config), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&requests);
        Self::accepting(requests, move |stream| {
            let connection = ServerConnection::new(Arc::clone(&config)).expect("a usable configuration");
            serve(StreamOwned::new(connection, stream), &answer, &counted);
        })
    }

    /// Starts a server that calls `behave` per connection, before its handshake.
    pub fn of_bytes(
        config: ServerConfig,
        behave: impl Fn(&mut TlsStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let config = Arc::new(config);
        Self::accepting(Arc::default(), move |stream| {
            let connection = ServerConnection::new(Arc::clone(&config)).expect("a usable configuration");
            let mut stream = StreamOwned::new(connection, stream);
            // The result is checked on the client side.
            let _ = behave(&mut stream);
            finish(&mut stream.sock);
        })
    }

    /// Starts a server without TLS that calls `behave` per connection.
    pub fn start_plain(behave: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        Self::accepting(Arc::default(), behave)
    }

    fn accepting(requests: Arc<AtomicU64>, behave: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let stopping = Arc::new(AtomicBool::new(false));
        let (stop, behave) = (Arc::clone(&stopping), Arc::new(behave));
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let behave = Arc::clone(&behave);
                std::thread::spawn(move || {
                    stream.set_nodelay(true).expect("a TCP connection");
                    behave(stream);
                });
            }
        });
        Self { address, requests, stopping, accepting: Some(accepting) }
    }

    pub fn url(&self) -> String {
        format!("https://{}/", self.address)
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            accepting.join().expect("the listener does not panic");
        }
    }
}

fn serve(mut stream: TlsStream, answer: &dyn Fn(&mut TlsStream, u64) -> Then, counted: &AtomicU64) {
    for ordinal in 0.. {
        if !read_request(&mut stream) {
            // An alert may be in flight: an orderly close lets the client read it.
            return finish(&mut stream.sock);
        }
        counted.fetch_add(1, Ordering::SeqCst);
        match answer(&mut stream, ordinal) {
            Then::GoOn => {}
            Then::Close => {
                stream.conn.send_close_notify();
                let _ = stream.flush();
                return finish(&mut stream.sock);
            }
            Then::Truncate => return finish(&mut stream.sock),
        }
    }
}

/// Reads a head and the body that it announces. Returns true if it was complete.
fn read_request(stream: &mut TlsStream) -> bool {
    let mut reader = BufReader::with_capacity(1, stream);
    let (mut line, mut body_bytes) = (String::new(), 0);
    loop {
        line.clear();
        match reader.read_line(&mut line) {
            Ok(0) | Err(_) => return false,
            Ok(_) if line == "\r\n" => break,
            Ok(_) => {}
        }
        if let Some(length) = line.strip_prefix("Content-Length: ") {
            body_bytes = length.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; body_bytes];
    reader.read_exact(&mut body).is_ok() && body.iter().all(|byte| *byte == b'x')
}

/// Shuts down the sending side and reads to the end, so that no reset overtakes the data sent.
pub fn finish(stream: &mut TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
}

/// Sends a response.
pub fn reply(stream: &mut TlsStream, bytes: &[u8]) {
    // A client that is gone is detected by the next read.
    let _ = stream.write_all(bytes).and_then(|()| stream.flush());
}

/// The records that a connection has yet to send.
pub fn records(connection: &mut ServerConnection) -> Vec<u8> {
    let mut records = Vec::new();
    while connection.wants_write() {
        connection.write_tls(&mut records).expect("memory");
    }
    records
}
