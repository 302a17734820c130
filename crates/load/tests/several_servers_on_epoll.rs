//! The tests of `several_servers.rs` once more, over epoll.

#[path = "several_servers.rs"]
mod several_servers;
