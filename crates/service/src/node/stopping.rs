//! The end of connections when their node stops.

use tokio::sync::watch;

/// Signals a connection to finish.
#[derive(Debug)]
pub(crate) struct Stopping(pub watch::Receiver<bool>);

impl Stopping {
    /// Waits until idle connections should be closed.
    pub(crate) async fn closing(&mut self) {
        // The sender lives until all connections have ended.
        let _ = self.0.wait_for(|closing| *closing).await;
    }
}
