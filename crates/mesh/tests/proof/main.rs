//! Proof of paths from counters: of a single edge, and of every edge of a graph.

mod ambient;
mod edges;
mod fixture;
mod graph;
mod path;
mod requests;
mod streams;
