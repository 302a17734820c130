//! Ctrl-C and termination: the first asks to end with the results so far, the second ends at once, unless that would leave
//! something half done.

use crate::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit status after a second signal: 128 and the number of SIGINT, as shells have it.
const INTERRUPTED: i32 = 130;

/// A flag that is set by the first signal, for what must not be left half done: a second signal changes nothing, a third
/// ends the process.
pub fn on_patient_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::environment(&error).about("listen for signals"))?;
    let requested = Arc::clone(&stop);
    std::thread::spawn(move || {
        let mut signals = signals.forever();
        signals.next();
        requested.store(true, Ordering::Relaxed);
        signals.next();
        // Nobody may be listening.
        let _ = writeln!(std::io::stderr(), "ending; once more, and what is half done stays behind");
        if let Some(signal) = signals.next() {
            // It ends the process as if nobody had listened.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(stop)
}

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

/// A flag that is set by the first signal. A second signal ends the process, with these words if there are any.
pub fn on_signals_with_last_words(
    last_words: impl Fn() -> Option<String> + Send + 'static,
) -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::environment(&error).about("listen for signals"))?;
    let requested = Arc::clone(&stop);
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if requested.swap(true, Ordering::Relaxed) {
                if let Some(words) = last_words() {
                    // Nobody may be listening.
                    let _ = writeln!(std::io::stderr(), "{words}");
                }
                signal_hook::low_level::exit(INTERRUPTED);
            }
        }
    });
    Ok(stop)
}
