//! Cgroups of a lab, version 1 and 2: one per container, below the cgroup that Meshmeter itself runs in.
//!
//! [`hierarchy`] finds possible locations from the kernel's mounts and memberships; [`tree`] creates and
//! removes cgroups; `group.rs` is one of them, and [`reading`] parses its counters. All are created below our
//! own cgroup (version 1), or below its nearest ancestor that can hold them (version 2), so that the
//! administrator's limits on us stay in effect. Not included: I/O limits and CPU sets.

mod group;
pub mod hierarchy;
pub mod reading;
pub mod tree;
pub mod version;

pub use group::Cgroup;
pub use reading::{CpuUsage, Memory, Throttling};
pub use tree::LabCgroup;
pub use version::Version;
