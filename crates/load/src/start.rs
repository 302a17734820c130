//! When a run starts.

use jiff::Timestamp;
use std::sync::{Arc, OnceLock};

/// When the measured window of a run opens. Connections are opened and the warm-up runs before it.
#[derive(Clone, Debug, Default)]
pub enum Start {
    /// As soon as the connections are open and the warm-up is over.
    #[default]
    AtOnce,
    /// At an agreed wall-clock instant, so that several generators measure the same period.
    At(Timestamp),
    /// Like [`Start::At`], but the instant is agreed on once every generator has opened its connections
    /// ([`Progress::Ready`](crate::Progress::Ready)).
    OnSignal(StartSignal),
}

/// Signals a waiting run when to open its window. Clones share the same signal.
#[derive(Clone, Debug, Default)]
pub struct StartSignal(Arc<OnceLock<Timestamp>>);

impl StartSignal {
    /// Sets the instant. Only the first call counts.
    pub fn send(&self, start: Timestamp) {
        let _ = self.0.set(start);
    }

    pub(crate) fn received(&self) -> Option<Timestamp> {
        self.0.get().copied()
    }
}
