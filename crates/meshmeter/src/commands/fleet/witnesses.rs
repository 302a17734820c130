//! Real Envoys and ztunnels next to the fleet. Their update times for a change are reported beside the times
//! at which it arrived at the fleet's proxies.
//!
//! An Envoy exposes the time of its last update. A ztunnel counts messages by type: [`MessageWatch`] polls
//! the count.

use super::update_times;
use experiment::settings::fleet::ProxyKind;
use experiment::xds::ResourceType;
use fleet::{ChangeId, Fleet};
use mesh::admin::dial::TcpPort;
use mesh::admin::{Admin, AdminError};
use population::changes::Expected;
use results::FleetWitness;
use results::exposition::samples;
use statistics::witnesses::compare;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Once the whole fleet has received a change, a real proxy updates within milliseconds.
const UPDATE_TIMEOUT: Duration = Duration::from_secs(5);
/// An Envoy truncates times to milliseconds: on average half of one is missing.
const HALF_MS: f64 = 0.5;
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Poll interval for a ztunnel's counters while a change is awaited.
const COUNTER_INTERVAL: Duration = Duration::from_millis(2);

/// Page of a ztunnel's statistics, and its counter of messages from its control plane.
const STATISTICS_PATH: &str = "/stats/prometheus";
const MESSAGES: &str = "istio_xds_message_total";

type Types = BTreeSet<ResourceType>;

#[derive(Debug)]
pub(super) struct Witnesses {
    witnesses: Vec<Witness>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct Witness {
    address: String,
    kind: ProxyKind,
    statistics: Admin,
}

#[derive(Debug, Default)]
struct State {
    expected: BTreeMap<ChangeId, Awaited>,
    seen: Vec<FleetWitness>,
}

/// A change that witnesses are expected to receive.
#[derive(Debug)]
struct Awaited {
    kind: ProxyKind,
    /// Types of the changed resources.
    types: Types,
    /// Watches of ztunnels, by index among the witnesses.
    watches: BTreeMap<usize, MessageWatch>,
}

/// Thread that waits until a ztunnel has received messages of all types. Ends when dropped.
#[derive(Debug)]
struct MessageWatch {
    /// Milliseconds since 1970.
    received_ms: Arc<Mutex<Option<f64>>>,
    is_over: Arc<AtomicBool>,
}

impl Witness {
    fn new(address: &str) -> Self {
        let port = TcpPort { authority: address.to_owned() };
        let statistics = Admin::new(format!("witness {address}"), port);
        let is_ztunnel = messages(&statistics).is_ok_and(|messages| !messages.is_empty());
        let kind = if is_ztunnel { ProxyKind::Ztunnel } else { ProxyKind::Sidecar };
        Self { address: address.to_owned(), kind, statistics }
    }

