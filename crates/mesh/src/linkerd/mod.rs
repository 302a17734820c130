//! Linkerd: what its proxies count, and which of that proves a path.

mod evidence;
mod metrics;

pub use self::metrics::{Inbound, Outbound, counters};

/// Of its control plane.
pub const NAMESPACE: &str = "linkerd";
/// Port of a proxy's counters, open to whoever reaches its pod.
pub const ADMIN_PORT: u16 = 4191;
