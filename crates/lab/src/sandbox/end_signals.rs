//! Signals that end a run.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs;

/// SIGINT and SIGTERM, and SIGHUP unless this process was started with it ignored: `nohup` does that for work that is to outlive
/// its terminal. To be asked for before handlers are installed.
#[must_use]
pub fn end_signals() -> Vec<i32> {
    let mut signals = vec![SIGINT, SIGTERM];
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !is_ignored(&status, SIGHUP) {
        signals.push(SIGHUP);
    }
    signals
}

/// Reads the mask of ignored signals, see proc_pid_status(5).
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_hangup_is_read_from_the_mask() {
        let status =
            |mask: &str| format!("Name:\tmeshmeter\nSigBlk:\tffff\nSigIgn:\t{mask}\nSigCgt:\tffff\n");
        assert!(is_ignored(&status("0000000000000001"), SIGHUP));
        assert!(is_ignored(&status("0000000000001007"), SIGHUP));
        assert!(!is_ignored(&status("0000000000001000"), SIGHUP) && !is_ignored("", SIGHUP));
    }
}
