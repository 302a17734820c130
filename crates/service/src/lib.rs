//! The synthetic service: a server that responds with the size, delay and error rate given by its settings or
//! by each request's query, and is never the bottleneck itself. HTTP/1.1, HTTP/2, gRPC, raw TCP; with or
//! without TLS.
//!
//! [`Settings`] → [`Server::bind`] → [`Server::run`]. From the outside in: `server` creates `worker`s (one
//! thread and one event loop each), and a worker gives turns to `connection`s. A connection speaks `http1`,
//! `http2` or `tcp` over its `transport`; `grpc` handles calls over HTTP/2. The response to an HTTP request
//! is the same in both versions: `query`, `reply`; `events` and `chat` are streams of events.
//!
//! Requests on one HTTP/1.1 or TCP connection are answered in order, one after the other: the delay of a
//! pipelined request begins when the previous one has been answered. Those of HTTP/2 run concurrently. Not
//! supported: trailers, content codings, ranges, dates.

mod chat;
mod compute;
mod connection;
mod content;
mod counters;
mod draw;
mod events;
mod grpc;
mod http1;
mod http2;
pub mod node;
mod opening;
mod output;
mod query;
mod reply;
mod response;
mod server;
mod settings;
mod shared;
mod tcp;
mod tls;
mod transport;
mod turn;
mod websocket;
mod worker;

pub use counters::{Counters, ProtocolCounters};
pub use grpc::ECHO_PROTO;
pub use http1::check_requests;
pub use query::QueryError;
pub use reply::COUNTERS_PATH;
pub use server::{ServeError, Server};
pub use settings::{
    Answer, EventSettings, Listener, MAX_THREADS, Protocol, STATUSES, Settings, Stall, StallError, TcpSizes,
};
pub use tcp::TCP_REPLY_MODULUS;
pub use tls::{Tls, TlsError};
