//! Nodes as a graph: real servers on loopback.

mod calls;
mod failures;
mod graph;
mod http1;
mod lifetime;
mod scripts;
