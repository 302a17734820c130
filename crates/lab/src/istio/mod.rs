//! `mesh: istio`: a real control plane configures real proxies, on one machine and without Kubernetes nodes.
//!
//! Read [`control_plane`] first (what is started once for all trials), then `modes/` (what each mode starts in its pods
//! and writes to the API), [`agent`] (how a proxy is run) and [`in_force`] (when its configuration counts as there).
//! [`objects`] renders what an experiment's switches ask for, `api.rs` and what is under it speaks to the Kubernetes API,
//! `namespace.rs` keeps the objects of one trial together, `redirect.rs` sends a pod's traffic through its proxy.
//!
//! What this leaves out: everything that a kubelet, kube-proxy or the controllers of a cluster would do is done here
//! directly, and injection by Istio's webhook is not needed. See `docs/decisions/0008-istio-lab.md`.

mod admission;
pub mod agent;
mod api;
pub mod control_plane;
mod credentials;
pub mod modes;
mod namespace;
mod object;
pub mod objects;
mod opened;
mod programs;
mod redirect;
mod site;
pub mod token;
mod wasm_module;
mod workload;
mod zds;
mod ztunnel;

pub use api::Api;
pub use control_plane::{ControlPlane, DEBUG_PORT};
pub use mesh::istio::{nack as refusal, propagation as in_force};
pub use mesh::spans as trace_collector;
pub use namespace::MeshNamespace;
pub use object::Reference;
pub use opened::{DOORS, OpenedControlPlane};
pub use programs::{AmbientPrograms, IstioPrograms};
pub use workload::{Membership, ServicePort, Workload};
