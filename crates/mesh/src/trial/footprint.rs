//! Memory, heaps and configuration of a deployment's components before and after the load.
//!
//! Nothing is read during the load. Configuration is read last, since a proxy's config dump takes memory; it
//! is kept with the logs. Readings that fail are recorded in the trial and do not invalidate it.

use super::kept_configuration::KeptConfiguration;
use super::place::{Place, RunningProxy};
use crate::admin::AdminError;
use crate::concurrent::side_by_side;
use experiment::environment::deploy::Footprint;
use experiment::environment::{ComponentMemory, error_chain};
use results::{ProxyConfiguration, ProxyFootprint, ProxyHeap};
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
    /// Reads every component except the drivers, which exist only for the load. `unresponsive` proxies (name and
    /// reason) are not queried.
    pub fn read(place: &impl Place, unresponsive: &Unresponsive) -> Self {
        let memory = place.memory();
        let heaps = side_by_side(place.proxies(), |proxy| {
            (proxy.name().to_owned(), ask(proxy, unresponsive, "its heap", || proxy.source().heap()))
        });
        Self { memory, heaps: heaps.into_iter().collect() }
    }

    /// Reads everything again, after the load, and the proxies' configuration.
    pub fn complete(
        mut self,
        place: &impl Place,
        unresponsive: &Unresponsive,
    ) -> BTreeMap<String, Footprint> {
        let mut after = Self::read(place, unresponsive);
        let (proxies, log_dir) = (place.proxies(), place.log_dir());
        let configurations = side_by_side(&proxies, |proxy| configuration(*proxy, unresponsive, log_dir));
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
            let mut heap = |heaps: &mut Heaps| read_part(heaps.remove(proxy.name())?, &mut unread);
            let held = ProxyFootprint {
                heap_before_load: heap(&mut self.heaps),
                heap_after_load: heap(&mut after.heaps),
                configuration: read_part(configuration, &mut unread),
                unread,
            };
            footprints.entry(proxy.name().to_owned()).or_default().holdings = Some(held);
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
    proxy: &dyn RunningProxy,
    unresponsive: &Unresponsive,
    log_dir: &Path,
) -> Result<Option<ProxyConfiguration>, String> {
    let mut kept = KeptConfiguration::new(proxy.name(), log_dir);
    let counted = ask(proxy, unresponsive, "its configuration", || proxy.source().configuration(&mut kept));
    kept.end(counted.as_ref().err().map(String::as_str));
    counted
}

/// Queries a proxy unless it has failed or did not respond before.
fn ask<T>(
    proxy: &dyn RunningProxy,
    unresponsive: &Unresponsive,
    what: &str,
    question: impl FnOnce() -> Result<T, AdminError>,
) -> Result<T, String> {
    proxy.response_or_reason(|| match unresponsive.get(proxy.name()) {
        Some(reason) => Err(format!("query {what} of {}: not repeated: {reason}", proxy.name())),
        None => question().map_err(|error| error_chain(&error)),
    })
}
