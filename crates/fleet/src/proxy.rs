//! One simulated proxy: its state, and the orders to end its connection.

use crate::transport::Ending;
use crate::xds::{ProxySpec, Session};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// A connection that a thread must keep up.
#[derive(Clone, Debug)]
pub(crate) struct LinkSpec {
    /// Index among the fleet's connections.
    pub(crate) link: usize,
    /// Index of the proxy in the fleet's spec.
    pub(crate) index: usize,
    /// Index of the target that its figures belong to.
    pub(crate) target: usize,
    pub(crate) proxy: Arc<ProxySpec>,
    pub(crate) token: Option<Arc<str>>,
    /// Local address to connect from; absent: any.
    pub(crate) source: Option<IpAddr>,
}

/// State of a proxy's connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// There is no connection.
    Down,
    /// The control plane's settings have arrived.
    Connected,
    /// The first complete configuration has arrived.
    Complete,
}

/// Cause of a connection's end.
pub(crate) enum Ended {
    /// The fleet was asked to end it.
    Ordered,
    By(Ending),
}

/// A proxy's connection to one target.
pub(crate) struct Proxy {
    /// Index among the fleet's connections.
    pub(crate) link: usize,
    /// Index in its thread.
    pub(crate) place: usize,
    /// Index in the fleet's spec.
    pub(crate) index: usize,
    /// Index of the target that its figures belong to.
    pub(crate) target: usize,
    pub(crate) spec: Arc<ProxySpec>,
    pub(crate) token: Option<Arc<str>>,
    /// Local address to connect from; absent: any.
    pub(crate) source: Option<IpAddr>,
    pub(crate) session: RefCell<Session>,
    pub(crate) phase: Cell<Phase>,
    /// Start of the first connection attempt since it last had a complete configuration; absent while it has one.
    pub(crate) connecting_since: Cell<Option<std::time::Instant>>,
    /// True once it has had a complete configuration.
    pub(crate) was_complete: Cell<bool>,
    /// True if the proxy stays disconnected until it is restored.
    pub(crate) cut_off: Cell<bool>,
    /// True if the connection should end.
    ordered: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Proxy {
    pub(crate) fn new(link: LinkSpec, place: usize, session: Session) -> Self {
        Self {
            link: link.link,
            place,
            index: link.index,
            target: link.target,
            spec: link.proxy,
            token: link.token,
            source: link.source,
            session: RefCell::new(session),
            phase: Cell::new(Phase::Down),
            connecting_since: Cell::new(None),
            was_complete: Cell::new(false),
            cut_off: Cell::new(false),
            ordered: Cell::new(false),
            waker: RefCell::new(None),
        }
    }

    /// Name of the proxy in messages.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.spec.name, self.spec.namespace)
    }

    /// Orders the end of the connection, or of the wait for the next attempt.
    pub(crate) fn order(&self) {
        self.ordered.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Ready once the connection should end.
    pub(crate) fn poll_order(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.ordered.take() {
            return Poll::Ready(());
        }
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        Poll::Pending
    }

    /// Completes a future unless an order comes first.
    pub(crate) async fn unless_ordered<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        poll_fn(|context| match self.poll_order(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => future.as_mut().poll(context).map(Some),
        })
        .await
    }
}
