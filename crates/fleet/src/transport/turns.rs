//! When a thread's event loop last asked the kernel which connections have something to read. What a connection has received
//! that was empty before came after that.

use std::cell::Cell;
use std::time::Instant;

thread_local! {
    /// Ends of the last wait and of the one before it.
    static WAITS_ENDED: Cell<[Option<Instant>; 2]> = const { Cell::new([None; 2]) };
}

/// To be called as each wait of this thread's event loop ends.
pub(crate) fn wait_ended() {
    let [_, last] = WAITS_ENDED.get();
    WAITS_ENDED.set([last, Some(Instant::now())]);
}

/// End of the wait before the last: connections that it did not report were empty then. It is read once tasks have been woken,
/// a tenth of a microsecond each.
pub(super) fn before_last_wait() -> Option<Instant> {
    WAITS_ENDED.get()[0]
}
