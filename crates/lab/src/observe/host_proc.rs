//! The whole machine as seen from inside the lab.

use crate::Result;
use experiment::environment::EnvironmentError;
use std::path::{Path, PathBuf};

/// The machine's own proc mount, and the lab's processes in it.
#[derive(Clone, Debug)]
pub struct HostProc {
    pub path: PathBuf,
    /// PID of the lab's topmost process in that mount. It and its descendants are the lab.
    pub lab_root: i32,
}

impl HostProc {
    /// The machine as this proc mount shows it. The lab is this process and its descendants.
    pub fn new(path: &Path) -> Result<Self> {
        let failed = |reason: String| {
            EnvironmentError::new(format!("find this process in {}", path.display()), reason)
        };
        // `self` links to our PID in the PID namespace that the mount belongs to.
        let own = std::fs::read_link(path.join("self")).map_err(|error| failed(error.to_string()))?;
        let lab_root = own.to_str().and_then(|number| number.parse().ok());
        let lab_root = lab_root.ok_or_else(|| failed(format!("its number is shown as {}", own.display())))?;
        Ok(Self { path: path.to_path_buf(), lab_root })
    }
}
