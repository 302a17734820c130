//! gRPC servers on loopback with counters: a real one (tonic) with every kind of stream, and misbehaving
//! ones.
//!
//! The real one implements the service of [`WORDS_PROTO`].

#![allow(dead_code, reason = "each test binary uses a part of this")]

use bytes::Bytes;
use h2::server::SendResponse;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;
use tokio_stream::{Stream, StreamExt as _};
use tonic::body::Body;
use tonic::server::Grpc;
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

/// The .proto file of the real server's service.
pub const WORDS_PROTO: &str = r#"syntax = "proto3"; package test; import "word.proto";
service Words {
  rpc Say(Word) returns (Word);
  rpc Repeat(Word) returns (stream Word);
  rpc Count(stream Word) returns (Word);
  rpc Talk(stream Word) returns (stream Word);
}"#;
/// The file that it imports.
pub const WORD_PROTO: &str = r#"syntax = "proto3"; package test; message Word { string text = 1; }"#;

/// How often the real server sends a repeated message.
pub const REPEATED: u64 = 5;

/// Counters of a server.
#[derive(Debug, Default)]
pub struct Seen {
    /// Calls started.
    pub calls: AtomicU64,
    /// Messages received.
    pub received: AtomicU64,
    /// Messages sent.
    pub sent: AtomicU64,
}

/// A server that stops when dropped.
pub struct GrpcServer {
    pub address: SocketAddr,
    pub seen: Arc<Seen>,
    _end: oneshot::Sender<()>,
}

impl GrpcServer {
    /// Starts the real one. It answers the word `fail` with status 14 (UNAVAILABLE).
    pub fn start() -> Self {
        Self::serve(|stream, seen| async move {
            let service = hyper::service::service_fn(move |request| {
                let seen = Arc::clone(&seen);
                async move { Ok::<_, Infallible>(answer(request, seen).await) }
            });
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            // The client disconnects when it is done.
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        })
    }

    /// Starts one that passes each call to `answer`, with its number on the connection.
    pub fn misbehaving(answer: impl Fn(SendResponse<Bytes>, u64) + Clone + Send + Sync + 'static) -> Self {
        Self::serve(move |stream, seen| {
            let answer = answer.clone();
            async move {
                let Ok(mut connection) = h2::server::handshake(stream).await else { return };
                let mut number = 0;
                while let Some(Ok((_, respond))) = connection.accept().await {
                    seen.calls.fetch_add(1, Ordering::SeqCst);
                    answer(respond, number);
                    number += 1;
                }
            }
        })
    }

    /// Starts one that sends GOAWAY after this many calls per connection, all of them answered.
    pub fn leaving_after(calls: u64) -> Self {
        Self::serve(move |stream, seen| async move {
            let Ok(mut connection) = h2::server::handshake(stream).await else { return };
            let mut number = 0;
            while let Some(Ok((_, respond))) = connection.accept().await {
                seen.calls.fetch_add(1, Ordering::SeqCst);
                number += 1;
                good(respond);
                if number == calls {
                    connection.graceful_shutdown();
                }
            }
        })
    }

    fn serve<F>(connection: impl Fn(tokio::net::TcpStream, Arc<Seen>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let seen = Arc::new(Seen::default());
        let (end, ended) = oneshot::channel::<()>();
        let counts = Arc::clone(&seen);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let accept = async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    stream.set_nodelay(true).unwrap();
                    tokio::spawn(connection(stream, Arc::clone(&counts)));
                }
            };
            runtime.block_on(async {
                tokio::select! {
                    () = accept => {}
                    // An error means that the test is over.
                    _ = ended => {}
                }
            });
        });
        Self { address, seen, _end: end }
    }

    pub fn url(&self, path: &str) -> String {
        format!("grpc://{}{path}", self.address)
    }

    pub fn calls(&self) -> u64 {
        self.seen.calls.load(Ordering::SeqCst)
    }
}

/// A gRPC response head.
pub fn head() -> http::Response<()> {
    http::Response::builder().header("content-type", "application/grpc").body(()).unwrap()
}

/// Responds with one empty message.
pub fn good(mut respond: SendResponse<Bytes>) {
    let mut stream = respond.send_response(head(), false).unwrap();
    stream.send_data(Bytes::from_static(&[0; 5]), false).unwrap();
    let mut trailers = http::HeaderMap::new();
    trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
    stream.send_trailers(trailers).unwrap();
}

fn codec() -> ProstCodec<String, String> {
    ProstCodec::default()
}

type Words = Pin<Box<dyn Stream<Item = Result<String, Status>> + Send>>;

/// The real service: tonic encodes a `String` as a message with one text, field 1.
async fn answer(request: http::Request<hyper::body::Incoming>, seen: Arc<Seen>) -> http::Response<Body> {
    seen.calls.fetch_add(1, Ordering::SeqCst);
    let path = request.uri().path().to_owned();
    match path.as_str() {
        "/test.Words/Say" => {
            Grpc::new(codec()).unary(service_fn(|request| say(request, Arc::clone(&seen))), request).await
        }
        "/test.Words/Repeat" => {
            let service = service_fn(|request| repeat(request, Arc::clone(&seen)));
            Grpc::new(codec()).server_streaming(service, request).await
        }
        "/test.Words/Count" => {
            let service = service_fn(|request| count(request, Arc::clone(&seen)));
            Grpc::new(codec()).client_streaming(service, request).await
        }
        "/test.Words/Talk" => {
            let service = service_fn(|request| talk(request, Arc::clone(&seen)));
            Grpc::new(codec()).streaming(service, request).await
        }
        _ => Status::unimplemented("no such method").into_http(),
    }
}

async fn say(request: Request<String>, seen: Arc<Seen>) -> Result<Response<String>, Status> {
    seen.received.fetch_add(1, Ordering::SeqCst);
    let word = request.into_inner();
    if word == "fail" {
        return Err(Status::unavailable("as asked"));
    }
    seen.sent.fetch_add(1, Ordering::SeqCst);
    Ok(Response::new(word))
}

async fn repeat(request: Request<String>, seen: Arc<Seen>) -> Result<Response<Words>, Status> {
    seen.received.fetch_add(1, Ordering::SeqCst);
    let words = (0..REPEATED).map(move |_| {
        seen.sent.fetch_add(1, Ordering::SeqCst);
        Ok(request.get_ref().clone())
    });
    Ok(Response::new(Box::pin(tokio_stream::iter(words.collect::<Vec<_>>()))))
}

async fn count(request: Request<Streaming<String>>, seen: Arc<Seen>) -> Result<Response<String>, Status> {
    let mut words = request.into_inner();
    let mut count = 0;
    while words.message().await?.is_some() {
        count += 1;
        seen.received.fetch_add(1, Ordering::SeqCst);
    }
    seen.sent.fetch_add(1, Ordering::SeqCst);
    Ok(Response::new(count.to_string()))
}

/// Answers each word as it arrives, and buffers none.
async fn talk(request: Request<Streaming<String>>, seen: Arc<Seen>) -> Result<Response<Words>, Status> {
    let words = request.into_inner().map(move |word| {
        seen.received.fetch_add(1, Ordering::SeqCst);
        seen.sent.fetch_add(1, Ordering::SeqCst);
        word
    });
    Ok(Response::new(Box::pin(words)))
}
