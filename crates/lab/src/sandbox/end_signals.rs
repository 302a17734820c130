//! Signals that end a run.

use procfs_core::FromRead as _;
use procfs_core::process::Status;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// SIGINT and SIGTERM, and SIGHUP unless this process was started with it ignored: `nohup` does that for work that is to outlive
/// its terminal. To be asked for before handlers are installed.
#[must_use]
pub fn end_signals() -> Vec<i32> {
    let mut signals = vec![SIGINT, SIGTERM];
    let ignored = Status::from_file("/proc/self/status").map_or(0, |status| status.sigign);
    if !is_among(ignored, SIGHUP) {
        signals.push(SIGHUP);
    }
    signals
}

/// True if the signal is in a mask of signals, see proc_pid_status(5).
fn is_among(mask: u64, signal: i32) -> bool {
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_hangup_is_read_from_the_mask() {
        assert!(is_among(0x0000_0001, SIGHUP));
        assert!(is_among(0x0000_1007, SIGHUP));
        assert!(!is_among(0x0000_1000, SIGHUP) && !is_among(0, SIGHUP));
    }
}
