//! Servers with reflection, for a service whose messages are in another file, which imports a third one.

use http::{Request, Response};
use hyper::body::Incoming;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::oneshot;
use tonic::Status;
use tonic::body::Body;
use tonic_reflection::server::Builder;
use tower_service::Service;

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;
/// Answers every request of a server.
type Handler = Arc<dyn Fn(Request<Incoming>) -> Answer + Send + Sync>;

const FILES: [(&str, &str); 3] = [
    (
        "shop/cart.proto",
        r#"syntax = "proto3"; package shop; import "shop/item.proto"; import "google/protobuf/empty.proto";
           service Cart { rpc Add(stream Item) returns (google.protobuf.Empty); rpc Clear(Item) returns (Item); }"#,
    ),
    (
        "shop/item.proto",
        r#"syntax = "proto3"; package shop; import "shop/price.proto"; message Item { string name = 1; Price price = 2; }"#,
    ),
    ("shop/price.proto", r#"syntax = "proto3"; package shop; message Price { int64 cents = 1; }"#),
];

/// Reflection support of a server.
#[derive(Clone, Copy)]
pub enum Version {
    V1,
    V1Alpha,
    /// Version 1, only with a token.
    V1Guarded,
    /// No reflection, but another gRPC service.
    None,
    /// No gRPC: web pages over HTTP/2.
    Web,
}

/// Server that stops when dropped.
pub struct Reflecting {
    pub address: SocketAddr,
    _end: oneshot::Sender<()>,
}

impl Reflecting {
    pub fn start(version: Version) -> Self {
        Self::serve(handler(version), None)
    }

    /// Starts a server with version 1 over TLS, with these ALPN protocols.
    pub fn start_tls(certified: &rcgen::CertifiedKey<rcgen::KeyPair>, alpn: &[&[u8]]) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let builder = rustls::ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = builder.with_single_cert(vec![certified.cert.der().clone()], key).unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Self::serve(handler(Version::V1), Some(tokio_rustls::TlsAcceptor::from(Arc::new(config))))
    }

    fn serve(handler: Handler, tls: Option<tokio_rustls::TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let (end, ended) = oneshot::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.spawn(accept(listener, handler, tls));
            // An error means that the test is over.
            let _ = runtime.block_on(ended);
        });
        Self { address, _end: end }
    }
}

async fn accept(listener: TcpListener, handler: Handler, tls: Option<tokio_rustls::TlsAcceptor>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        let (handler, tls) = (Arc::clone(&handler), tls.clone());
        tokio::spawn(async move {
            match tls {
                None => connection(stream, handler).await,
                // The client reports a failed handshake.
                Some(tls) => {
                    if let Ok(session) = tls.accept(stream).await {
                        connection(session, handler).await;
                    }
                }
            }
        });
    }
}

async fn connection<S>(stream: S, handler: Handler)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let service = hyper::service::service_fn(move |request| handler(request));
    let builder = hyper::server::conn::http2::Builder::new(hyper_util::rt::TokioExecutor::new());
    // The client closes the connection when it is done.
    let _ = builder.serve_connection(hyper_util::rt::TokioIo::new(stream), service).await;
}

fn handler(version: Version) -> Handler {
    let descriptors = descriptors();
    let builder = || Builder::configure().register_encoded_file_descriptor_set(&descriptors);
    match version {
        Version::V1 => of_service(builder().build_v1().unwrap()),
        Version::V1Alpha => of_service(builder().build_v1alpha().unwrap()),
        Version::V1Guarded => guarded(of_service(builder().build_v1().unwrap())),
        Version::None => Arc::new(|_| answer(Status::unimplemented("").into_http())),
        Version::Web => Arc::new(|_| {
            let page = Response::builder().status(404).header("content-type", "text/html");
            answer(page.body(Body::new("nothing here".to_owned())).unwrap())
        }),
    }
}

fn answer(response: Response<Body>) -> Answer {
    Box::pin(async { Ok(response) })
}

/// It answers requests to other services with `UNIMPLEMENTED`, as a router does.
fn of_service<S>(service: S) -> Handler
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    Arc::new(move |request| Box::pin(service.clone().call(request)))
}

/// Only requests with a token reach `handler`.
fn guarded(handler: Handler) -> Handler {
    Arc::new(move |request| match request.headers().get("token") {
        Some(token) if token == "secret" => handler(request),
        _ => answer(Status::unauthenticated("who are you?").into_http()),
    })
}

/// File descriptors as written by `protoc`.
fn descriptors() -> Vec<u8> {
    struct Sources;
    impl FileResolver for Sources {
        fn open_file(&self, name: &str) -> Result<File, protox::Error> {
            match FILES.iter().find(|(known, _)| *known == name) {
                Some((_, source)) => Ok(File::from_source(name, source)?),
                None => Err(protox::Error::file_not_found(name)),
            }
        }
    }
    let mut resolver = ChainFileResolver::new();
    resolver.add(Sources);
    resolver.add(GoogleFileResolver::new());
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).open_file(FILES[0].0).unwrap();
    compiler.encode_file_descriptor_set()
}
