//! One simulated proxy as a state machine: configuration messages in, subscriptions and acknowledgements out. No I/O.
//!
//! Read [`Session`] first: which requests follow from which responses. A response is read as it arrives and is never held as a
//! whole: `walker` reads protobuf in pieces, `schema` names the fields that count, `reader` turns them into names, which
//! [`Store`] holds once for all sessions of a thread, as it does what several hold alike. `scan` looks for [`Marks`] in passing.
//!
//! Left out: the content of resources beyond names and what they name. A session does not notice a route to a cluster that is
//! not there.

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
