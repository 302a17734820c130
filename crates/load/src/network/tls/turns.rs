//! TLS settings of the connections of a thread, in turn.

use rustls::ClientConfig;
use std::sync::Arc;

/// Settings that differ in the client's certificate.
pub(crate) struct TlsTurns {
    configs: Vec<Arc<ClientConfig>>,
    next: usize,
    threads: usize,
}

impl TlsTurns {
    /// The turns of one thread among several. `configs`: not empty.
    pub(crate) fn new(configs: Vec<Arc<ClientConfig>>, (thread, threads): (usize, usize)) -> Self {
        Self { configs, next: thread, threads }
    }

    /// The settings of the next connection.
    pub(super) fn take(&mut self) -> &Arc<ClientConfig> {
        let config = &self.configs[self.next % self.configs.len()];
        self.next += self.threads;
        config
    }
}
