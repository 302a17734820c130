//! Path proof: whether requests took the path that the mode names, from the proxies' own counters.
//!
//! Pure: counters before and after in, [`results::PathProof`] out. Each expected proxy must have
//! received and forwarded every request (`proxy.rs`), completed TLS handshakes exactly if mutual TLS is
//! claimed, and accepted every configuration update. Each hop must have used the expected protocol (`hops.rs`).
//!
//! Read [`edge`] first, which proves every edge of a topology; `proxy.rs` checks one proxy. [`evidence`]
//! defines which counters show the path: those of requests or of their bytes, or those of opaque TCP
//! connections (`streams.rs`).

pub mod client_tls;
mod counted;
pub mod counters;
pub(crate) mod delta;
pub mod edge;
pub mod evidence;
pub mod filters;
mod finding;
mod hops;
mod place;
mod proxy;
mod streams;
mod summed;

pub use self::counted::{CallCounters, CountedService};
pub use self::counters::{
    Count, Encrypted, Forwarded, GrpcCounters, ProtocolCounters, RequestByteCounters, RequestCounters,
    SideCounters, StreamCounters,
};
pub use self::delta::Counters;
pub use self::evidence::{Accepts, Demand, Evidence, Seen};
