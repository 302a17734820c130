//! A worker's connections to a database. None is closed for being idle; the most recently used one is used
//! next. They are opened one after the other, on demand, so that a database that is down is not flooded.

use super::connection::{Connection, Target};
use super::error::QueryError;
use super::message::Command;
use super::response::Response;
use std::cell::RefCell;
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

/// How long an operation waits for a database that is down to come back.
const SELECTION_TIMEOUT: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after a connection could not be opened.
const REOPEN_INTERVAL: Duration = Duration::from_millis(500);

pub(super) struct Pool {
    target: Target,
    idle: RefCell<Vec<Connection>>,
    /// One permit per connection that may exist: an operation holds one, and opens a connection only if none
    /// is idle.
    permits: Semaphore,
    opening: Mutex<()>,
    failure: RefCell<Option<Failure>>,
}

/// The last attempt to open a connection, if it failed.
struct Failure {
    at: Instant,
    cause: String,
}

impl Pool {
    pub(super) fn new(target: Target, max_connections: usize) -> Self {
        Self {
            target,
            idle: RefCell::default(),
            permits: Semaphore::new(max_connections),
            opening: Mutex::default(),
            failure: RefCell::default(),
        }
    }

    /// Runs a command on an idle connection, or a new one.
    pub(super) async fn run(&self, command: &Command) -> Result<Response, QueryError> {
        let _permit = self.permits.acquire().await.expect("it is never closed");
        let mut connection = match self.idle() {
            Some(connection) => connection,
            None => self.open().await?,
        };
        let response = connection.run(command).await;
        // A refusal is a whole response; after any other error the stream is in an unknown state.
        if matches!(response, Ok(_) | Err(QueryError::Refused(_))) {
            self.idle.borrow_mut().push(connection);
        }
        response
    }

    fn idle(&self) -> Option<Connection> {
        loop {
            let mut connection = self.idle.borrow_mut().pop()?;
            if connection.is_usable() {
                return Some(connection);
            }
        }
    }

    async fn open(&self) -> Result<Connection, QueryError> {
        let deadline = Instant::now() + SELECTION_TIMEOUT;
        let Ok(_turn) = timeout_at(deadline, self.opening.lock()).await else {
            return Err(self.unsent());
        };
        loop {
            if let Some(connection) = self.idle() {
                return Ok(connection);
            }
            let again = self.failure.borrow().as_ref().map(|failure| failure.at + REOPEN_INTERVAL);
            if let Some(again) = again {
                sleep_until(again.min(deadline)).await;
                if again >= deadline {
                    return Err(self.unsent());
                }
            }
            let opened = timeout(CONNECT_TIMEOUT, Connection::open(&self.target)).await;
            let cause = match opened {
                Ok(Ok(connection)) => {
                    *self.failure.borrow_mut() = None;
                    return Ok(connection);
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no connection within {CONNECT_TIMEOUT:?}"),
            };
            *self.failure.borrow_mut() = Some(Failure { at: Instant::now(), cause });
        }
    }

    fn unsent(&self) -> QueryError {
        let failure = self.failure.borrow();
        let cause = failure.as_ref().map(|failure| failure.cause.clone());
        QueryError::Unsent(cause.unwrap_or_else(|| format!("no connection within {SELECTION_TIMEOUT:?}")))
    }
}
