//! Lifecycle of one simulated proxy: connect, stay connected, reconnect.

use crate::backoff::Backoff;
use crate::spec::Security;
use crate::stream::Stream;
use crate::target::ResolvedTarget;
use crate::transport::{Ending, EndingKind, Link, Route};
use crate::worker::{LinkSpec, Worker};
use crate::xds::{ProxySpec, Session};
use rustls::ClientConfig;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::time::{Instant, sleep_until};

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
    source: Option<IpAddr>,
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
    async fn unless_ordered<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        poll_fn(|context| match self.poll_order(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => future.as_mut().poll(context).map(Some),
        })
        .await
    }
}

/// Runs a proxy until its thread's event loop ends.
pub(crate) async fn live(worker: Rc<Worker>, place: usize, start: Instant) {
    let proxy = &worker.proxies[place];
    let mut backoff = Backoff::new(worker.settings.backoff, worker.settings.seed ^ proxy.link as u64);
    // Boxed, so that a settled proxy holds no memory for waits.
    proxy.unless_ordered(Box::pin(sleep_until(start))).await;
    for attempt in 0.. {
        while proxy.cut_off.get() {
            poll_fn(|context| proxy.poll_order(context)).await;
        }
        let ended = connection(&worker, proxy, attempt, &mut backoff).await;
        worker.ended(proxy, &ended);
        if let Ended::Ordered = ended {
            proxy.connecting_since.set(None);
        } else {
            let next = Instant::now() + backoff.next();
            proxy.unless_ordered(Box::pin(sleep_until(next))).await;
        }
    }
}

/// One connection, from its first packet to its end.
async fn connection(worker: &Worker, proxy: &Proxy, attempt: usize, backoff: &mut Backoff) -> Ended {
    let began = std::time::Instant::now();
    proxy.connecting_since.set(proxy.connecting_since.get().or(Some(began)));
    let target = worker.target_for(proxy, attempt);
    match proxy.unless_ordered(Box::pin(open_link(worker, proxy, &target))).await {
        None => Ended::Ordered,
        Some(Err(ending)) => {
            forget_certificate(worker, proxy, &target, &ending);
            Ended::By(ending)
        }
        Some(Ok(link)) => {
            let mut stream = Stream::new(worker, proxy, &target, link, began, backoff);
            let ended = poll_fn(|context| stream.poll(context)).await;
            if let Ended::By(ending) = &ended {
                forget_certificate(worker, proxy, &target, ending);
            }
            ended
        }
    }
}

/// Drops a certificate that the control plane rejects, so that another is requested.
fn forget_certificate(worker: &Worker, proxy: &Proxy, target: &ResolvedTarget, ending: &Ending) {
    let refused = matches!(ending.kind, EndingKind::Tls | EndingKind::CertificateExpired);
    if target.security == Security::MutualTls && refused {
        worker.certificates.forget(target, &proxy.spec);
    }
}

async fn open_link(worker: &Worker, proxy: &Proxy, target: &ResolvedTarget) -> Result<Link, Ending> {
    let timeout = worker.settings.connect_timeout;
    let open = async {
        let tls = tls_config(worker, proxy, target).await?;
        let route = Route {
            address: target.socket_address,
            source: proxy.source,
            server_name: &target.server_name,
            tls: tls.as_ref(),
        };
        Link::connect(&route).await
    };
    let silent = |_| Ending::new(EndingKind::ConnectTimeout, format!("no connection after {timeout:?}"));
    tokio::time::timeout(timeout, open).await.map_err(silent)?
}

async fn tls_config(
    worker: &Worker,
    proxy: &Proxy,
    target: &ResolvedTarget,
) -> Result<Option<Arc<ClientConfig>>, Ending> {
    match (target.security, &proxy.token) {
        (Security::MutualTls, Some(token)) => {
            let config = worker.certificates.config(target, &proxy.spec, token, &worker.buffer).await?;
            Ok(Some(config))
        }
        _ => Ok(target.tls.clone()),
    }
}
