//! Usage errors without secrets: clap repeats the value that it rejects.

use clap::error::{ContextKind, ContextValue};
use results::without_credentials;

/// Removes secrets from an error: credentials of a URL, and what was given as a header.
pub fn without_secrets(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else { return error };
    let is_header = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => {
            option.split(' ').next().is_some_and(|name| name.ends_with("header"))
        }
        _ => false,
    };
    let shown =
        if is_header && !value.starts_with('@') { "…".to_owned() } else { without_credentials(value) };
    if shown != *value {
        error.insert(ContextKind::InvalidValue, ContextValue::String(shown));
    }
    error
}
