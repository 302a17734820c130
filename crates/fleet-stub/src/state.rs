//! State shared by all connections of a stub.

use crate::configuration::Configuration;
use crate::counts::Counts;
use crate::resources::Resource;
use crate::watched::WriteLog;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use tokio::sync::watch;

/// A change of the configuration.
#[derive(Clone, Debug)]
pub enum Change {
    /// Adds a resource or replaces the one of the same name.
    Put {
        /// Type of the resource.
        type_url: &'static str,
        /// The resource.
        resource: Resource,
    },
    /// Removes a resource.
    Remove {
        /// Type of the resource.
        type_url: &'static str,
        /// Name of the resource.
        name: String,
    },
}

/// A change that has been applied to the configuration.
#[derive(Debug)]
pub(crate) struct AppliedChange {
    /// Index of the type.
    pub position: usize,
    /// Index of the resource within its type.
    pub place: usize,
    pub name: String,
    pub removed: bool,
}

#[derive(Debug)]
struct Current {
    configuration: Arc<Configuration>,
    changes: Vec<Arc<AppliedChange>>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub counts: Counts,
    /// Log of writes that contain marks; absent if they are not logged.
    pub log: Option<Arc<WriteLog>>,
    /// Token that clients must send, if any.
    pub token: Option<String>,
    current: RwLock<Current>,
    /// Number of changes so far.
    changed: watch::Sender<usize>,
    /// Incremented to close all connections.
    disconnected: watch::Sender<u64>,
}

impl State {
    pub fn new(configuration: Configuration, token: Option<String>, log: Option<Arc<WriteLog>>) -> Self {
        Self {
            counts: Counts::default(),
            log,
            token,
            current: RwLock::new(Current { configuration: Arc::new(configuration), changes: Vec::new() }),
            changed: watch::Sender::new(0),
            disconnected: watch::Sender::new(0),
        }
    }

    /// Changes the configuration and wakes all streams.
    pub fn change(&self, change: Change) -> Result<(), String> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let (type_url, name, resource) = match change {
            Change::Put { type_url, resource } => (type_url, resource.name.clone(), Some(resource)),
            Change::Remove { type_url, name } => (type_url, name, None),
        };
        let removed = resource.is_none();
        let (position, place) = Arc::make_mut(&mut current.configuration).set(type_url, &name, resource)?;
        current.changes.push(Arc::new(AppliedChange { position, place, name, removed }));
        let number = current.changes.len();
        drop(current);
        self.changed.send_replace(number);
        Ok(())
    }

    /// The configuration, and its changes after the first `seen`.
    pub fn current(&self, seen: usize) -> (Arc<Configuration>, Vec<Arc<AppliedChange>>) {
        let current = self.read();
        (Arc::clone(&current.configuration), current.changes[seen..].to_vec())
    }

    /// The configuration, and its number of changes.
    pub fn start(&self) -> (Arc<Configuration>, usize) {
        let current = self.read();
        (Arc::clone(&current.configuration), current.changes.len())
    }

    pub fn changes(&self) -> watch::Receiver<usize> {
        self.changed.subscribe()
    }

    pub fn disconnects(&self) -> watch::Receiver<u64> {
        self.disconnected.subscribe()
    }

    pub fn disconnect(&self) {
        self.disconnected.send_modify(|number| *number += 1);
    }

    fn read(&self) -> RwLockReadGuard<'_, Current> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }
}