    /// Waits for the update. Returns the time since the write in microseconds; `None` if a type was not
    /// updated in time.
    fn updated_since(&self, written_ms: f64, types: &Types, watch: Option<&MessageWatch>) -> Option<f64> {
        let give_up_at = Instant::now() + UPDATE_TIMEOUT;
        loop {
            let updated_ms = match watch {
                Some(watch) => watch.received_ms(),
                None => self.envoy_updated_ms(written_ms, types),
            };
            if let Some(updated_ms) = updated_ms {
                return Some((updated_ms - written_ms) * 1000.0);
            }
            if Instant::now() >= give_up_at {
                return None;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn envoy_updated_ms(&self, written_ms: f64, types: &Types) -> Option<f64> {
        let updates = update_times::read(&self.statistics).unwrap_or_default();
        let updated: Vec<u64> =
            types.iter().map(|of| updates.get(of.name()).copied()).collect::<Option<_>>()?;
        let is_over = updated.iter().all(|updated| *updated as f64 >= written_ms.floor());
        updated.into_iter().max().filter(|_| is_over).map(|last| last as f64 + HALF_MS)
    }
}

impl MessageWatch {
    /// Must be called before the change is written.
    fn start(statistics: &Admin, types: &Types) -> Option<Self> {
        let statistics = statistics.clone();
        let urls: Vec<&'static str> = types.iter().map(|of| of.url()).collect();
        let count = |messages: &BTreeMap<String, u64>, url: &str| messages.get(url).copied().unwrap_or(0);
        let before = messages(&statistics).ok()?;
        let watch = Self { received_ms: Arc::default(), is_over: Arc::default() };
        let (received_ms, is_over) = (Arc::clone(&watch.received_ms), Arc::clone(&watch.is_over));
        let poll = move || {
            let mut missing_at_ms = now_ms();
            while !is_over.load(Ordering::Relaxed) {
                thread::sleep(COUNTER_INTERVAL);
                let asked_at_ms = now_ms();
                let now = messages(&statistics).unwrap_or_default();
                if urls.iter().all(|url| count(&now, url) > count(&before, url)) {
                    let between = f64::midpoint(missing_at_ms, now_ms());
                    *received_ms.lock().unwrap_or_else(PoisonError::into_inner) = Some(between);
                    return;
                }
                missing_at_ms = asked_at_ms;
            }
        };
        thread::Builder::new().name("witness".to_owned()).spawn(poll).ok().map(|_| watch)
    }

    fn received_ms(&self) -> Option<f64> {
        *self.received_ms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for MessageWatch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Number of messages that a ztunnel has received, by type URL; empty if the program is not a ztunnel, or is not
/// connected.
fn messages(statistics: &Admin) -> Result<BTreeMap<String, u64>, AdminError> {
    Ok(messages_by_url(&String::from_utf8_lossy(&statistics.get_long(STATISTICS_PATH)?)))
}

fn messages_by_url(page: &str) -> BTreeMap<String, u64> {
    let messages = samples(page).filter(|sample| sample.name == MESSAGES);
    messages.filter_map(|sample| Some((sample.label("url")?.into_owned(), sample.value as u64))).collect()
}

fn now_ms() -> f64 {
    jiff::Timestamp::now().as_microsecond() as f64 / 1000.0
}

impl Witnesses {
    pub fn new(addresses: &[String]) -> Self {
        let witnesses = addresses.iter().map(|address| Witness::new(address));
        Self { witnesses: witnesses.collect(), state: Mutex::default() }
    }

    /// Records the resource types in which a change is expected. Called before the change is written.
    pub fn expect(&self, change: ChangeId, expected: &Expected) {
        let kind = expected.kind;
        let mut alike =
            self.witnesses.iter().enumerate().filter(|(_, witness)| witness.kind == kind).peekable();
        if alike.peek().is_none() {
            return;
        }
        let types: Types = expected.marks.iter().map(|mark| mark.resource_type).collect();
        let ztunnels = alike.filter(|(_, witness)| witness.kind == ProxyKind::Ztunnel);
        let watches = ztunnels
            .filter_map(|(place, witness)| Some((place, MessageWatch::start(&witness.statistics, &types)?)));
        let watches = watches.collect();
        self.state().expected.insert(change, Awaited { kind, types, watches });
    }

    /// Reads the witnesses' update times for a change that has reached the fleet.
    pub fn follow(&self, fleet: &Fleet, changes: &[ChangeId]) {
        for change in changes {
            let Some(Awaited { kind, types, watches }) = self.state().expected.remove(change) else {
                continue;
            };
            let Some(record) = fleet.change(*change).into_iter().next() else { continue };
            let written_ms = (fleet.started_at_unix_s() + record.at) * 1000.0;
            let convergence = &record.convergence_us;
            let alike = self.witnesses.iter().enumerate().filter(|(_, witness)| witness.kind == kind);
            for (place, witness) in alike {
                let watch = watches.get(&place);
                if kind == ProxyKind::Ztunnel && watch.is_none() {
                    continue;
                }
                let updated_us = witness.updated_since(written_ms, &types, watch);
                let compared = updated_us.and_then(|updated_us| compare(updated_us, convergence));
                self.state().seen.push(FleetWitness {
                    name: witness.address.clone(),
                    kind: record.kind.clone(),
                    at: record.at,
                    updated_us,
                    difference_us: compared.map(|compared| compared.outside_us),
                    later_us: compared.map(|compared| compared.later_us),
                    rank: compared.map(|compared| compared.rank),
                    nearest_us: compared.map(|compared| compared.nearest_us),
                });
            }
        }
    }

    pub fn finish(self) -> Vec<FleetWitness> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).seen
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_by_type() {
        let page = "# TYPE istio_xds_message counter\n\
                    istio_xds_message_total{url=\"type.googleapis.com/istio.workload.Address\"} 12\n\
                    istio_xds_message_bytes_total{url=\"type.googleapis.com/istio.workload.Address\"} 4096\n";
        let expected = BTreeMap::from([("type.googleapis.com/istio.workload.Address".to_owned(), 12)]);
        assert_eq!(messages_by_url(page), expected);
    }
}
