//! inotify instances: the kernel's limit per user is lower than the number that the proxies of a large
//! deployment open.

use crate::Result;
use experiment::environment::EnvironmentError;
use std::fs;

/// The limit per user; the setting applies to the whole machine.
const LIMIT: &str = "/proc/sys/fs/inotify/max_user_instances";
const RAISED: usize = 8192;

/// Ensures that a user may open this many instances. Root raises the limit if it is lower; [`restore`] resets
/// it when the lab ends.
pub(crate) fn allow_instances(needed: usize) -> Result<()> {
    // A kernel without inotify has no limit either; programs that need inotify report it.
    let Some(limit) = limit() else { return Ok(()) };
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

/// The current limit; absent if the kernel has none.
pub(crate) fn limit() -> Option<usize> {
    fs::read_to_string(LIMIT).ok()?.trim().parse().ok()
}

/// Resets the limit to its value before the lab that has ended. It stays if another lab may rely on it, or if
/// someone else has changed it meanwhile.
pub(crate) fn restore(before: Option<usize>, other_labs: bool) {
    if let Some(before) = to_restore(before, limit(), other_labs) {
        // This fails for an ordinary user, who did not raise it either.
        let _ = fs::write(LIMIT, before.to_string());
    }
}

fn to_restore(before: Option<usize>, now: Option<usize>, other_labs: bool) -> Option<usize> {
    before.filter(|before| !other_labs && now.is_some_and(|now| now >= RAISED && now > *before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_that_a_lab_raised_is_restored() {
        assert_eq!(to_restore(Some(128), Some(RAISED), false), Some(128));
        assert_eq!(to_restore(Some(128), Some(RAISED), true), None);
        assert_eq!(to_restore(Some(128), Some(256), false), None);
        assert_eq!(to_restore(Some(RAISED), Some(RAISED), false), None);
        assert_eq!(to_restore(None, None, false), None);
    }
}
