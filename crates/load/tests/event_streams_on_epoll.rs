//! The tests of `event_streams.rs` over epoll.

#[path = "event_streams.rs"]
mod event_streams;
