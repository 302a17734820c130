//! Nodes as a graph: real servers on loopback.

mod calls;
mod graph;
