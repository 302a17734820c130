//! Control groups of a lab, version 1 and 2: one for each container, below the one that meshmeter itself runs in.
//!
//! [`hierarchy`] says, from what the kernel tells of mounts and membership, where groups could be made; [`tree`] makes
//! and removes them; `group.rs` is one of them, and [`reading`] parses what they count. Staying below our own group (version 1), or below the nearest
//! of its ancestors that can hold groups (version 2), keeps every limit that the administrator put on us in force.
//! What this leaves out: memory limits, I/O, and CPU sets.

mod group;
pub mod hierarchy;
pub mod reading;
pub mod tree;
pub mod version;

pub use group::Cgroup;
pub use reading::{CpuUsage, Memory, Throttling};
pub use tree::LabCgroup;
pub use version::Version;
