//! One simulated proxy as a state machine: configuration messages in, subscriptions and acknowledgements out. No I/O.

mod proxy;

pub use proxy::{ProxyKind, ProxySpec, XdsVariant};
