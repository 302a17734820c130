//! The tests of `websocket.rs` over epoll.

#[path = "websocket.rs"]
mod websocket;
