//! Idle connections to one callee. They are never closed for being idle; the most recently used one is used
//! next.

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
    /// Wakes the task that drops connections closed by callees.
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

    /// Returns a connection to the pool. Wakes no task: the connection's next event reaches the sweeper.
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

/// Drops closed connections while polled.
async fn sweep(idle: Rc<Idle>) {
    poll_fn(|context| {
        idle.sweeper.replace(Some(context.waker().clone()));
        idle.connections.borrow_mut().retain(|connection| connection.poll_idle(context));
        Poll::<()>::Pending
    })
    .await;
}
