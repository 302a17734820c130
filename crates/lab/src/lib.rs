//! One machine as a lab: namespaces, cgroups, processes and proxies.

pub mod floor;
