//! Servers with reflection, for a service whose messages are in another file, which imports a third one.

use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use tokio::sync::oneshot;
use tonic::service::{Routes, interceptor::InterceptedService};
use tonic::{Request, Status};
use tonic_reflection::server::Builder;

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
        Self::serve(routes(version), None)
    }

    /// Starts a server with version 1 over TLS, with these ALPN protocols.
    pub fn start_tls(certified: &rcgen::CertifiedKey<rcgen::KeyPair>, alpn: &[&[u8]]) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let builder = rustls::ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = builder.with_single_cert(vec![certified.cert.der().clone()], key).unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Self::serve(routes(Version::V1), Some(tokio_rustls::TlsAcceptor::from(Arc::new(config))))
    }

    fn serve(routes: Routes, tls: Option<tokio_rustls::TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let (end, ended) = oneshot::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.spawn(accept(listener, routes, tls));
            // An error means that the test is over.
            let _ = runtime.block_on(ended);
        });
        Self { address, _end: end }
    }
}

async fn accept(listener: TcpListener, routes: Routes, tls: Option<tokio_rustls::TlsAcceptor>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        let (routes, tls) = (routes.clone(), tls.clone());
        tokio::spawn(async move {
            match tls {
                None => connection(stream, routes).await,
                // The client reports a failed handshake.
                Some(tls) => {
                    if let Ok(session) = tls.accept(stream).await {
                        connection(session, routes).await;
                    }
                }
            }
        });
    }
}

async fn connection<S>(stream: S, routes: Routes)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let service = hyper_util::service::TowerToHyperService::new(routes);
    let builder = hyper::server::conn::http2::Builder::new(hyper_util::rt::TokioExecutor::new());
    // The client closes the connection when it is done.
    let _ = builder.serve_connection(hyper_util::rt::TokioIo::new(stream), service).await;
}

fn routes(version: Version) -> Routes {
    let descriptors = descriptors();
    let builder = || Builder::configure().register_encoded_file_descriptor_set(&descriptors);
    match version {
        Version::V1 => Routes::new(builder().build_v1().unwrap()),
        Version::V1Alpha => Routes::new(builder().build_v1alpha().unwrap()),
        Version::V1Guarded => Routes::new(InterceptedService::new(builder().build_v1().unwrap(), guard)),
        Version::None => Routes::default(),
        Version::Web => {
            let page =
                async || (http::StatusCode::NOT_FOUND, [("content-type", "text/html")], "nothing here");
            Routes::from(axum::Router::new().fallback(page))
        }
    }
}

fn guard(request: Request<()>) -> Result<Request<()>, Status> {
    match request.metadata().get("token") {
        Some(token) if token == "secret" => Ok(request),
        _ => Err(Status::unauthenticated("who are you?")),
    }
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
