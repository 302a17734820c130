//! `--start-at -`: reads the start time from standard input.

use crate::failure::Failure;
use crate::output::tell;
use jiff::Timestamp;
use load::StartSignal;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Reads a line with the start time on a separate thread and passes it on. Any other input ends the run.
pub fn read_from_stdin(signal: StartSignal, stop: Arc<AtomicBool>) -> Result<(), Failure> {
    let read = move || match read_instant() {
        Ok(start) => signal.send(start),
        Err(why) => {
            tell!("--start-at: {why}");
            stop.store(true, Ordering::Relaxed);
        }
    };
    let started = thread::Builder::new().name("start".to_owned()).spawn(read);
    started.map(drop).map_err(|error| Failure::environment(&error).about("wait for the agreed start"))
}

fn read_instant() -> Result<Timestamp, String> {
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|error| format!("read standard input: {error}"))?;
    match line.trim() {
        "" => Err("standard input ended without an instant".to_owned()),
        text => text.parse().map_err(|_| format!("`{text}` on standard input is not an instant")),
    }
}
