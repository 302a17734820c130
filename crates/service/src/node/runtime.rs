//! The runtime of one worker, confined to its thread.

use crate::server::{ServeError, kernel};
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::LocalOptions;
use tokio::task::spawn_local;

/// Runs a worker on its own runtime.
pub(crate) fn on_runtime(worker: impl Future<Output = io::Result<()>>) -> Result<(), ServeError> {
    let failed = |error| kernel("set up an event loop", error);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_io().enable_time().build_local(LocalOptions::default()).map_err(failed)?;
    let ended = runtime.block_on(worker).map_err(failed);
    // A hanging resolver must not block the shutdown.
    runtime.shutdown_background();
    ended
}

/// Watches a descriptor for readability; must be called within a runtime.
#[allow(unsafe_code)]
pub(crate) fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the result owns the descriptor, so it stays open and unchanged while it is watched.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    watched.map_err(io::Error::from)
}

/// Runs hyper's futures on the thread that created them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalExecutor;

impl<F: Future + 'static> hyper::rt::Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        spawn_local(async { drop(future.await) });
    }
}
