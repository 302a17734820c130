//! Output of `meshmeter topology`.

use crate::commands::report;
use crate::failure::Failure;
use crate::output::{Destination, tell};
use std::path::Path;

/// Writes to a file, or to standard output.
pub(super) fn write(text: &str, file: Option<&Path>) -> Result<(), Failure> {
    report::write(&file.map_or(Destination::Stdout, Destination::from_path), text)
}

/// Prints notes on standard error.
pub(super) fn notes<'a>(notes: impl IntoIterator<Item = &'a String>) {
    for note in notes {
        tell!("note: {note}");
    }
}
