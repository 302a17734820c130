//! A node: one service of a topology, which answers by scripts and calls other services.
//!
//! [`NodeSettings`] → [`Node::bind`] → [`Node::run`]. Unlike the echo server, a node is an application: tokio
//! carries it, hyper its HTTP/2. `application` is what the topology says of this service and its callees; `server` makes `worker`s (one thread and one
//! single-threaded runtime each); `http1`, `http2` and `tcp` take requests in, `script` runs their steps, `client` sends requests out.
//! `tally` counts both sides; `admin` shows the counts. `docs/service.md` is for users.

mod admin;
mod application;
mod body;
mod client;
mod exchange;
mod http1;
mod http2;
mod metrics;
mod outgoing;
mod precise_timer;
mod query;
mod readiness;
mod script;
mod server;
mod settings;
mod stream;
mod tally;
mod tcp;
mod worker;

pub use server::Node;
pub use settings::NodeSettings;
