//! The tests of `engine.rs` over epoll.

#[path = "engine.rs"]
mod engine;
