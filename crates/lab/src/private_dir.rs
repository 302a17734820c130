//! Directories that are removed with their owner (configuration, keys, sockets), and log directories.

use crate::Result;
use crate::component_name::lab_name;
use crate::container::ContainerUser;
use crate::lab::Lab;
use experiment::environment::ErrorContext as _;
use std::fs;
use std::path::{Path, PathBuf};

/// A directory of the lab that is removed when its owner is dropped.
#[derive(Debug)]
pub(crate) struct PrivateDir(pub PathBuf);

impl PrivateDir {
    /// Creates a directory for a component of this name, readable only for this user.
    pub fn create(lab: &Lab, name: &str, user: ContainerUser) -> Result<Self> {
        lab.create_private_dir(&lab_name(name), user).map(Self)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // Anything that cannot be removed here goes with the lab's private directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn create_log_dir(log_dir: &Path) -> Result<()> {
    fs::create_dir_all(log_dir).context(format!("create the log folder {}", log_dir.display()))
}
