//! The tests of `tls.rs` once more, over epoll.

#[path = "tls.rs"]
mod tls;
