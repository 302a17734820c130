//! `mesh: istio`: a real control plane configures real proxies, on one machine and without Kubernetes nodes.
//!
//! Read [`control_plane`] first (what is started once for all trials), then [`agent`] (how a proxy is run).
//! `mesh::istio` has the objects for an experiment's switches, `mesh::kubernetes` the client of the
//! Kubernetes API and sets of objects. `namespace.rs` adds names that resolve in pods; `redirect.rs` sends a
//! pod's traffic through its proxy. Not included: kubelet, kube-proxy and the controllers of a cluster. Their
//! work is done here directly, and injection by Istio's webhook is not needed. See
//! `docs/decisions/0008-istio-lab.md`.

pub mod agent;
pub(crate) mod context;
pub mod control_plane;
mod credentials;
mod namespace;
mod programs;
mod proxy_build;
pub(crate) mod redirect;
pub(crate) mod zds;
pub(crate) mod ztunnel;

pub use zds::check_messages;

pub use control_plane::ControlPlane;
pub use namespace::MeshNamespaces;
pub(crate) use programs::expose_wasm_module;
pub use programs::{AmbientPrograms, IstioPrograms};
