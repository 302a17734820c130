//! A lab's own registry entry. It exists before anything of the lab is created and until everything is gone.

use super::down::{remove_entry, remove_folders_of_all};
use super::record::Record;
use super::runtime_dir::{self, DirAccess, UNFINISHED};
use crate::Result;
use crate::sandbox::cgroup::tree::Plan;
use crate::sandbox::process_table::ProcessIdentity;
use crate::sandbox::subordinate::NoProxyUser;
use experiment::environment::{EnvironmentError, ErrorContext as _};
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
    pub(crate) fn new(access: DirAccess, record: impl FnOnce(String) -> io::Result<Record>) -> Result<Self> {
        let operation = "write the lab down";
        let id = new_id().context(operation)?;
        let mut record = record(id).context(operation)?;
        let plan = Plan::read(&record.id).context(operation)?;
        record.cgroup_directories = plan.directories();
        let unfinished = make_unfinished(&record.id, access)?;
        let directory = unfinished.with_file_name(&record.id);
        record.save(&unfinished)?;
        fs::rename(&unfinished, &directory).context(operation)?;
        Ok(Self { directory, record, cgroup_locks: Vec::new(), removed: false })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Creates the lab's cgroup, or records why there is none.
    pub(crate) fn make_cgroup(&mut self) -> Result<()> {
        let plan = Plan::read(&self.record.id).context("find the machine's control groups")?;
        plan.remove_remains();
        match plan.establish() {
            Ok((cgroup, locks)) => (self.record.cgroup, self.cgroup_locks) = (Some(cgroup), locks),
            Err(reason) => self.record.no_cgroup_because = Some(reason),
        }
        self.record.save(&self.directory)
    }

    pub(crate) fn note_no_proxy_user(&mut self, reason: NoProxyUser) -> Result<()> {
        self.record.no_proxy_user = Some(reason);
        self.record.save(&self.directory)
    }

    pub(crate) fn note_inner(&mut self, inner: ProcessIdentity) -> Result<()> {
        self.record.inner = Some(inner);
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

/// Creates an entry's directory under its temporary name. Another lab that ends may remove the common
/// directory at the same moment; then both are created again, up to a few times.
fn make_unfinished(id: &str, access: DirAccess) -> Result<PathBuf> {
    let mut tries_left = 8;
    loop {
        let unfinished = runtime_dir::open(access)?.join(format!("{UNFINISHED}{id}"));
        tries_left -= 1;
        match access.create(&unfinished) {
            Ok(()) => return Ok(unfinished),
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries_left > 0 => {}
            Err(error) => {
                return Err(EnvironmentError::new(
                    format!("make the folder {}", unfinished.display()),
                    error,
                ));
            }
        }
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
