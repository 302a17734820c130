//! Patience with an API server that is away for a while: one that is restarted comes back within seconds.

use crate::Result;
use std::thread;
use std::time::{Duration, Instant};

/// Time that the API server may be away while objects are awaited or removed.
pub(crate) const API_TIMEOUT: Duration = Duration::from_secs(30);
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Repeats an operation until it succeeds. Returns its error once that has lasted for `timeout`.
pub(crate) fn patiently<T>(timeout: Duration, mut operation: impl FnMut() -> Result<T>) -> Result<T> {
    let began = Instant::now();
    loop {
        match operation() {
            Err(_) if began.elapsed() < timeout => thread::sleep(RETRY_INTERVAL),
            result => return result,
        }
    }
}
