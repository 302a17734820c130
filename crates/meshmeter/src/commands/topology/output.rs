//! Output of `meshmeter topology`.

use crate::commands::report::folder_failure;
use crate::failure::Failure;
use crate::output::{Destination, tell};
use report::folder::write_whole;
use std::path::Path;

/// Writes to a file, or to standard output.
pub(super) fn write(text: &str, file: Option<&Path>) -> Result<(), Failure> {
    match file.map(Destination::from_path) {
        Some(Destination::File(path)) => write_whole(&path, text.as_bytes()).map_err(folder_failure),
        Some(Destination::Stdout) | None => Destination::Stdout.write(text.as_bytes()),
    }
}

/// Prints notes on standard error.
pub(super) fn notes<'a>(notes: impl IntoIterator<Item = &'a String>) {
    for note in notes {
        tell!("note: {note}");
    }
}
