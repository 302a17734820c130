//! Why files could not be extracted, in one line each.

use std::path::PathBuf;

use crate::Platform;

/// Why files could not be extracted. Each variant's text is one line that names the image.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are what their names say")]
pub enum ImageError {
    /// No connection, no TLS, no response in time, or a server error.
    #[error("{image}: registry {registry} cannot be reached: {reason}")]
    Unreachable { image: String, registry: String, reason: String },
    /// The registry requires credentials, or rejects the given ones.
    #[error("{image}: registry {registry} refuses access: {reason}")]
    Refused { image: String, registry: String, reason: String },
    /// The registry requests longer pauses than [`Limits::max_retry_after`](crate::Limits::max_retry_after).
    #[error("{image}: registry {registry} limits the rate of requests: {reason}")]
    RateLimited { image: String, registry: String, reason: String },
    /// The registry does not have this repository, tag or digest.
    #[error("{image}: not found in registry {registry}: {reason}")]
    NotFound { image: String, registry: String, reason: String },
    /// The response violates the protocol, or is too large.
    #[error("{image}: registry {registry} sends an invalid response: {reason}")]
    InvalidResponse { image: String, registry: String, reason: String },
    /// The content does not match its digest, or is incomplete.
    #[error("{image}: {reason}")]
    WrongDigest { image: String, reason: String },
    /// A layer that is not malformed by accident.
    #[error("{image}: {reason}; nothing of it was kept")]
    HostileLayer { image: String, reason: String },
    /// A kind of image or layer that is not supported.
    #[error("{image}: {reason}")]
    Unsupported { image: String, reason: String },
    /// The image exists, but not for this platform.
    #[error("{image}: there is none for {platform}, only for {available}")]
    NoSuchPlatform { image: String, platform: Platform, available: String },
    /// The image has no such file.
    #[error("{image}: it has no file {path}: {reason}")]
    FileAbsent { image: String, path: String, reason: String },
    /// The caller's request is contradictory, or an option is unusable.
    #[error("{image}: {reason}")]
    InvalidRequest { image: String, reason: String },
    /// The destination cannot be written.
    #[error("{image}: cannot write {}: {reason}", path.display())]
    Destination { image: String, path: PathBuf, reason: String },
    /// [`Watch::interrupted`](crate::Watch::interrupted) returned true.
    #[error("{image}: interrupted")]
    Interrupted { image: String },
}

/// The innermost cause, which is the most useful one for readers.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = innermost.to_string();
    one_line(text.split(" (os error").next().unwrap_or_default(), 300)
}

/// External text as part of one line: without control characters, and shortened.
pub(crate) fn one_line(text: &str, max_chars: usize) -> String {
    let mut line: String =
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).collect();
    if let Some((end, _)) = line.char_indices().nth(max_chars) {
        line.truncate(end);
        line.push('…');
    }
    line
}
