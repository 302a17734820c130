//! The tests of `engine.rs` once more, over epoll.

#[path = "engine.rs"]
mod engine;
