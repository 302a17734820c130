//! Lifecycle of one simulated proxy: connect, stay connected, reconnect.

use crate::backoff::Backoff;
use crate::proxy::{Ended, Proxy};
use crate::spec::Security;
use crate::stream::Stream;
use crate::target::ResolvedTarget;
use crate::transport::{Ending, EndingKind, Link, Route};
use crate::worker::Worker;
use rustls::ClientConfig;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use tokio::time::{Instant, sleep_until};

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
