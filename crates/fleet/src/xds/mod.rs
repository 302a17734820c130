//! One simulated proxy as a state machine: configuration messages in, subscriptions and acks out. No I/O.
//!
//! Read [`Session`] first: which requests follow from which responses. A response is read as it arrives and
//! is never held as a whole. `walker` reads protobuf in chunks, `schema` lists the fields that are used, and
//! `reader` turns them into names. [`Store`] holds each name once for all sessions of a thread, and also
//! resources that several sessions hold alike. `scan` searches for [`Marks`] on the way.
//!
//! Omitted: the content of resources other than names and references. A session does not notice a route to a
//! cluster that does not exist.

mod contents;
mod event;
mod holding;
mod marks;
mod names;
mod node;
mod outbox;
mod proxy;
mod reader;
mod request;
mod scan;
mod schema;
mod session;
mod subscription;
#[cfg(test)]
mod tests;
mod walker;
mod wire;

pub use event::{Event, Moment, Response, StreamBroken, Violation};
pub use experiment::xds::{Mark, Presence, ResourceType};
pub use holding::Store;
pub use marks::{MarkId, Marks};
pub use outbox::Outbox;
pub use proxy::{ProxyKind, ProxySpec, XdsVariant};
pub use session::{Receiver, Session};
