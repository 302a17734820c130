//! Output of `meshmeter topology`.

use crate::failure::Failure;
use report::folder;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

/// Writes to a file, or to standard output.
pub(super) fn write(text: &str, file: Option<&Path>) -> Result<(), Failure> {
    if let Some(file) = file {
        return folder::write_whole(file, text.as_bytes()).map_err(crate::commands::report::folder_failure);
    }
    match anstream::stdout().write_all(text.as_bytes()) {
        // The reader has closed the pipe.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::environment(&error).about("write to standard output"))
        }
        _ => Ok(()),
    }
}

/// Prints notes on standard error.
pub(super) fn notes<'a>(notes: impl IntoIterator<Item = &'a String>) {
    for note in notes {
        anstream::eprintln!("note: {note}");
    }
}
