//! Reasons why a component's admin port did not return the expected response.

use experiment::environment::EnvironmentError;
use std::io;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
#[error("query {path} of {proxy}")]
pub struct AdminError {
    pub proxy: String,
    /// Path without its query, such as `/stats`.
    pub path: String,
    #[source]
    pub cause: AdminCause,
}

#[derive(Debug, thiserror::Error)]
pub enum AdminCause {
    #[error("open its admin socket")]
    Connect(#[source] io::Error),
    #[error("enter its pod")]
    Pod(#[source] Box<EnvironmentError>),
    #[error("no whole answer")]
    Exchange(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    #[error("it answered with status {0}")]
    Status(u16),
    #[error("read its log")]
    Log(#[source] io::Error),
    #[error("an answer that cannot be read")]
    Shape(#[source] serde_json::Error),
}

impl From<serde_json::Error> for AdminCause {
    fn from(error: serde_json::Error) -> Self {
        if error.is_io() { Self::Exchange(io::Error::from(error).into()) } else { Self::Shape(error) }
    }
}
