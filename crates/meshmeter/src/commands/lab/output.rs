//! Standard output of `meshmeter lab`.

use crate::failure::Failure;
use serde::Serialize;
use std::io::{ErrorKind, Write as _};

pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("plain data") + "\n"
}

pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = anstream::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // The reader has closed the pipe.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::environment(&error).about("write to standard output"))
        }
        _ => Ok(()),
    }
}
