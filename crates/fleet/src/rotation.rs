//! Rotation of certificates: new ones are requested at once, and used by the next connections.

use crate::backoff::Backoff;
use crate::proxy::Proxy;
use crate::worker::Worker;
use std::rc::Rc;
use std::time::Instant;

/// Starts to request new certificates for some of a thread's proxies.
pub(crate) fn rotate<'a>(worker: &'a Rc<Worker>, change: usize, selected: impl Iterator<Item = &'a Proxy>) {
    let selected: Vec<_> = selected.collect();
    // All certificates are dropped before any is requested, so that proxies that share one share the new one.
    for proxy in &selected {
        worker.certificates.forget(&worker.target_for(proxy, 0), &proxy.spec);
    }
    for proxy in selected {
        tokio::task::spawn_local(request(Rc::clone(worker), change, proxy.place));
    }
}

/// Requests a certificate until the authority signs one.
async fn request(worker: Rc<Worker>, change: usize, place: usize) {
    let proxy = &worker.proxies[place];
    let target = worker.target_for(proxy, 0);
    let mut backoff = Backoff::new(worker.settings.backoff, worker.settings.seed ^ proxy.link as u64);
    let Some(token) = &proxy.token else { return };
    loop {
        match worker.certificates.config(&target, &proxy.spec, token, &worker.buffer).await {
            Ok(_) => {
                let mut core = worker.core.borrow_mut();
                return core.certified(change, proxy, Instant::now(), &worker.shared);
            }
            Err(ending) => {
                worker.core.borrow_mut().failed(proxy, &ending, &worker.shared);
                tokio::time::sleep(backoff.next()).await;
            }
        }
    }
}
