//! The tests of `several_servers.rs` over epoll.

#[path = "several_servers.rs"]
mod several_servers;
