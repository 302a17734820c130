//! A sandbox on one machine: namespaces, cgroups, pods, containers, and the registry of labs that are up.
//!
//! Read [`enter`] first: how a command comes to run inside a lab of its own, and why nothing of a lab can
//! outlive it. [`port_forward`] leads connections from the machine into a running lab.

pub mod cgroup;
pub mod container;
pub mod end_signals;
pub mod enter;
pub(crate) mod inotify;
pub mod interface;
pub mod lab;
pub(crate) mod name;
pub(crate) mod namespace;
pub(crate) mod network;
pub mod permission;
pub mod pod;
pub mod port_forward;
pub mod privileges;
pub(crate) mod proxy_user;
pub mod redirect;
pub mod registry;
pub(crate) mod search_path;
pub mod subordinate;

pub(crate) use components::process_end;
pub use components::process_table;
