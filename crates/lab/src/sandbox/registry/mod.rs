//! Registry of the labs that are up on this machine, and their removal.
//!
//! Each lab has a directory `labs/<id>` with `lab.json` ([`Record`], written by the outer process before
//! anything else is created), `access.json` and `pods/<number>.json` ([`PodNote`], written by the inner
//! process). Each pod has a file, so that the cost of a change does not depend on the number of pods.
//! `runtime_dir.rs` chooses the location, `registration.rs` is a lab's own entry while it runs, [`list`] and
//! [`down`] serve `meshmeter lab`, and [`remove_stale`] runs at every start. [`of_other_users`] looks beyond the registry.

pub(crate) mod access;
pub(crate) mod down;
mod other_users;
pub(crate) mod record;
pub(crate) mod registration;
pub(crate) mod runtime_dir;
pub(crate) mod status;

pub use access::{Access, ControlPlaneAccess, ProxyAccess};
pub use down::{down, remove_stale};
pub use other_users::{HELD, LabOfOtherUser, of_other_users};
pub use record::{PodNote, Record, Removed};
pub use runtime_dir::RUNTIME_VARIABLE;
pub use status::{ContainerStatus, LabStatus, PodNamespaces, PodStatus, list};
