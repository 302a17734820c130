//! Counts connections to a database from the driver's events.

use crate::node::tally::CallTally;
use mongodb::event::cmap::CmapEvent;
use mongodb::event::sdam::SdamEvent;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Counts a connection of the pool from the attempt to open it, as proxies do.
pub(super) fn count_pooled(tally: &CallTally, event: &CmapEvent) {
    match event {
        CmapEvent::ConnectionCreated(_) => opened(tally),
        CmapEvent::ConnectionClosed(_) => closed(tally),
        _ => {}
    }
}

/// The driver's monitoring connection to the database. After a failed heartbeat, the next one opens another.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    is_open: AtomicBool,
}

impl Monitor {
    pub(super) fn count(&self, tally: &CallTally, event: &SdamEvent) {
        match event {
            SdamEvent::ServerHeartbeatStarted(_) if !self.is_open.swap(true, Relaxed) => opened(tally),
            SdamEvent::ServerHeartbeatFailed(_) if self.is_open.swap(false, Relaxed) => closed(tally),
            _ => {}
        }
    }
}

fn opened(tally: &CallTally) {
    tally.connections.add(1);
    tally.connections_open.fetch_add(1, Relaxed);
}

fn closed(tally: &CallTally) {
    tally.connections_open.fetch_sub(1, Relaxed);
}
