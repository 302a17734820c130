//! A small control plane: clusters with endpoints, one change at a time, certificates. It uses the `h2`
//! crate, so that the fleet's HTTP/2 is tested against another implementation.

mod forward;
mod messages;
mod stream;

pub use forward::Forward;

use fleet::{Security, Target};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, watch};
use tokio_rustls::TlsAcceptor;

/// Token that the server accepts.
pub const TOKEN: &str = "a-token";
/// Name in the server's certificate.
const NAME: &str = "istiod.istio-system.svc";

/// State that tests change while the server runs.
#[derive(Debug)]
pub struct State {
    /// Content of the endpoints of every cluster.
    pub content: watch::Sender<String>,
    /// Ends every connection.
    pub end: broadcast::Sender<()>,
    /// Misbehavior of new streams; absent: they serve.
    pub misbehaviour: Mutex<Option<Misbehaviour>>,
    /// Counters of client actions.
    pub seen: Mutex<Seen>,
    security: Security,
    authority: CertifiedIssuer<'static, KeyPair>,
}

/// Counters of client actions, over all connections.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub streams: usize,
    pub acknowledgements: usize,
    /// Number of held versions in requests.
    pub resumed: usize,
    pub certificates: usize,
}

/// Misbehavior of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Misbehaviour {
    /// Sends a message above the client's limit.
    LargeMessage,
    /// Resets the stream at once.
    Reset,
    /// Closes the connection without a message.
    EndConnection,
}

/// A running server. It ends with the process.
#[derive(Clone, Debug)]
pub struct Server {
    pub address: SocketAddr,
    pub state: Arc<State>,
    roots: Arc<[u8]>,
}

impl Server {
    /// Starts to listen on loopback.
    pub fn start(security: Security) -> Self {
        let authority = authority();
        let roots = authority.pem().into_bytes().into();
        let state = Arc::new(State {
            content: watch::Sender::new("first".to_owned()),
            end: broadcast::Sender::new(16),
            misbehaviour: Mutex::new(None),
            seen: Mutex::default(),
            security,
            authority,
        });
        let tls = (security != Security::Plaintext).then(|| acceptor(&state));
        let (sender, address) = mpsc::channel();
        let serving = Arc::clone(&state);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                sender.send(listener.local_addr().unwrap()).unwrap();
                loop {
                    let (socket, _) = listener.accept().await.unwrap();
                    tokio::spawn(connection(socket, tls.clone(), Arc::clone(&serving)));
                }
            });
        });
        Self { address: address.recv().unwrap(), state, roots }
    }

    /// The server as a target of a fleet.
    pub fn target(&self) -> Target {
        Target {
            address: self.address.to_string(),
            server_name: NAME.to_owned(),
            security: self.state.security,
            roots: Arc::clone(&self.roots),
        }
    }

    pub fn seen(&self) -> Seen {
        self.state.seen.lock().unwrap().clone()
    }

    pub fn misbehave(&self, misbehaviour: Option<Misbehaviour>) {
        *self.state.misbehaviour.lock().unwrap() = misbehaviour;
    }
}

async fn connection(socket: TcpStream, tls: Option<TlsAcceptor>, state: Arc<State>) {
    let mut end = state.end.subscribe();
    let serve = async {
        match tls {
            None => stream::serve(socket, false, &state).await,
            Some(tls) => {
                let Ok(socket) = tls.accept(socket).await else { return };
                let is_known = socket.get_ref().1.peer_certificates().is_some();
                stream::serve(socket, is_known, &state).await;
            }
        }
    };
    let mut serve = std::pin::pin!(serve);
    let mut ended = std::pin::pin!(end.recv());
    std::future::poll_fn(|context| {
        if ended.as_mut().poll(context).is_ready() {
            return std::task::Poll::Ready(());
        }
        serve.as_mut().poll(context)
    })
    .await;
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap()
}

fn acceptor(state: &State) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    let issuer: &Issuer<'_, KeyPair> = &state.authority;
    let certificate = parameters.signed_by(&key, issuer).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(state.authority.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
        .allow_unauthenticated()
        .build()
        .unwrap();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}
