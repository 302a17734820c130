//! Readiness of a node: it listens, and the collections that it reads are filled.

use super::worker::Worker;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::sleep;

/// Interval between attempts to fill the collections.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Readiness(Mutex<Option<String>>);

impl Default for Readiness {
    fn default() -> Self {
        Self(Mutex::new(Some("collections are being filled".to_owned())))
    }
}

impl Readiness {
    /// Why the node is not ready; `None` if it is.
    pub(crate) fn reason(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, reason: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }
}

/// Retries filling the collections until it succeeds.
pub(crate) async fn fill(worker: Rc<Worker>, readiness: Arc<Readiness>) {
    while let Err(failure) = worker.databases.fill().await {
        readiness.set(Some(failure.0));
        sleep(RETRY_INTERVAL).await;
    }
    readiness.set(None);
}
