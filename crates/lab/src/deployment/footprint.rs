//! Memory, heaps and configuration of a deployment's components before and after the load.
//!
//! Nothing is read during the load. Configuration is read last, since a proxy's config dump takes memory; it
//! is kept with the logs. Readings that fail are recorded in the trial and do not invalidate it.

use super::kept_configuration::KeptConfiguration;
use crate::observe::Watched;
use crate::running::{Proxy, response_or_reason};
use experiment::environment::deploy::Footprint;
use experiment::environment::{ComponentMemory, error_chain};
use mesh::admin::AdminError;
use mesh::concurrent::side_by_side;
use results::{ProxyConfiguration, ProxyFootprint, ProxyHeap, Role};
use std::collections::BTreeMap;
use std::path::Path;

/// Proxies that did not respond before, and why.
type Unresponsive = BTreeMap<String, String>;
type Heaps = BTreeMap<String, Result<Option<ProxyHeap>, String>>;

/// Memory of each component, and heap of each proxy that reports it, at one moment.
#[derive(Debug, Default)]
pub(super) struct Held {
    memory: BTreeMap<String, ComponentMemory>,
    heaps: Heaps,
}

impl Held {
    /// Reads every component except the drivers, which exist only for the load. Each proxy is listed once;
    /// `unresponsive` ones (name and reason) are not queried.
    pub fn read(proxies: &[&Proxy], watched: &[Watched], unresponsive: &Unresponsive) -> Self {
        let others = watched.iter().filter(|watched| watched.role != Role::Generator);
        let memory = others.map(|watched| (watched.name.clone(), watched.memory())).collect();
        let heaps = side_by_side(proxies, |proxy| {
            (proxy.name.clone(), ask(proxy, unresponsive, "its heap", || proxy.counters.heap()))
        });
        Self { memory, heaps: heaps.into_iter().collect() }
    }

    /// Reads everything again, after the load, and the proxies' configuration.
    pub fn complete(
        mut self,
        proxies: &[&Proxy],
        watched: &[Watched],
        unresponsive: &Unresponsive,
        log_dir: &Path,
    ) -> BTreeMap<String, Footprint> {
        let mut after = Self::read(proxies, watched, unresponsive);
        let configurations = side_by_side(proxies, |proxy| configuration(proxy, unresponsive, log_dir));
        let footprint = |(name, after): (String, ComponentMemory)| {
            let before = self.memory.get(&name);
            let footprint = Footprint {
                memory_before_load_bytes: before.and_then(ComponentMemory::bytes),
                memory_after_load_bytes: after.bytes(),
                memory_anonymous_before_load_bytes: before.and_then(|memory| memory.anonymous_bytes),
                memory_anonymous_after_load_bytes: after.anonymous_bytes,
                holdings: None,
            };
            (name, footprint)
        };
        let mut footprints: BTreeMap<String, Footprint> = after.memory.into_iter().map(footprint).collect();
        for (proxy, configuration) in proxies.iter().zip(configurations) {
            let mut unread = Vec::new();
            let mut heap = |heaps: &mut Heaps| read_part(heaps.remove(&proxy.name)?, &mut unread);
            let held = ProxyFootprint {
                heap_before_load: heap(&mut self.heaps),
                heap_after_load: heap(&mut after.heaps),
                configuration: read_part(configuration, &mut unread),
                unread,
            };
            footprints.entry(proxy.name.clone()).or_default().holdings = Some(held);
        }
        footprints
    }
}

/// A part that was read; if it was not, the reason goes to `unread`.
fn read_part<T>(part: Result<Option<T>, String>, unread: &mut Vec<String>) -> Option<T> {
    part.unwrap_or_else(|reason| {
        unread.push(reason);
        None
    })
}

fn configuration(
    proxy: &Proxy,
    unresponsive: &Unresponsive,
    log_dir: &Path,
) -> Result<Option<ProxyConfiguration>, String> {
    let mut kept = KeptConfiguration::new(&proxy.name, log_dir);
    let counted = ask(proxy, unresponsive, "its configuration", || proxy.counters.configuration(&mut kept));
    kept.end(counted.as_ref().err().map(String::as_str));
    counted
}

/// Queries a proxy unless it has failed or did not respond before.
fn ask<T>(
    proxy: &Proxy,
    unresponsive: &Unresponsive,
    what: &str,
    question: impl FnOnce() -> Result<T, AdminError>,
) -> Result<T, String> {
    response_or_reason(&proxy.container, || match unresponsive.get(&proxy.name) {
        Some(reason) => Err(format!("ask {} for {what}: not asked again: {reason}", proxy.name)),
        None => question().map_err(|error| error_chain(&error)),
    })
}
