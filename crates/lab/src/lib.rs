//! One machine as a lab: namespaces, cgroups, processes and proxies.
//!
//! Read [`mod@enter`] first: how a command comes to run inside a lab of its own, and why nothing of a lab can outlive it.
//! Then [`Lab`] (what there is inside), [`Pod`] (a network namespace with an address), [`Container`] (a supervised
//! process with a cgroup), [`redirect`] (traffic sent through proxies) and [`registry`] (what is up on this machine, and
//! how it is taken down). [`door`] and [`visit`] lead into a lab that is up: connections from the machine, and commands.
//!
//! What this leaves out: images, volumes, IPv6 between pods, and more than one machine.

mod admin_port;
pub mod arrangement;
pub mod certificates;
pub mod cgroup;
pub mod components;
pub mod container;
pub mod doctor;
pub mod door;
pub mod enter;
pub mod envoy;
pub mod floor;
pub mod host;
mod interface;
pub mod istio;
mod lab;
mod life;
mod namespace;
mod network;
pub mod observe;
mod permission;
pub mod pod;
pub mod process_table;
mod proxy_user;
pub mod redirect;
pub mod registry;
mod subordinate;
pub mod visit;

pub use container::{Container, ContainerSpec, ContainerUser, ErrorOutput};
pub use enter::{Entered, enter, enter_with_doors};
pub use interface::Interface;
pub use lab::{Lab, Privileges};
pub use mesh::wait::{self, wait_for};
pub use permission::probe;
pub use pod::{NameFiles, Pod, PodSpec};
pub use redirect::{ProxyIdentity, Redirect};
pub use subordinate::NoProxyUser;
