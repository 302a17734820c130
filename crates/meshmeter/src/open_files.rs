//! Limit on open files: each connection needs one.

use crate::failure::Failure;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit on open files to the hard limit. If that fails, the limit stays as it is.
pub fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Raises the limit, and returns an error if it does not allow this many connections and other files.
pub fn allow(connections: usize, others: u64) -> Result<(), Failure> {
    raise_limit();
    let needed = connections as u64 + others;
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
