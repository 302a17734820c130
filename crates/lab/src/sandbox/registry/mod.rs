//! Which labs are up on this machine, and taking them down.
//! Each lab has a folder `labs/<id>` with `lab.json` ([`Record`], by the outer process, before anything is made) and
//! `access.json` and `pods/<number>.json` ([`Contents`], by the inner one: a file per pod, so that a change costs the same
//! however many there are). `runtime_dir.rs` says where, `registration.rs` is a
//! lab's own entry while it runs, [`list`] and [`down`] serve `meshmeter lab`, [`remove_stale`] every start.

pub(crate) mod access;
pub(crate) mod down;
pub(crate) mod record;
pub(crate) mod registration;
pub(crate) mod runtime_dir;
pub(crate) mod status;

pub use access::{Access, ControlPlaneAccess, ProxyAccess};
pub use down::{down, remove_stale};
pub use record::{ContainerNote, Contents, PodNote, Record, Removed};
pub use runtime_dir::RUNTIME_VARIABLE;
pub use status::{ContainerStatus, LabStatus, PodNamespaces, PodStatus, list};
