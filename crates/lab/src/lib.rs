//! One machine as a lab: namespaces, cgroups, processes and proxies.
//!
//! Read [`sandbox`] first, then:
//!
//! * [`Lab`]: what there is inside.
//! * [`Pod`]: a network namespace with an address.
//! * [`Container`]: a supervised process with a cgroup.
//! * [`redirect`]: rules that send traffic through proxies.
//! * [`registry`]: what is up on this machine, and how it is taken down.
//! * [`observe`]: counters of components and machine.
//!
//! Not supported: images, volumes, IPv6 between pods, and more than one machine.

// No field here is part of a contract; a doc comment that repeats the name would only add noise.
#![allow(missing_docs)]

mod admin_port;
mod component_name;
mod confined;
mod context;
mod dataplane;
pub mod deployment;
mod entry;
pub mod environment;
mod exit;
mod filters;
pub mod istio;
mod liveness;
mod local_lab;
pub mod observe;
mod once;
mod private_dir;
pub mod profile;
mod programs;
mod rollout;
mod running;
pub mod sandbox;

pub use istio::check_messages as check_zds_messages;
pub use mesh::certificates;
pub use mesh::wait::{self, wait_for};
pub use sandbox::container::{self, Confined, Container, ContainerSpec, ContainerUser};
pub use sandbox::end_signals::end_signals;
pub use sandbox::enter::{Entered, enter, enter_after, exit_code, is_inside};
pub use sandbox::interface::Interface;
pub use sandbox::lab::{self, Lab};
pub(crate) use sandbox::namespace;
pub use sandbox::pod::{self, NameFiles, Pod, PodSpec};
pub use sandbox::privileges::Privileges;
pub use sandbox::redirect::{self, ProxyIdentity, Redirect};
pub use sandbox::subordinate::NoProxyUser;
pub use sandbox::{cgroup, process_table, registry};

/// The result type of most functions here. The error names the operation.
pub(crate) type Result<T, E = experiment::environment::EnvironmentError> = std::result::Result<T, E>;
