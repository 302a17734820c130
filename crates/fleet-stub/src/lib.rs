//! A control plane with a single configuration, for tests and benchmarks of the fleet: discovery over HTTP/2,
//! in both variants, either correct or with a protocol violation per connection.
//!
//! Read [`Stub`] first, then `subscriptions.rs`: what a client is sent and what it must not send. All clients
//! are sent slices of the same encoded bytes, so that a stub for ten thousand clients costs little. It shares
//! no code with the fleet.

mod behaviour;
mod certificates;
mod configuration;
mod connection;
mod counts;
mod discovery;
mod flood;
pub mod protobuf;
pub mod resources;
mod state;
mod stream;
mod stub;
mod subscriptions;
mod watched;

pub use behaviour::{Behaviour, Flood};
pub use certificates::{Authority, Validity};
pub use configuration::Configuration;
pub use counts::Totals;
pub use state::Change;
pub use stub::{Stub, StubSpec};
pub use watched::{MARK_DIGITS, MARK_PREFIX, MarkWrite, mark};
