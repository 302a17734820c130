//! Cgroups of a lab, version 1 and 2: one per container, below the cgroup that Meshmeter itself runs in.
//!
//! [`hierarchy`] finds possible locations from the kernel's mounts and memberships; [`tree`] creates and
//! removes cgroups; `group.rs` is one of them, and `reading.rs` parses its counters. All are created below our
//! own cgroup (version 1), or below its nearest ancestor that can hold them (version 2), so that the
//! administrator's limits on us stay in effect. Not included: I/O limits and CPU sets.

mod group;
pub mod hierarchy;
mod reading;
pub mod tree;

pub use group::Cgroup;

use serde::{Deserialize, Serialize};
use std::fmt;

/// The two cgroup interfaces of the kernel.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    /// One hierarchy per controller.
    V1,
    /// One hierarchy for all controllers.
    V2,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        })
    }
}
