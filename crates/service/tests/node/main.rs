//! Nodes as a graph: real servers on loopback.

mod calls;
mod database;
mod failures;
mod graph;
mod http1;
mod lifetime;
mod scripts;
