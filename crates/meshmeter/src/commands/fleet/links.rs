//! Link failures: every tenth proxy is cut off for a while, and a change is made in the meantime. If the
//! environment provided source addresses, it drops the packets of those proxies; otherwise the fleet closes
//! their connections.

use super::changes::{Changing, CutOff, Written};
use super::state::FleetRunner;
use experiment::settings::fleet::ChangeKind;
use fleet::{ChangeId, Selection};
use results::FleetAsk;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// One in this many proxies is cut off.
const CUT_OFF_EVERY: usize = 10;
const DOWN_DURATION: Duration = Duration::from_secs(5);
/// Names listed in the timeline's event.
const MAX_NAMES: usize = 20;

fn places(runner: &FleetRunner<'_>) -> impl Iterator<Item = usize> {
    (0..runner.settings.proxies).step_by(CUT_OFF_EVERY)
}

/// Source addresses of the proxies that can be cut off.
pub(super) fn source_addresses(runner: &FleetRunner<'_>) -> BTreeMap<usize, IpAddr> {
    let addresses = runner.args.proxies.source_address.iter().copied().map(IpAddr::V4).cycle();
    places(runner).zip(addresses).collect()
}

pub(super) fn cut(changing: &Changing<'_>, number: usize) -> Result<Vec<ChangeId>, String> {
    let addresses = changing.runner.args.proxies.source_address.clone();
    let kind = ChangeKind::EndpointAdded;
    let cut_off = if addresses.is_empty() {
        let places = places(changing.runner).collect();
        Some(changing.fleet.cut_off(ChangeKind::LinkDown.name(), Selection::Proxies(places)))
    } else {
        changing.ask(FleetAsk::LinkDown { addresses: addresses.clone() })?;
        None
    };
    // A connection may survive the dropped packets, so these proxies are identified by what they miss.
    let dropped = CutOff { cause: ChangeKind::LinkDown.name(), places: places(changing.runner).collect() };
    let dropped = cut_off.is_none().then_some(&dropped);
    let meanwhile = changing.write_while(kind, kind.name(), dropped);
    changing.rest_until(Instant::now() + DOWN_DURATION);
    if let Ok(written) = &meanwhile {
        note_missing(changing, &written.changes);
    }
    match cut_off {
        Some(cut_off) => changing.fleet.restore(cut_off),
        None => _ = changing.ask(FleetAsk::LinkUp { addresses })?,
    }
    match meanwhile {
        Ok(Written { changes, catching_up }) => {
            changing.follow(number, kind.name(), &changes);
            Ok(cut_off.into_iter().chain(catching_up).collect())
        }
        Err(failure) => {
            changing.failed(kind.name(), failure);
            Ok(cut_off.into_iter().collect())
        }
    }
}

/// Lists the proxies that are cut off if the change has not reached all proxies.
fn note_missing(changing: &Changing<'_>, changes: &[ChangeId]) {
    let reached = changes.iter().map(|change| changing.fleet.reached(*change));
    let missing: u64 = reached.map(|waited| waited.expected - waited.reached).sum();
    if missing == 0 {
        return;
    }
    let proxies = changing.population.proxies();
    let names = places(changing.runner).take(MAX_NAMES).filter_map(|place| proxies.get(place));
    let names: Vec<String> = names.map(|proxy| format!("{}.{}", proxy.name, proxy.namespace)).collect();
    let detail = format!("{missing} proxies; cut off are {}", names.join(", "));
    changing.fleet.event("not-converged", detail);
}
