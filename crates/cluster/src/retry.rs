//! Retries while an API server is away: after a restart it responds again within seconds.

use crate::Result;
use std::thread;
use std::time::{Duration, Instant};

/// Time for which the API server may be away while objects are awaited or removed.
pub(crate) const API_TIMEOUT: Duration = Duration::from_secs(30);
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Repeats an operation until it succeeds. After `timeout` without success it returns the operation's error.
pub(crate) fn retry<T>(timeout: Duration, mut operation: impl FnMut() -> Result<T>) -> Result<T> {
    let began = Instant::now();
    loop {
        match operation() {
            Err(_) if began.elapsed() < timeout => thread::sleep(RETRY_INTERVAL),
            result => return result,
        }
    }
}
