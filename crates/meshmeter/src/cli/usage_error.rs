//! Usage errors without secrets: clap repeats the value that it rejects, and a reason may do so too.

use clap::error::{ContextKind, ContextValue};
use results::{hide_credentials, without_credentials};
use std::io::Write as _;
use std::process::ExitCode;

/// Prints a usage error, help or the version, and returns the exit status. If printing fails there is nowhere else to say so.
pub fn report(error: clap::Error) -> ExitCode {
    let status = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(u8::MAX));
    if !error.use_stderr() {
        let _ = error.print();
        return status;
    }
    let error = without_secrets(error);
    let text = error.render().ansi().to_string();
    let _ = anstream::stderr().write_all(hide_credentials(&text).as_bytes());
    status
}

/// Removes secrets from the value that an error repeats: credentials of a URL, and what was given as a header.
fn without_secrets(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else { return error };
    // The name of a file that holds the value.
    if value.starts_with('@') {
        return error;
    }
    let is_header = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => {
            option.split(' ').next().is_some_and(|name| name.ends_with("header"))
        }
        _ => false,
    };
    let shown = if is_header { "…".to_owned() } else { without_credentials(value) };
    if shown != *value {
        error.insert(ContextKind::InvalidValue, ContextValue::String(shown));
    }
    error
}
