//! Linkerd: the counters of its proxies, and which of them prove a path.

mod evidence;
mod metrics;

pub use self::metrics::{Inbound, LinkerdProxy, Outbound, read as read_counters};

/// Namespace of the control plane.
pub const NAMESPACE: &str = "linkerd";
/// Port of a proxy's metrics, open to anyone who can reach its pod.
pub const ADMIN_PORT: u16 = 4191;
