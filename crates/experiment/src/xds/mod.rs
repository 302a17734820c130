//! xDS as the mesh of a fleet and its simulated proxies share it: types of resources, and the marks of changes.

mod mark;
mod resource_type;

pub use mark::{Mark, Presence};
pub use resource_type::ResourceType;
