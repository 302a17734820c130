//! The tests of `tls.rs` over epoll.

#[path = "tls.rs"]
mod tls;
