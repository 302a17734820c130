//! xDS types shared by a fleet's mesh and its simulated proxies: resource types and marks of changes.

mod mark;
mod resource_type;

pub use mark::{Mark, Presence};
pub use resource_type::ResourceType;
