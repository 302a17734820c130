//! Memory usage of the resources that sessions hold.

use super::play::{Item, Play, cluster, delta, endpoints, http_listener, named, routes, spec};
use crate::xds::{ProxyKind, ResourceType, Session, XdsVariant};
use std::sync::Arc;

use ResourceType::{Addresses, Clusters, Endpoints, Listeners, Routes};

const CLUSTERS: usize = 1000;
const ROUTES: usize = 100;

fn name(index: usize) -> String {
    format!("outbound|8080||service-{index}.namespace-{}.svc.cluster.local", index % 10)
}

fn items(count: usize, item: impl Fn(&str) -> Item) -> Vec<Item> {
    (0..count).map(|index| item(&name(index))).collect()
}

/// Sends a session of the play a configuration of 2100 resources.
fn configure(play: &mut Play, endpoints_version: &str) {
    play.connect();
    play.answer(delta(Clusters, "c1", &items(CLUSTERS, |name| cluster(name, "")), &[]));
    let versioned = |name: &str| endpoints(name).version(endpoints_version);
    play.answer(delta(Endpoints, "e1", &items(CLUSTERS, versioned), &[]));
    let names: Vec<_> = (0..ROUTES).map(name).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    play.answer(delta(Listeners, "l1", &[http_listener("all", &names)], &[]));
    play.answer(delta(Routes, "r1", &items(ROUTES, routes), &[]));
    assert!(play.session.is_complete());
}

/// Memory per session beyond the first. `version` returns a session's version of endpoints.
fn memory_per_session(version: impl Fn(usize) -> String) -> usize {
    const SESSIONS: usize = 20;
    let mut play = Play::new(ProxyKind::Sidecar, XdsVariant::Delta);
    configure(&mut play, &version(0));
    let first = play.store.memory_bytes();
    let mut settled = Vec::new();
    for index in 1..=SESSIONS {
        let session = Session::new(Arc::new(spec(ProxyKind::Sidecar)), XdsVariant::Delta);
        settled.push(std::mem::replace(&mut play.session, session));
        configure(&mut play, &version(index));
    }
    let sessions: usize = settled.iter().map(Session::memory_bytes).sum();
    (sessions + play.store.memory_bytes() - first) / SESSIONS
}

#[test]
fn sessions_with_equal_resources_share_them() {
    let bytes = memory_per_session(|_| "1".to_owned());
    assert!(bytes <= 2 << 10, "{bytes} bytes per session");
}

#[test]
fn sessions_with_different_resources_stay_small() {
    let bytes = memory_per_session(|index| index.to_string());
    assert!(bytes <= 16 << 10, "{bytes} bytes per session");
}

#[test]
fn unused_names_are_freed() {
    let mut play = Play::new(ProxyKind::Ztunnel, XdsVariant::Delta);
    play.connect();
    let pods = |round: usize| -> Vec<_> { (0..100).map(|index| format!("pod-{round}-{index}")).collect() };
    let mut peak = 0;
    for round in 0..300 {
        let items: Vec<_> = pods(round).iter().map(|pod| named(Addresses, pod, "").version(pod)).collect();
        let removed = if round == 0 { Vec::new() } else { pods(round - 1) };
        let removed: Vec<_> = removed.iter().map(String::as_str).collect();
        play.answer(delta(Addresses, &round.to_string(), &items, &removed));
        peak = peak.max(play.store.memory_bytes());
    }
    assert!(peak < 2 << 20, "{peak} bytes for 60 000 names that came and went");
    assert_eq!(play.session.held(Addresses), 100);
    play.disconnect();
    let requests = play.connect();
    let held = requests[0].split("held:").nth(1).expect("versions that are held");
    let mut expected: Vec<_> = pods(299).iter().map(|pod| format!("{pod}={pod}")).collect();
    expected.sort();
    assert_eq!(held.split(' ').collect::<Vec<_>>(), expected);
}

/// A sweep keeps names that a message in flight has brought so far.
#[test]
fn names_of_message_being_read_are_kept() {
    let mut play = Play::new(ProxyKind::Ztunnel, XdsVariant::Delta);
    play.connect();
    let mut slow = Session::new(Arc::new(spec(ProxyKind::Ztunnel)), XdsVariant::Delta);
    std::mem::swap(&mut play.session, &mut slow);
    play.connect();
    let body = delta(Addresses, "1", &[named(Addresses, "slow", "").version("9")], &[]);
    let (head, rest) = body.split_at(body.len() - 5);
    play.with_receiver(|session, receiver, at| {
        session.message_start(body.len() as u64, receiver)?;
        session.receive(head, at, receiver)
    });
    std::mem::swap(&mut play.session, &mut slow);
    for round in 0..200 {
        let names: Vec<_> = (0..100).map(|index| format!("{round}-{index}")).collect();
        let items: Vec<_> = names.iter().map(|name| named(Addresses, name, "")).collect();
        let removed: Vec<_> = names.iter().map(String::as_str).collect();
        play.answer(delta(Addresses, &format!("add-{round}"), &items, &[]));
        play.answer(delta(Addresses, &format!("remove-{round}"), &[], &removed));
    }
    std::mem::swap(&mut play.session, &mut slow);
    play.with_receiver(|session, receiver, at| session.receive(rest, at, receiver));
    play.finish();
    play.disconnect();
    assert!(play.connect()[0].ends_with("held:slow=9"));
}
