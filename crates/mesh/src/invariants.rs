//! Invariants of what proxies and control planes show of themselves, for fuzzing.

use crate::admin;
use crate::envoy;
use crate::envoy::hop::{Hop, Layer};
use crate::envoy::traffic::Traffic;
use crate::istio::configz::{ProcessedObject, missing};
use crate::istio::nack::{MAX_REASON_CHARS, first_nack};
use crate::istio::shown::clusters_and_endpoints;
use crate::istio::xds_status::{Connection, pending_ack};
use crate::lines::{MAX_LINE_BYTES, each_line};
use crate::ztunnel;
use experiment::Protocol;
use experiment::environment::Buckets;
use results::exposition::samples;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashSet};
use std::io::BufReader;

const CLUSTER: &str = "outbound|80||server";
const SECRETS: &str = ".SecretsConfigDump";

/// Counts and copies a configuration dump, and checks invariants: the copy is JSON without secrets and counts the same when it is
/// read again, and sizes are not beyond the dump. The first byte chooses the proxy.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_config_dump(input: &[u8]) {
    match input.split_first() {
        Some((kind, dump)) if kind % 2 == 0 => check_envoy_dump(dump),
        Some((_, dump)) => check_ztunnel_dump(dump),
        None => {}
    }
}

fn check_envoy_dump(dump: &[u8]) {
    let (mut copy, mut again) = (Vec::new(), Vec::new());
    let Ok(configuration) = envoy::footprint::count(dump, &mut copy) else { return };
    assert_eq!(configuration.dump_bytes, dump.len() as u64);
    assert!(configuration.size_bytes <= configuration.dump_bytes, "{configuration:?}");
    let copied = envoy::footprint::count(&*copy, &mut again).expect("a copy is a dump");
    assert_eq!(copy, again);
    assert!(copied.counts.clusters <= configuration.counts.clusters, "{copied:?} of {configuration:?}");
    let dump = read::<BTreeMap<String, Vec<Box<RawValue>>>>(&copy).expect("a copy has sections");
    for section in dump.values().flatten() {
        // A list has no key that could name a secret.
        let Some(section) = read::<BTreeMap<String, Box<RawValue>>>(section.get().as_bytes()) else {
            continue;
        };
        let kind = section.get("@type").and_then(|kind| read::<String>(kind.get().as_bytes()));
        let is_secret = kind.is_none_or(|kind| kind.is_empty() || kind.ends_with(SECRETS));
        assert!(!is_secret || section.len() <= 1, "{section:?}");
    }
}

fn check_ztunnel_dump(dump: &[u8]) {
    let _ = read::<ztunnel::state::Dump>(dump).map(|dump| dump.has_service("server", true));
    let mut copy = Vec::new();
    let Ok(configuration) = ztunnel::footprint::count(dump, &mut copy) else { return };
    assert_eq!(configuration.dump_bytes, dump.len() as u64);
    read::<IgnoredAny>(&copy).expect("a copy is JSON");
    let copied = ztunnel::footprint::count(&*copy, &mut Vec::new()).expect("a copy is a dump");
    assert_eq!(copied.counts.certificates, Some(0));
}

/// Reads the other pages of admin interfaces, and checks invariants: sums do not overflow, reasons are short, and what is found is
/// part of the page. The first byte chooses the page.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_admin_page(input: &[u8]) {
    let Some((page, bytes)) = input.split_first() else { return };
    let text = String::from_utf8_lossy(bytes);
    match page % 6 {
        0 => check_statistics(bytes),
        1 => {
            let found = clusters_and_endpoints(&text);
            assert!(found.len() <= 2 * text.lines().count() && found.iter().all(|name| text.contains(name)));
        }
        2 => {
            let counters = ztunnel::metrics::counters(&text);
            assert!(counters.len() <= 2 + 2 * samples(&text).count());
        }
        3 => check_log(bytes),
        4 => {
            let Some(connections) = read::<Vec<Connection>>(bytes) else { return };
            let pending = pending_ack(&connections, "client.mesh-1");
            assert!(pending.is_none_or(|pending| !pending.is_empty()));
        }
        _ => {
            let Some(processed) = read::<HashSet<ProcessedObject>>(bytes) else { return };
            // Fields that are skipped may hold what is not text.
            let Some(objects) = read::<Vec<Value>>(bytes) else { return };
            let foreign =
                |object: &&Value| object.get("apiVersion").is_none_or(|version| !version.is_string());
            assert!(missing(&processed, &objects).iter().all(|object| !foreign(object)));
        }
    }
}

fn check_statistics(page: &[u8]) {
    let hop = Hop::outbound(Layer::for_protocol(Protocol::Http1), 80, CLUSTER.to_owned());
    let traffic = Traffic::of_hop(&hop).expect("a proxy that reads requests");
    if let Some(statistics) = read::<admin::Statistics>(page) {
        let counters = statistics.into_counters();
        let counted = traffic.counted(&counters);
        assert!(counted.tls_connections <= counters.values().copied().fold(0, u64::saturating_add));
    }
    if let Some(statistics) = read(page) {
        let durations = traffic.timed(statistics);
        let all = durations.downstream.clone().and(&durations.upstream);
        assert!(all.count() >= durations.downstream.count());
        for buckets in [all.since(&durations.upstream), all.since(&Buckets::default()), all] {
            let Some(duration) = buckets.duration() else { continue };
            assert!(duration.p50 <= duration.p99 && duration.p99.is_finite(), "{duration:?}");
        }
    }
}

fn check_log(bytes: &[u8]) {
    let mut lines = Vec::new();
    each_line(BufReader::with_capacity(7, bytes), |line| lines.push(line));
    assert!(lines.len() <= bytes.split(|byte| *byte == b'\n').count());
    // An invalid byte becomes a character of three.
    assert!(lines.iter().all(|line| line.len() <= 3 * MAX_LINE_BYTES));
    if let Some(nack) = first_nack(&lines) {
        assert!(nack.reason.chars().count() <= MAX_REASON_CHARS + 1, "{nack}");
    }
}

fn read<T: DeserializeOwned>(json: &[u8]) -> Option<T> {
    serde_json::from_slice(json).ok()
}
