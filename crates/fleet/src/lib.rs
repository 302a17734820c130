//! A fleet of simulated proxies: clients of a control plane that subscribe as real ones do, over real connections, and time
//! the arrival of every change.
//!
//! Read [`xds`] first: one proxy as a state machine without I/O. Then [`Fleet`], and its threads: `worker` has the event loop,
//! `proxy` the life of a proxy, `stream` what moves between a connection and a session, `transport` the connection, `pursuit`
//! what is waited for, `result` the assembly of the result.

mod backoff;
mod certificate;
mod certificates;
mod core;
mod error;
mod figures;
mod fleet;
mod outage;
mod probe;
mod proxy;
mod pursuit;
mod result;
mod rotation;
mod sampler;
mod shared;
mod spec;
mod stream;
mod target;
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
