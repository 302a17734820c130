//! When a run starts.

use jiff::Timestamp;
use std::sync::{Arc, OnceLock};

/// When the measured window of a run opens. Connections are opened and the warm-up runs before it.
#[derive(Clone, Debug, Default)]
pub enum Start {
    /// As soon as the connections are open and the warm-up is over.
    #[default]
    AtOnce,
    /// At an agreed instant by the wall clock, so that several generators measure the same time.
    At(Timestamp),
    /// The same, where the instant is agreed on once every generator has opened its connections
    /// ([`Progress::Ready`](crate::Progress::Ready)).
    OnSignal(StartSignal),
}

/// Tells a run that waits for it when to open its window. Clones are the same signal.
#[derive(Clone, Debug, Default)]
pub struct StartSignal(Arc<OnceLock<Timestamp>>);

impl StartSignal {
    /// Tells the instant. Only the first one counts.
    pub fn send(&self, start: Timestamp) {
        let _ = self.0.set(start);
    }

    pub(crate) fn received(&self) -> Option<Timestamp> {
        self.0.get().copied()
    }
}
