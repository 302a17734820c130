//! Idle connections to one callee. They are never closed for idleness, and the one used last is used next.

use crate::node::stream::CountedStream;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tokio::task::spawn_local;

/// See the module. Clones share the connections.
#[derive(Clone, Default)]
pub(super) struct Pool(Rc<Idle>);

#[derive(Default)]
struct Idle {
    connections: RefCell<Vec<CountedStream>>,
    /// Wakes the task that drops connections which callees have closed.
    sweeper: RefCell<Option<Waker>>,
}

impl Pool {
    pub(super) fn take(&self) -> Option<CountedStream> {
        loop {
            let connection = self.0.connections.borrow_mut().pop()?;
            if !connection.is_stale() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection. Costs no wake: its next event finds the sweeper.
    pub(super) fn put(&self, connection: CountedStream) {
        let mut sweeper = self.0.sweeper.borrow_mut();
        let waker = sweeper.get_or_insert_with(|| {
            spawn_local(sweep(Rc::clone(&self.0)));
            Waker::noop().clone()
        });
        if connection.poll_idle(&mut Context::from_waker(waker)) {
            self.0.connections.borrow_mut().push(connection);
        }
    }
}

/// Drops connections that were closed, for as long as it is polled.
async fn sweep(idle: Rc<Idle>) {
    poll_fn(|context| {
        idle.sweeper.replace(Some(context.waker().clone()));
        idle.connections.borrow_mut().retain(|connection| connection.poll_idle(context));
        Poll::<()>::Pending
    })
    .await;
}
