//! The tests of `known_streams.rs` over epoll.

#[path = "known_streams.rs"]
mod known_streams;
