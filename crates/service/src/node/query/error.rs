//! Why an operation on a database failed.

use super::bson::Malformed;
use std::io;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub(super) enum QueryError {
    /// No connection could be opened: the operation was not sent.
    #[error("{0}")]
    Unsent(String),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the response is malformed: {0}")]
    Malformed(#[from] Malformed),
    #[error("no response within {0:?}")]
    TimedOut(Duration),
    /// By the database, in its words.
    #[error("{0}")]
    Refused(String),
}
