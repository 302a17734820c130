//! Ctrl-C and termination: the first asks to end with the results so far, the second ends at once.

use crate::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Exit status after a second signal: 128 and the number of SIGINT, as shells have it.
const INTERRUPTED: i32 = 130;

/// A flag that is set by the first signal. A second signal ends the process.
pub fn on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let register = |signal| {
        // In this order: the shutdown looks at what an earlier signal has set.
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))
    };
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        register(signal).map_err(|error| Failure::environment(&error).about("listen for signals"))?;
    }
    Ok(stop)
}
