//! inotify instances: the kernel limits them per user, to fewer than the proxies of a large deployment open.

use crate::Result;
use experiment::environment::EnvironmentError;
use std::fs;

/// The limit per user. It belongs to the whole machine.
const LIMIT: &str = "/proc/sys/fs/inotify/max_user_instances";
const RAISED: usize = 8192;

/// Lets a user open this many instances. Root raises the limit where it is lower; it stays raised, since labs beside this one
/// may have come to rely on it.
pub(crate) fn allow_instances(needed: usize) -> Result<()> {
    let text = fs::read_to_string(LIMIT).unwrap_or_default();
    // A kernel without inotify has no limit either: its programs say what they miss.
    let Ok(limit) = text.trim().parse::<usize>() else { return Ok(()) };
    if limit >= needed {
        return Ok(());
    }
    let raised = needed.max(RAISED);
    fs::write(LIMIT, raised.to_string()).map_err(|error| {
        let reason = format!("they need {needed}, and the limit per user is {limit}: {error}");
        EnvironmentError::new("open the inotify instances of the proxies", reason)
            .with_hint(format!("as root: `sysctl fs.inotify.max_user_instances={raised}`"))
    })
}
