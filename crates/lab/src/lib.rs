//! One machine as a lab: namespaces, cgroups, processes and proxies.

pub mod certificates;
pub mod components;
pub mod floor;
