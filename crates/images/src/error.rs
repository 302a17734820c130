//! Why files could not be had, one line each.

use std::path::PathBuf;

use crate::Platform;

/// Why files could not be had. Each variant's text is one line that names the image.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are what their names say")]
pub enum ImageError {
    /// No connection, no TLS, no response in time, or the server's own failure.
    #[error("{image}: registry {registry} cannot be reached: {reason}")]
    Unreachable { image: String, registry: String, reason: String },
    /// The registry wants credentials, or does not take those it got.
    #[error("{image}: registry {registry} refuses access: {reason}")]
    Refused { image: String, registry: String, reason: String },
    /// The registry asks for longer pauses than there is patience for.
    #[error("{image}: registry {registry} limits the rate of requests: {reason}")]
    RateLimited { image: String, registry: String, reason: String },
    /// Repository, tag or digest is unknown to the registry.
    #[error("{image}: not found in registry {registry}: {reason}")]
    NotFound { image: String, registry: String, reason: String },
    /// The response breaks the protocol, or is larger than such a thing can be.
    #[error("{image}: registry {registry} sends what no registry should: {reason}")]
    InvalidResponse { image: String, registry: String, reason: String },
    /// What came is not what its digest says, or only a part of it.
    #[error("{image}: {reason}")]
    WrongDigest { image: String, reason: String },
    /// A layer that nobody makes by accident.
    #[error("{image}: {reason}; nothing of it was kept")]
    HostileLayer { image: String, reason: String },
    /// A kind of image or layer that cannot be read.
    #[error("{image}: {reason}")]
    Unsupported { image: String, reason: String },
    /// The image is there, but not for this platform.
    #[error("{image}: there is none for {platform}, only for {available}")]
    NoSuchPlatform { image: String, platform: Platform, available: String },
    /// The image has no such file.
    #[error("{image}: it has no file {path}: {reason}")]
    FileAbsent { image: String, path: String, reason: String },
    /// What the caller wants is contradictory, or an option is unusable.
    #[error("{image}: {reason}")]
    InvalidRequest { image: String, reason: String },
    /// The destination cannot be written.
    #[error("{image}: cannot write {}: {reason}", path.display())]
    Destination { image: String, path: PathBuf, reason: String },
    /// [`Watch::interrupted`](crate::Watch::interrupted) said so.
    #[error("{image}: interrupted")]
    Interrupted { image: String },
}

/// The innermost cause, which is what a reader can act on.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = innermost.to_string();
    one_line(text.split(" (os error").next().unwrap_or_default(), 300)
}

/// Text from elsewhere as part of one line: without control characters, and short.
pub(crate) fn one_line(text: &str, max_chars: usize) -> String {
    let mut line: String =
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).collect();
    if let Some((end, _)) = line.char_indices().nth(max_chars) {
        line.truncate(end);
        line.push('…');
    }
    line
}
