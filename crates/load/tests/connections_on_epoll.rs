//! The tests of `connections.rs` over epoll.

#[path = "connections.rs"]
mod connections;
