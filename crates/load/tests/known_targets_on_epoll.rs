//! The tests of `known_targets.rs` over epoll.

#[path = "known_targets.rs"]
mod known_targets;
