//! Marks in received resources.

use super::play::{Item, Play, cluster, delta, endpoints, named, static_cluster, world};
use crate::xds::{Mark, Presence, ProxyKind, ResourceType, XdsVariant};

use ResourceType::{Addresses, Authorizations, Clusters, Endpoints};

fn mark(resource_type: ResourceType, presence: Presence, resource: Option<&str>, needle: &str) -> Mark {
    let resource = resource.map(str::to_owned);
    Mark { resource_type, presence, resource, needle: needle.into() }
}

fn ztunnel() -> Play {
    let mut play = Play::new(ProxyKind::Ztunnel, XdsVariant::Delta);
    play.connect();
    play
}

fn pod(name: &str, content: &str) -> Item {
    named(Addresses, &format!("Kubernetes//Pod/shop/{name}"), content)
}

#[test]
fn content_arrives_in_resource_of_that_name() {
    let mut play = ztunnel();
    let meant = play.expect(mark(Addresses, Presence::Present, Some("/a"), "version-2"));
    let any = play.expect(mark(Addresses, Presence::Present, None, "version-2"));
    play.answer(delta(Addresses, "1", &[pod("a", "version-1"), pod("b", "version-2")], &[]));
    assert_eq!(play.arrived(), [any]);
    play.answer(delta(Addresses, "2", &[pod("a", "version-2")], &[]));
    assert_eq!(play.arrived(), [any, meant]);
    play.answer(delta(Addresses, "3", &[pod("a", "version-2")], &[]));
    assert_eq!(play.arrived(), [any, meant], "a mark arrives once");
}

#[test]
fn content_is_searched_for_in_its_type_only() {
    let mut play = ztunnel();
    let address = play.expect(mark(Addresses, Presence::Present, None, "needle"));
    let policy = play.expect(mark(Authorizations, Presence::Present, None, "needle"));
    play.answer(delta(Authorizations, "1", &[named(Authorizations, "shop/deny", "a needle")], &[]));
    assert_eq!(play.arrived(), [policy]);
    play.answer(delta(Addresses, "1", &[pod("a", "a needle")], &[]));
    assert_eq!(play.arrived(), [policy, address]);
}

#[test]
fn content_is_gone_with_or_from_its_resource() {
    let mut play = ztunnel();
    let a = play.expect(mark(Addresses, Presence::Gone, Some("/a"), "label"));
    let b = play.expect(mark(Addresses, Presence::Gone, Some("/b"), "label"));
    let c = play.expect(mark(Addresses, Presence::Gone, None, "shop/c"));
    play.answer(delta(Addresses, "1", &[pod("a", "label"), pod("b", "label")], &[]));
    assert_eq!(play.arrived(), []);
    play.answer(delta(Addresses, "2", &[pod("a", "none")], &["Kubernetes//Pod/shop/b"]));
    assert_eq!(play.arrived(), [a, b]);
    play.answer(delta(Addresses, "3", &[], &["Kubernetes//Pod/shop/c"]));
    assert_eq!(play.arrived(), [a, b, c]);
}

#[test]
fn empty_needle_matches_resource_itself() {
    let mut play = ztunnel();
    let arrives = play.expect(mark(Addresses, Presence::Present, Some("/a"), ""));
    let goes = play.expect(mark(Addresses, Presence::Gone, Some("/a"), ""));
    play.answer(delta(Addresses, "1", &[pod("b", "")], &[]));
    assert_eq!(play.arrived(), []);
    play.answer(delta(Addresses, "2", &[pod("a", "")], &[]));
    assert_eq!(play.arrived(), [arrives]);
    play.answer(delta(Addresses, "3", &[], &["Kubernetes//Pod/shop/a"]));
    assert_eq!(play.arrived(), [arrives, goes]);
}

#[test]
fn absence_from_whole_response_is_gone() {
    let mut play = Play::new(ProxyKind::Sidecar, XdsVariant::StateOfTheWorld);
    play.connect();
    let named = play.expect(mark(Clusters, Presence::Gone, Some("a"), ""));
    let content = play.expect(mark(Clusters, Presence::Gone, None, "needle"));
    play.answer(world(Clusters, "1", &[cluster("a", "needle")]));
    assert_eq!(play.arrived(), []);
    play.answer(world(Clusters, "2", &[static_cluster("b")]));
    assert_eq!(play.arrived(), [named, content]);
}

#[test]
fn absence_from_partial_response_is_not_gone() {
    let mut play = Play::new(ProxyKind::Sidecar, XdsVariant::StateOfTheWorld);
    play.connect();
    play.answer(world(Clusters, "1", &[cluster("a", ""), cluster("b", "")]));
    let gone = play.expect(mark(Endpoints, Presence::Gone, Some("a"), "10.0.0.2"));
    play.answer(world(Endpoints, "1", &[endpoints("b")]));
    assert_eq!(play.arrived(), []);
    play.answer(world(Endpoints, "2", &[named(Endpoints, "a", "10.0.0.3")]));
    assert_eq!(play.arrived(), [gone]);
}

#[test]
fn rejected_and_unexpected_content_does_not_arrive() {
    let mut play = ztunnel();
    let id = play.expect(mark(Addresses, Presence::Present, None, "needle"));
    play.marks.open(mark(Addresses, Presence::Present, None, "needle"));
    play.session.reject_next(Addresses);
    let requests = play.answer(delta(Addresses, "1", &[pod("a", "needle")], &[]));
    assert_eq!(requests, ["addresses ack:1 nack:rejected by the fleet's policy"]);
    assert_eq!((play.arrived(), play.session.held(Addresses)), (vec![], 0));
    play.answer(delta(Addresses, "2", &[pod("a", "needle")], &[]));
    assert_eq!(play.arrived(), [id]);
    let closed = play.expect(mark(Addresses, Presence::Present, None, "needle"));
    play.marks.close(closed);
    play.answer(delta(Addresses, "3", &[pod("a", "needle")], &[]));
    assert_eq!(play.arrived(), [id]);
}

/// Many marks are searched for by an automaton, few separately: both find the same, wherever the bytes are split.
#[test]
fn many_marks_are_found_also_across_pieces() {
    for (marks, piece) in [(5, 1), (5, 7), (40, 1), (40, 7), (40, usize::MAX)] {
        let mut play = ztunnel();
        play.piece = piece;
        // Each needle is a prefix of the next.
        let needle = |index: usize| "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"[..=index].to_owned();
        let expected: Vec<_> = (0..marks)
            .map(|index| play.expect(mark(Addresses, Presence::Present, Some("/a"), &needle(index))))
            .collect();
        let last = marks - 1;
        play.answer(delta(Addresses, "1", &[pod("a", &needle(last - 1)), pod("b", &needle(last))], &[]));
        assert_eq!(play.arrived(), expected[..last], "{marks} marks in pieces of {piece}");
        play.answer(delta(Addresses, "2", &[pod("a", &needle(last))], &[]));
        assert_eq!(play.arrived(), expected);
    }
}

/// The end of one resource and the beginning of the next do not match a needle together.
#[test]
fn needle_does_not_straddle_resources() {
    let mut play = ztunnel();
    play.piece = 3;
    let items = [pod("a", "nee"), pod("b", "dle")];
    let body = delta(Addresses, "1", &items, &[]);
    let first = items[0].value.clone();
    let from = body.windows(first.len()).position(|window| window == first).expect("the first resource");
    let needle = body[from + first.len() - 2..from + first.len() + 40].to_vec();
    let marks = Mark { needle, ..mark(Addresses, Presence::Present, None, "") };
    play.expect(marks);
    play.answer(body);
    assert_eq!(play.arrived(), []);
}
