//! A lab's own registry entry. It exists before anything of the lab is created and until everything is gone.

use super::down::{remove_entry, remove_folders_of_all};
use super::record::Record;
use super::runtime_dir::{self, DirAccess};
use crate::Result;
use crate::sandbox::cgroup::tree;
use crate::sandbox::privileges::Privileges;
use experiment::environment::ErrorContext as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Registry entry of this process's lab. Dropping it removes the entry and the lab's cgroups.
#[derive(Debug)]
pub(crate) struct Registration {
    directory: PathBuf,
    record: Record,
    cgroup_locks: Vec<File>,
    removed: bool,
}

impl Registration {
    /// Writes the entry, then creates the lab's cgroup, or records why there is none.
    pub(crate) fn new(purpose: &str, privileges: Privileges, access: DirAccess) -> Result<Self> {
        let operation = "write the lab down";
        let id = new_id().context(operation)?;
        let cgroups = tree::candidates(&id).context("find the machine's control groups")?;
        let record = Record::new(id, purpose, privileges, &cgroups).context(operation)?;
        let unfinished = runtime_dir::create_entry(&record.id, access)?;
        let directory = unfinished.with_file_name(&record.id);
        record.save(&unfinished)?;
        fs::rename(&unfinished, &directory).context(operation)?;
        let mut registration = Self { directory, record, cgroup_locks: Vec::new(), removed: false };
        tree::remove_remains(&cgroups);
        let Self { directory, record, cgroup_locks, .. } = &mut registration;
        match tree::establish(&cgroups) {
            Ok((cgroup, locks)) => (record.cgroup, *cgroup_locks) = (Some(cgroup), locks),
            Err(reason) => record.no_cgroup_because = Some(reason.to_string()),
        }
        record.save(directory)?;
        Ok(registration)
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Changes the record, and its file.
    pub(crate) fn note(&mut self, change: impl FnOnce(&mut Record)) -> Result<()> {
        change(&mut self.record);
        self.record.save(&self.directory)
    }

    pub(crate) fn remove(mut self) -> Result<()> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.removed, true) {
            return Ok(());
        }
        let result = remove_entry(&self.directory, &self.record.cgroup_directories).map(drop);
        if let Some(labs) = self.directory.parent() {
            remove_folders_of_all(labs);
        }
        result
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // An earlier error is more informative; the next start removes the rest.
        let _ = self.take_down();
    }
}

/// Six letters and digits that are not easily confused: about 10⁹ names.
fn new_id() -> io::Result<String> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnopqrstuvwxyz2345678";
    let mut random = [0_u8; 6];
    let length = rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty())?;
    if length < random.len() {
        return Err(io::Error::other("the kernel gave too little randomness"));
    }
    Ok(random.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}
