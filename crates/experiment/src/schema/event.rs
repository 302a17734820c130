//! What `meshmeter load --progress json` tells while it runs: one JSON object a line on standard error.

use super::load::SeriesPoint;
use serde::{Deserialize, Serialize};

/// An event of a run of the generator.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum LoadEvent {
    /// The agreed instant of the start is awaited.
    Waiting,
    /// Connections are being opened.
    Connecting,
    /// They are open, and the instant of the start is awaited.
    Ready,
    /// The schedule has started; nothing is measured yet.
    WarmingUp,
    /// The measured window has just opened.
    WindowOpened,
    /// A second of the window is over.
    Second(SeriesPoint),
    /// The measured window has just closed; answers on their way are still awaited.
    WindowClosed,
}
