//! What the components of an arrangement hold before the load and after it.
//!
//! Nothing is asked between the two: the window stays as it is. Afterwards memory comes first, then the proxies' own
//! account of their heaps, and their configuration last, since telling of it takes memory: it is read once, counted and
//! kept with the trial's logs. Whatever cannot be read is said in the trial and spoils nothing else of it.

use super::kept_configuration::KeptConfiguration;
use super::started::Proxy;
use crate::envoy::admin::AdminError;
use crate::observe::Watched;
use experiment::environment::{ComponentMemory, in_one_line};
use experiment::schema::{ComponentUsage, ProxyConfiguration, ProxyHeap, ProxyHoldings, Role};
use std::collections::BTreeMap;
use std::path::Path;

/// What was read before the load.
#[derive(Debug, Default)]
pub(super) struct BeforeLoad {
    memory: BTreeMap<String, ComponentMemory>,
    heaps: BTreeMap<String, Result<Option<ProxyHeap>, String>>,
}

impl BeforeLoad {
    /// Reads everything now; each proxy is listed once.
    pub fn read(proxies: &[&Proxy], watched: &[Watched]) -> Self {
        Self { memory: memory(watched), heaps: heaps(proxies) }
    }

    /// Reads everything again, after the load, and writes it to the components that it is of. The configurations are
    /// kept in the folder, whether or not there are components.
    pub fn complete(
        self,
        proxies: &[&Proxy],
        watched: &[Watched],
        components: &mut [ComponentUsage],
        log_dir: &Path,
    ) {
        let memory_after = memory(watched);
        let mut heaps_after = heaps(proxies);
        let Self { memory: memory_before, heaps: mut heaps_before } = self;
        for usage in components.iter_mut() {
            let (before, after) = (memory_before.get(&usage.name), memory_after.get(&usage.name));
            usage.memory_before_load_bytes = before.and_then(ComponentMemory::bytes);
            usage.memory_after_load_bytes = after.and_then(ComponentMemory::bytes);
            usage.memory_anonymous_before_load_bytes = before.and_then(|memory| memory.anonymous_bytes);
            usage.memory_anonymous_after_load_bytes = after.and_then(|memory| memory.anonymous_bytes);
        }
        for proxy in proxies {
            let mut held = ProxyHoldings::default();
            for (heaps, place) in [
                (&mut heaps_before, &mut held.heap_before_load),
                (&mut heaps_after, &mut held.heap_after_load),
            ] {
                match heaps.remove(&proxy.name) {
                    Some(Ok(heap)) => *place = heap,
                    Some(Err(reason)) => held.unread.push(reason),
                    None => {}
                }
            }
            match configuration(proxy, log_dir) {
                Ok(configuration) => held.configuration = configuration,
                Err(reason) => held.unread.push(reason),
            }
            if let Some(usage) = components.iter_mut().find(|usage| usage.name == proxy.name) {
                usage.holdings = Some(held);
            }
        }
    }
}

/// Its configuration, counted and kept.
fn configuration(proxy: &Proxy, log_dir: &Path) -> Result<Option<ProxyConfiguration>, String> {
    let mut kept = KeptConfiguration::new(&proxy.name, log_dir);
    let counted = ask(proxy, || proxy.counters.configuration(&mut kept));
    kept.end(counted.as_ref().err().map(String::as_str));
    counted
}

/// Of every component but the generator, which is there only for the load.
fn memory(watched: &[Watched]) -> BTreeMap<String, ComponentMemory> {
    let others = watched.iter().filter(|watched| watched.role != Role::Generator);
    others.map(|watched| (watched.name.clone(), watched.memory())).collect()
}

fn heaps(proxies: &[&Proxy]) -> BTreeMap<String, Result<Option<ProxyHeap>, String>> {
    let heap = |proxy: &&Proxy| ask(proxy, || proxy.counters.heap());
    proxies.iter().map(|proxy| (proxy.name.clone(), heap(proxy))).collect()
}

/// What it answers. One that has died or stands still is not asked: its status says more than its silence.
fn ask<T>(proxy: &Proxy, question: impl FnOnce() -> Result<T, AdminError>) -> Result<T, String> {
    let failed = || proxy.container.failed().map(|how| format!("it {how}"));
    match failed() {
        Some(how) => Err(how),
        None => question().map_err(|error| failed().unwrap_or_else(|| in_one_line(&error))),
    }
}
