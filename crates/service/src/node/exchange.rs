//! One request to the node, and how it is counted.

use super::tally::{Outcome, WorkerTally};
use crate::counters::{Progress, ProtocolTally, Tally};
use std::fmt;
use std::sync::Arc;

/// How a request is counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Http1,
    Http2,
    Grpc,
    Tcp,
}

impl Kind {
    pub(crate) fn tally(self, tally: &Tally) -> &ProtocolTally {
        match self {
            Self::Http1 => &tally.http1,
            Self::Http2 => &tally.http2,
            Self::Grpc => &tally.grpc,
            Self::Tcp => &tally.tcp,
        }
    }
}

/// A request from its start to the end of its response. If dropped before, it counts as failed or incomplete.
pub(crate) struct Exchange {
    tally: Arc<WorkerTally>,
    kind: Kind,
    progress: Progress,
    /// Memory that its script holds until the response.
    _held: Vec<Vec<u8>>,
}

impl Exchange {
    pub(crate) fn new(tally: &Arc<WorkerTally>, kind: Kind) -> Self {
        Self { tally: Arc::clone(tally), kind, progress: Progress::Receiving, _held: Vec::new() }
    }

    /// The request was read completely.
    pub(crate) fn received(&mut self) {
        let Self { kind, tally, progress, .. } = self;
        kind.tally(&tally.inbound).received(progress);
    }

    /// Holds memory until the response.
    pub(crate) fn hold(&mut self, held: Vec<Vec<u8>>) {
        self._held = held;
    }

    /// The outcome is known; the response has yet to be sent. `endpoint`: its index; `None` for an unknown
    /// endpoint.
    pub(crate) fn decided(&self, endpoint: Option<usize>, outcome: Outcome) {
        let tally = &self.tally;
        match endpoint {
            Some(endpoint) => tally.endpoints[endpoint][outcome as usize].add(1),
            None => tally.unknown.add(1),
        }
        if endpoint.is_some() && outcome == Outcome::Injected {
            tally.inbound.errors.add(1);
        }
    }

    /// The whole response was handed to the connection.
    pub(crate) fn answered(&mut self) {
        self.progress = Progress::Answered;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.kind.tally(&self.tally.inbound).ended(self.progress);
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("kind", &self.kind).field("progress", &self.progress).finish()
    }
}
