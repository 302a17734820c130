//! Output on the standard streams. Standard output is for results, standard error for everything else. Neither can end
//! a command: a terminal that is gone, or a full disk behind a redirection, costs what was printed there, never
//! a measurement. Messages show no credentials of URLs, whoever wrote the text; results have none in their fields.

pub mod destination;

pub use destination::Destination;

use crate::failure::Failure;
use results::hide_credentials;
use serde::Serialize;
use std::fmt;
use std::io::{self, Write as _};

/// Prints a line on standard error. One that cannot be written is lost: there is nowhere else to say so.
macro_rules! tell {
    ($($text:tt)*) => { $crate::output::tell_line(format_args!($($text)*)) };
}
pub(crate) use tell;

/// Implementation of [`tell!`].
pub fn tell_line(text: fmt::Arguments<'_>) {
    let _ = anstream::stderr().write_all(hide_credentials(&format!("{text}\n")).as_bytes());
}

/// Writes a result to standard output. A reader may close the pipe early, as `head` does.
///
/// # Errors
/// Returns an error if the text cannot be written: files are to be written before.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = anstream::stdout();
    written(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// The outcome of writing to standard output.
fn written(result: io::Result<()>) -> Result<(), Failure> {
    destination::ignore_broken_pipe(result)
        .map_err(|error| Failure::environment(&error).about("write to standard output"))
}

/// A value as indented JSON, with a line break.
pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("results have string keys and finite numbers") + "\n"
}
