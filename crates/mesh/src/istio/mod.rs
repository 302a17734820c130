//! What Istio makes of a mesh: when its configuration has reached the proxies, and what they rejected.

pub mod nack;
pub mod propagation;
