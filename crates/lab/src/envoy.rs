//! Paths under which the lab still names what is in [`mesh`].

pub use mesh::envoy::*;
pub use mesh::{admin, proof};
