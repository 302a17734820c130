//! Whether requests took the path that the mode names: read from the proxies' own counters.
//!
//! Pure: counters before and after in, [`experiment::schema::PathProof`] out. Each expected proxy must have received every
//! request that was sent and forwarded it, must have completed TLS handshakes exactly if mutual TLS is claimed
//! (`forwarded.rs`), and must have accepted every configuration. What was spoken on each hop must be what is expected
//! (`hops.rs`). Read [`edge`] first, which proves every edge of a topology; [`path`] proves a single one, `side.rs` checks
//! one proxy of it.
//!
//! [`evidence`] says which counters of a proxy show the path, whoever configured it. A proxy that reads requests counts them,
//! one that has their bytes as they were sent counts those (`requests.rs`); one that carries connections unread is held
//! against what the service at the end of the path counted (`streams.rs`).

mod counted;
pub mod counters;
pub(crate) mod delta;
pub mod edge;
pub mod evidence;
mod forwarded;
mod hops;
pub mod path;
mod requests;
pub mod service;
mod side;
mod streams;

pub use self::counted::CountedProxy;
pub use self::counters::{
    Count, Encrypted, Forwarded, GrpcCounters, ProtocolCounters, RequestByteCounters, RequestCounters,
    SideCounters, StreamCounters,
};
pub use self::evidence::{Accepts, Demand, Evidence, Seen};
pub use self::path::prove;
pub use self::service::CountedService;
