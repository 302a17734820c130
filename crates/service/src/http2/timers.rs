//! Deadlines of one connection's requests, driven by the worker's timers.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Pending deadlines of one connection, nanoseconds since the start of the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    now_ns: u64,
    /// Distinguishes waits with the same deadline.
    next: u64,
    due: BTreeMap<(u64, u64), Waker>,
}

impl Timers {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all waits that are due.
    pub(crate) fn wake(&self, now_ns: u64) {
        let mut inner = self.inner();
        inner.now_ns = now_ns;
        while let Some(entry) = inner.due.first_entry()
            && entry.key().0 <= now_ns
        {
            entry.remove().wake();
        }
    }

    /// The earliest deadline.
    pub(crate) fn first_ns(&self) -> Option<u64> {
        self.inner().due.first_key_value().map(|((due_ns, _), _)| *due_ns)
    }

    /// Waits until this time.
    pub(crate) fn until(&self, due_ns: u64) -> Wait {
        Wait { timers: self.clone(), due_ns, entry: None }
    }

    /// Waits for this long from now.
    pub(crate) fn wait(&self, now_ns: u64, delay_ns: u64) -> Wait {
        self.until(now_ns.saturating_add(delay_ns))
    }
}

/// A pending wait; dropping it cancels it.
#[derive(Debug)]
pub(crate) struct Wait {
    timers: Timers,
    due_ns: u64,
    entry: Option<u64>,
}

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let timers = self.timers.clone();
        let mut inner = timers.inner();
        if self.due_ns <= inner.now_ns {
            return Poll::Ready(());
        }
        let entry = *self.entry.get_or_insert_with(|| {
            inner.next += 1;
            inner.next
        });
        inner.due.insert((self.due_ns, entry), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(entry) = self.entry {
            self.timers.inner().due.remove(&(self.due_ns, entry));
        }
    }
}
