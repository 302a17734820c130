//! HTTP/2 connection for a few calls, over TCP or TLS, with a check that the peer is a gRPC server.

use super::{Server, Tls};
use crate::error::{AnswerError, ReflectionError};
use http::{HeaderName, HeaderValue, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::body::Body;

/// Channel for gRPC calls.
pub(super) struct Channel {
    sender: SendRequest<Body>,
    origin: Uri,
    metadata: Arc<[(HeaderName, HeaderValue)]>,
}

/// Connects to the first of the server's addresses that accepts.
pub(super) async fn open(server: &Server) -> Result<Channel, ReflectionError> {
    let mut outcome = Err(ReflectionError::Connect {
        address: ([0, 0, 0, 0], 0).into(),
        cause: io::Error::other("there is no address"),
    });
    for address in &server.addresses {
        outcome = open_at(*address, server).await;
        if outcome.is_ok() {
            break;
        }
    }
    let scheme = if server.tls.is_some() { "https" } else { "http" };
    let origin = Uri::builder().scheme(scheme).authority(server.authority.as_str()).path_and_query("/");
    Ok(Channel {
        sender: outcome?,
        origin: origin.build().map_err(|error| ReflectionError::Client(io::Error::other(error)))?,
        metadata: server.metadata.clone().into(),
    })
}

async fn open_at(address: SocketAddr, server: &Server) -> Result<SendRequest<Body>, ReflectionError> {
    let connection = TcpStream::connect(address).await;
    let stream = connection.map_err(|cause| ReflectionError::Connect { address, cause })?;
    match &server.tls {
        None => start(stream).await,
        Some(tls) => start(handshake(stream, address, tls).await?).await,
    }
}

async fn handshake(
    stream: TcpStream,
    address: SocketAddr,
    tls: &Tls,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, ReflectionError> {
    let mut config = (*tls.config).clone();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let session = TlsConnector::from(Arc::new(config)).connect(tls.name.clone(), stream).await;
    let session = session.map_err(|cause| ReflectionError::Handshake { address, cause })?;
    match session.get_ref().1.alpn_protocol() {
        Some(b"h2") => Ok(session),
        _ => Err(ReflectionError::NoAlpn),
    }
}

/// Starts HTTP/2. The connection task ends with the runtime.
async fn start<S>(stream: S) -> Result<SendRequest<Body>, ReflectionError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = Builder::new(TokioExecutor::new()).handshake(TokioIo::new(stream)).await;
    let (sender, connection) = handshake.map_err(|error| ReflectionError::Answer(not_http2(&error)))?;
    tokio::spawn(connection);
    Ok(sender)
}

fn not_http2(error: &hyper::Error) -> AnswerError {
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    AnswerError::NotHttp2(causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}")))
}

impl Channel {
    /// Scheme and authority of its requests.
    pub(super) fn origin(&self) -> Uri {
        self.origin.clone()
    }
}

impl tower_service::Service<http::Request<Body>> for Channel {
    type Response = http::Response<Incoming>;
    type Error = AnswerError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, AnswerError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), AnswerError>> {
        self.sender.poll_ready(context).map_err(|error| not_http2(&error))
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        for (name, value) in self.metadata.iter() {
            request.headers_mut().append(name, value.clone());
        }
        let response = self.sender.send_request(request);
        Box::pin(async move { check(response.await.map_err(|error| not_http2(&error))?) })
    }
}

/// All responses of a gRPC server, including errors, have status 200 and a gRPC content type.
fn check(response: http::Response<Incoming>) -> Result<http::Response<Incoming>, AnswerError> {
    let content_type = response.headers().get(http::header::CONTENT_TYPE);
    let content_type = content_type.map_or(&b""[..], HeaderValue::as_bytes);
    if response.status() == http::StatusCode::OK && content_type.starts_with(b"application/grpc") {
        return Ok(response);
    }
    let content_type = String::from_utf8_lossy(content_type).into_owned();
    Err(AnswerError::NotGrpc { status: response.status().as_u16(), content_type })
}
