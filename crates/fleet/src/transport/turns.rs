//! When a thread's event loop last polled the kernel for readable connections. Data received on a connection
//! that was empty in the previous poll arrived after that poll.

use std::cell::Cell;
use std::time::Instant;

thread_local! {
    /// Ends of the last wait and of the one before it.
    static WAITS_ENDED: Cell<[Option<Instant>; 2]> = const { Cell::new([None; 2]) };
}

/// Must be called whenever a wait of this thread's event loop ends.
pub(crate) fn wait_ended() {
    let [_, last] = WAITS_ENDED.get();
    WAITS_ENDED.set([last, Some(Instant::now())]);
}

/// End of the wait before the last one: connections that it did not report were empty then. It is read only
/// after tasks have been woken, a tenth of a microsecond each.
pub(super) fn before_last_wait() -> Option<Instant> {
    WAITS_ENDED.get()[0]
}
