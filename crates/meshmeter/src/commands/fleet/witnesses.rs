//! Real Envoys beside the fleet: when each updated its configuration for a change, by its own clock, beside the times at which
//! the change arrived at the proxies of the fleet.

use experiment::schema::FleetWitness;
use experiment::settings::fleet::ProxyKind;
use fleet::{ChangeId, Fleet};
use mesh::admin::Admin;
use mesh::admin::dial::TcpPort;
use mesh::envoy::update_times;
use population::changes::Expected;
use statistics::witnesses::compare;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// An Envoy that receives what the whole fleet has received updates within milliseconds.
const UPDATE_TIMEOUT: Duration = Duration::from_secs(5);
/// Times of update are cut to milliseconds: half of one is what they lack on average.
const HALF_MS: f64 = 0.5;
const POLL_INTERVAL: Duration = Duration::from_millis(50);

type Types = BTreeSet<&'static str>;

#[derive(Debug)]
pub(super) struct Witnesses {
    /// By address.
    statistics: Vec<(String, Admin)>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Types of the resources that change.
    expected: BTreeMap<ChangeId, Types>,
    seen: Vec<FleetWitness>,
}

impl Witnesses {
    pub fn new(addresses: &[String]) -> Self {
        let statistics = addresses.iter().map(|address| {
            let port = TcpPort { authority: address.clone() };
            (address.clone(), Admin::new(format!("witness {address}"), port))
        });
        Self { statistics: statistics.collect(), state: Mutex::default() }
    }

    /// Notes which types of resources a change is expected in.
    pub fn expect(&self, change: ChangeId, expected: &Expected) {
        if !self.statistics.is_empty() && expected.kind == ProxyKind::Sidecar {
            let types = expected.marks.iter().map(|mark| mark.resource_type.name()).collect();
            self.state().expected.insert(change, types);
        }
    }

    /// Reads when the witnesses updated for a change that has reached the fleet.
    pub fn follow(&self, fleet: &Fleet, changes: &[ChangeId]) {
        for change in changes {
            let Some(types) = self.state().expected.remove(change) else { continue };
            let Some(record) = fleet.change(*change).into_iter().next() else { continue };
            let written_ms = (fleet.started_at_unix_s() + record.at) * 1000.0;
            let convergence = &record.convergence_us;
            for (name, statistics) in &self.statistics {
                let updated_us = updated_since(statistics, written_ms, &types);
                let compared = updated_us.and_then(|updated_us| compare(updated_us, convergence));
                self.state().seen.push(FleetWitness {
                    name: name.clone(),
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

/// Time from the write until all types were updated, microseconds; absent if one was not in time.
fn updated_since(statistics: &Admin, written_ms: f64, types: &Types) -> Option<f64> {
    let give_up_at = Instant::now() + UPDATE_TIMEOUT;
    loop {
        let updates = update_times::read(statistics).unwrap_or_default();
        let of_types: Option<Vec<u64>> = types.iter().map(|of| updates.get(of).copied()).collect();
        let is_over = |updated: &u64| *updated as f64 >= written_ms.floor();
        if let Some(updated) = of_types.filter(|of_types| of_types.iter().all(is_over)) {
            return updated.into_iter().max().map(|last| (last as f64 + HALF_MS - written_ms) * 1000.0);
        }
        if Instant::now() >= give_up_at {
            return None;
        }
        thread::sleep(POLL_INTERVAL);
    }
}
