//! Memory, heaps and configuration of a deployment's components before and after the load.
//!
//! Nothing is read during the load. Configuration is read last, since a proxy's config dump takes memory; it
//! is kept with the logs. Readings that fail are recorded in the trial and do not invalidate it.

use super::kept_configuration::KeptConfiguration;
use crate::observe::Watched;
use crate::running::Proxy;
use experiment::environment::deploy::Footprint;
use experiment::environment::{ComponentMemory, error_chain};
use experiment::schema::{ProxyConfiguration, ProxyFootprint, ProxyHeap, Role};
use mesh::admin::AdminError;
use mesh::concurrent::side_by_side;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug, Default)]
pub(super) struct BeforeLoad {
    memory: BTreeMap<String, ComponentMemory>,
    heaps: BTreeMap<String, Result<Option<ProxyHeap>, String>>,
}

impl BeforeLoad {
    /// Reads everything now. Each proxy is listed once.
    pub fn read(proxies: &[&Proxy], watched: &[Watched]) -> Self {
        Self { memory: memory(watched), heaps: heaps(proxies) }
    }

    /// Reads everything again, after the load, except for `unresponsive` proxies (name and reason).
    pub fn complete(
        mut self,
        proxies: &[&Proxy],
        watched: &[Watched],
        unresponsive: &BTreeMap<&str, &str>,
        log_dir: &Path,
    ) -> BTreeMap<String, Footprint> {
        let memory_after = memory(watched);
        let of_proxies = side_by_side(proxies, |proxy| {
            let heap = ask(proxy, unresponsive, "its heap", || proxy.counters.heap());
            (heap, configuration(proxy, unresponsive, log_dir))
        });
        let mut footprints: BTreeMap<String, Footprint> = BTreeMap::new();
        for (name, after) in memory_after {
            let before = self.memory.get(&name);
            let footprint = Footprint {
                memory_before_load_bytes: before.and_then(ComponentMemory::bytes),
                memory_after_load_bytes: after.bytes(),
                memory_anonymous_before_load_bytes: before.and_then(|memory| memory.anonymous_bytes),
                memory_anonymous_after_load_bytes: after.anonymous_bytes,
                holdings: None,
            };
            footprints.insert(name, footprint);
        }
        for (proxy, (heap_after, configuration)) in proxies.iter().zip(of_proxies) {
            let mut held = ProxyFootprint::default();
            let heap_before = self.heaps.remove(&proxy.name);
            for (heap, place) in
                [(heap_before, &mut held.heap_before_load), (Some(heap_after), &mut held.heap_after_load)]
            {
                match heap {
                    Some(Ok(heap)) => *place = heap,
                    Some(Err(reason)) => held.unread.push(reason),
                    None => {}
                }
            }
            match configuration {
                Ok(configuration) => held.configuration = configuration,
                Err(reason) => held.unread.push(reason),
            }
            footprints.entry(proxy.name.clone()).or_default().holdings = Some(held);
        }
        footprints
    }
}

fn configuration(
    proxy: &Proxy,
    unresponsive: &BTreeMap<&str, &str>,
    log_dir: &Path,
) -> Result<Option<ProxyConfiguration>, String> {
    let mut kept = KeptConfiguration::new(&proxy.name, log_dir);
    let counted = ask(proxy, unresponsive, "its configuration", || proxy.counters.configuration(&mut kept));
    kept.end(counted.as_ref().err().map(String::as_str));
    counted
}

/// Memory of every component except the drivers, which exist only for the load.
fn memory(watched: &[Watched]) -> BTreeMap<String, ComponentMemory> {
    let others = watched.iter().filter(|watched| watched.role != Role::Generator);
    others.map(|watched| (watched.name.clone(), watched.memory())).collect()
}

fn heaps(proxies: &[&Proxy]) -> BTreeMap<String, Result<Option<ProxyHeap>, String>> {
    let none = BTreeMap::new();
    side_by_side(proxies, |proxy| {
        (proxy.name.clone(), ask(proxy, &none, "its heap", || proxy.counters.heap()))
    })
    .into_iter()
    .collect()
}

/// Queries a proxy unless it has died, was stopped or did not respond before: its status says more.
fn ask<T>(
    proxy: &Proxy,
    unresponsive: &BTreeMap<&str, &str>,
    what: &str,
    question: impl FnOnce() -> Result<T, AdminError>,
) -> Result<T, String> {
    let failed = || proxy.container.failed().map(|how| format!("it {how}"));
    if let Some(how) = failed() {
        return Err(how);
    }
    if let Some(reason) = unresponsive.get(proxy.name.as_str()) {
        return Err(format!("ask {} for {what}: not asked again: {reason}", proxy.name));
    }
    question().map_err(|error| failed().unwrap_or_else(|| error_chain(&error)))
}
