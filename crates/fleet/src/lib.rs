//! A fleet of simulated proxies: clients of a control plane that subscribe like real ones, over real
//! connections, and measure when every change arrives.
//!
//! Read [`xds`] first: one proxy as a state machine without I/O. Then read [`Fleet`] and its threads.
//! `thread` has the event loop, `worker` the state of a thread, `lifecycle` the course of a `proxy`, and `stream`
//! the transfer between a connection and a session. `transport` has the connection, `expectation` the awaited
//! events, and `result` the assembly of the result.

mod backoff;
mod certificate;
mod certificates;
mod core;
mod error;
mod expectation;
mod figures;
mod fleet;
mod lifecycle;
mod outage;
mod probe;
mod proxy;
mod result;
mod rotation;
mod sampler;
mod shared;
mod spec;
mod stream;
mod target;
mod thread;
mod transport;
mod usage;
mod worker;
pub mod xds;

pub use error::FleetError;
pub use fleet::{Fleet, FleetStatus, Interrupter, Waited};
pub use probe::{ProbeError, probe};
pub use spec::{
    BackoffSpec, CertificateSharing, ChangeId, ChangeMarks, Credentials, DEFAULT_MESSAGE_LIMIT_BYTES,
    FleetSpec, Keepalive, Security, Selection, Spread, Target,
};
pub use transport::check_connection;
