//! Why a component's admin port did not give the expected response.

use experiment::environment::EnvironmentError;
use std::io;
use std::time::Duration;

/// A request to an admin port that failed.
#[derive(Debug, thiserror::Error)]
#[error("ask {proxy} for {path}")]
pub struct AdminError {
    /// The component that was asked.
    pub proxy: String,
    /// Requested path without its query, such as `/stats`.
    pub path: String,
    /// What was wrong.
    #[source]
    pub cause: AdminCause,
}

/// What was wrong with a response.
#[derive(Debug, thiserror::Error)]
pub enum AdminCause {
    /// The socket could not be opened, or the runtime not be made.
    #[error("open its admin socket")]
    Connect(#[source] io::Error),
    /// Its pod is gone.
    #[error("enter its pod")]
    Pod(#[source] EnvironmentError),
    /// The exchange broke off, or was not HTTP.
    #[error("no whole answer")]
    Exchange(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It did not respond to an earlier request.
    #[error("not asked again: {0}")]
    NotAsked(String),
    /// Nothing came in time.
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// Longer than any expected response.
    #[error("its answer is longer than {0} bytes")]
    TooLong(usize),
    /// Another status than 200.
    #[error("it answered with status {0}")]
    Status(u16),
    /// The log that it counts in could not be read.
    #[error("read its log")]
    Log(#[source] io::Error),
    /// The response is not of the expected shape.
    #[error("an answer that cannot be read")]
    Shape(#[source] serde_json::Error),
}
