//! The synthetic service: an HTTP/1.1 server that answers with the size, after the delay and with the error rate asked
//! for, by its settings or by each request's query, and is itself never the bottleneck.
//!
//! [`Settings`] → [`Server::bind`] → [`Server::run`]. Inside, from the outside in: `server` makes `worker`s (one thread, one
//! event loop each), a worker gives turns to `connection`s, a connection feeds bytes to its `receiver`, which finds
//! `request`s and skips `body`s, and composes `response`s.
//!
//! Requests on one connection are answered in their order, one after the other: the delay of a pipelined request begins
//! when the one before has been answered. Left out: TLS, HTTP/2, trailers, content codings, ranges, dates.

mod body;
mod connection;
mod counters;
mod output;
mod query;
mod receiver;
mod request;
mod response;
mod server;
mod settings;
mod shared;
mod worker;

pub use counters::Counters;
pub use query::QueryError;
pub use request::COUNTERS_PATH;
pub use server::{ServeError, Server};
pub use settings::{Answer, MOST_THREADS, STATUSES, Settings, Stall, StallError};
