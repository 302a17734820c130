//! The limit on open files: each connection is one.

use crate::failure::Failure;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets the process open as many files as it may. Where that is refused, there are fewer.
pub fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Open files besides a fleet's connections.
const SPARE_FILES: u64 = 512;

/// Raises the limit for connections, or says that there cannot be this number.
pub fn allow(connections: usize) -> Result<(), Failure> {
    raise_limit();
    let needed = connections as u64 + SPARE_FILES;
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < needed => {
            let message =
                format!("{connections} connections take {needed} open files, and the limit is {limit}");
            Err(Failure::broken(message)
                .with_hint(format!("raise it in this shell: ulimit -Hn {needed} -Sn {needed}")))
        }
        _ => Ok(()),
    }
}
