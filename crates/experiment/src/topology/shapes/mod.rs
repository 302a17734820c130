//! Built-in topologies. To add one, add a file with its [`Shape`] and a line in [`SHAPES`].
//!
//! A shape builds one copy without namespaces; [`Topology::copies`](super::Topology::copies) places several copies in their own
//! namespaces.

mod booking;
mod chain;
mod draft;
mod emojivoto;
mod parameter;
mod random;
mod shape;
mod star;
mod tiered;
mod tree;

#[cfg(test)]
mod tests;

pub use parameter::{Parameter, ParameterKind, Parameters};
pub use shape::{Shape, ShapeSettings};

use super::pair::PAIR;

/// Every built-in topology.
pub static SHAPES: [&Shape; 8] = [
    &PAIR,
    &chain::CHAIN,
    &tree::TREE,
    &star::STAR,
    &tiered::TIERED,
    &emojivoto::EMOJIVOTO,
    &booking::BOOKING,
    &random::RANDOM,
];

impl Shape {
    /// Shape with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        SHAPES.into_iter().find(|shape| shape.name == name)
    }
}
