//! A node: one service of a topology, which runs scripts and calls other services.
//!
//! [`NodeSettings`] → [`Node::bind`] → [`Node::run`]. Unlike the echo server, a node behaves like an
//! application: it runs on tokio, with hyper for HTTP/2. `application` is the topology's definition of this
//! service and its callees. `server` creates `worker`s, each on its own thread and single-threaded `runtime`.
//! `http1`, `http2` and `tcp` receive requests, `script` runs their steps, `client` sends requests. `tally`
//! counts both sides; `admin` shows the counters. `docs/service.md` is for users.

mod admin;
mod application;
mod body;
mod client;
mod exchange;
mod failure;
mod http1;
mod http2;
mod metrics;
mod outgoing;
mod passed_fields;
mod precise_timer;
mod query;
mod readiness;
mod runtime;
mod script;
mod server;
mod settings;
mod stopping;
mod stream;
mod tally;
mod tcp;
mod worker;

pub use client::check_response;
pub use query::check_database_response;
pub use server::Node;
pub use settings::NodeSettings;
