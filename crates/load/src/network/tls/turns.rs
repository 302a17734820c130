//! TLS settings of the connections of a thread, in turn.

use rustls::ClientConfig;
use std::sync::Arc;

/// Settings that differ in the client's certificate, in the form of a network.
pub(crate) struct TlsTurns<C = Arc<ClientConfig>> {
    configs: Vec<C>,
    next: usize,
    threads: usize,
}

impl<C> TlsTurns<C> {
    /// The turns of one thread among several. `configs`: not empty.
    pub(crate) fn new(configs: Vec<C>, (thread, threads): (usize, usize)) -> Self {
        Self { configs, next: thread, threads }
    }

    /// The same turns with settings in another form; `None` if one has none.
    pub(in crate::network) fn in_form<F>(self, form: impl FnMut(C) -> Option<F>) -> Option<TlsTurns<F>> {
        let configs = self.configs.into_iter().map(form).collect::<Option<_>>()?;
        Some(TlsTurns { configs, next: self.next, threads: self.threads })
    }

    /// The settings of the next connection.
    pub(in crate::network) fn take(&mut self) -> &C {
        let config = &self.configs[self.next % self.configs.len()];
        self.next += self.threads;
        config
    }
}
