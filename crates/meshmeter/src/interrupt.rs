//! Ctrl-C and termination. The first signal requests an end with the results so far. The second ends the
//! process immediately, unless that would leave something half done.

use crate::failure::Failure;
use lab::end_signals;
use signal_hook::iterator::Signals;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit status after a second signal: 128 + SIGINT, as shells use it.
const INTERRUPTED: i32 = 130;

/// Returns a flag that the first signal sets, for work that must not be left half done: a second signal only
/// prints a warning, a third ends the process.
pub fn on_patient_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new(end_signals())
        .map_err(|error| Failure::environment(&error).about("listen for signals"))?;
    let requested = Arc::clone(&stop);
    std::thread::spawn(move || {
        let mut signals = signals.forever();
        signals.next();
        requested.store(true, Ordering::Relaxed);
        signals.next();
        // Standard error may be closed.
        let _ = writeln!(
            std::io::stderr(),
            "stopping; a second signal exits at once and leaves unfinished work behind"
        );
        if let Some(signal) = signals.next() {
            // Ends the process as if no handler were installed.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(stop)
}

/// Returns a flag that the first signal sets. A second signal ends the process.
pub fn on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let register = |signal| {
        // The order of registration matters: the conditional shutdown checks the flag that an earlier signal
        // has set.
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))
    };
    for signal in end_signals() {
        register(signal).map_err(|error| Failure::environment(&error).about("listen for signals"))?;
    }
    Ok(stop)
}

/// Returns a flag that the first signal sets. A second signal prints `last_words`, if any, and ends the
/// process.
pub fn on_signals_with_message(
    last_words: impl Fn() -> Option<String> + Send + 'static,
) -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new(end_signals())
        .map_err(|error| Failure::environment(&error).about("listen for signals"))?;
    let requested = Arc::clone(&stop);
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if requested.swap(true, Ordering::Relaxed) {
                if let Some(words) = last_words() {
                    // Standard error may be closed.
                    let _ = writeln!(std::io::stderr(), "{words}");
                }
                signal_hook::low_level::exit(INTERRUPTED);
            }
        }
    });
    Ok(stop)
}
