//! The synthetic service: a server that answers with the size, after the delay and with the error rate asked for, by its
//! settings or by each request's query, and is itself never the bottleneck. HTTP/1.1, HTTP/2, gRPC, raw TCP; with TLS or without.
//!
//! [`Settings`] → [`Server::bind`] → [`Server::run`]. Inside, from the outside in: `server` makes `worker`s (one thread, one
//! event loop each), a worker gives turns to `connection`s, a connection speaks `http1`, `http2` or `tcp` over its
//! `transport`. `grpc` are calls over HTTP/2. What an HTTP request is answered with is the same in both versions: `query`, `reply`.
//!
//! Requests on one connection in HTTP/1.1 or TCP are answered in their order, one after the other: the delay of a pipelined
//! request begins when the one before has been answered. Those of HTTP/2 run side by side. Left out: trailers, content
//! codings, ranges, dates.

mod compute;
mod connection;
mod counters;
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
mod worker;

pub use counters::{Counters, ProtocolCounters};
pub use grpc::ECHO_PROTO;
pub use query::QueryError;
pub use reply::COUNTERS_PATH;
pub use server::{ServeError, Server};
pub use settings::{
    Answer, Listener, MOST_THREADS, Protocol, STATUSES, Settings, Stall, StallError, TcpSizes,
};
pub use tcp::TCP_REPLY_MODULUS;
pub use tls::{Tls, TlsError};
