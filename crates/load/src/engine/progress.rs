//! The progress of a run, as its caller sees it.

use crate::second::Second;

/// Progress events of a run.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// Waiting for the agreed start time.
    Waiting,
    /// Opening connections.
    Connecting,
    /// Connections are open; waiting for the start signal: see [`Start::OnSignal`](crate::Start::OnSignal).
    Ready,
    /// The start signal came after the start: the run ends.
    StartMissed,
    /// The schedule has started; nothing is measured yet.
    WarmingUp,
    /// The measured window has opened.
    WindowOpened,
    /// A second is over. Every measured second is reported, in order; the last ones come after the end of the
    /// window.
    Second(&'a Second),
    /// The measured window has closed; responses to in-flight requests are still awaited.
    WindowClosed,
}

/// Receives the progress of a run, on the thread that called [`run`](crate::run).
pub trait Observer {
    /// Called per event. Should return soon, since it blocks the next event.
    fn progress(&mut self, progress: Progress<'_>);
}
