//! Protocol violations by a control plane.

use super::messages::{Any, DeltaDiscoveryResponse, Resource};
use super::play::{
    MESSAGE_LIMIT_BYTES, Play, cluster, delta, endpoints, named, routes, static_cluster, world,
};
use crate::xds::{ProxyKind, Receiver, ResourceType, StreamBroken, Violation, XdsVariant};
use prost::Message;
use std::time::Instant;

use ResourceType::{Clusters, Endpoints, Routes};

fn sidecar() -> Play {
    let mut play = Play::new(ProxyKind::Sidecar, XdsVariant::Delta);
    play.connect();
    play
}

#[test]
fn response_without_nonce_is_not_acknowledged() {
    let mut play = sidecar();
    assert_eq!(play.answer(delta(Clusters, "", &[static_cluster("a")], &[])), ["lds"]);
    assert_eq!(play.violations(), ["empty-nonce"]);
}

#[test]
fn repeated_nonce_is_violation() {
    let mut play = sidecar();
    for _ in 0..2 {
        play.answer(delta(Clusters, "c1", &[static_cluster("a")], &[]));
    }
    assert_eq!(play.violations(), ["repeated-nonce"]);
}

#[test]
fn unrequested_types_are_ignored() {
    let mut play = sidecar();
    assert!(play.answer(delta(Routes, "r1", &[routes("80")], &[])).is_empty());
    let mut unknown =
        DeltaDiscoveryResponse { type_url: "type.example/Thing".to_owned(), ..Default::default() };
    let resource = Some(Any { type_url: unknown.type_url.clone(), value: vec![1] });
    unknown.resources.push(Resource { name: "thing".to_owned(), resource, ..Default::default() });
    assert!(play.answer(unknown.encode_to_vec()).is_empty());
    assert_eq!(play.violations(), ["unrequested-type", "unknown-type"]);
}

#[test]
fn resource_of_another_type_is_rejected() {
    let mut play = sidecar();
    let requests = play.answer(delta(Clusters, "c1", &[static_cluster("a"), routes("80")], &[]));
    assert_eq!(requests, ["cds ack:c1 nack:a resource is not of the type of the response"]);
    assert_eq!((play.violations(), play.session.held(Clusters)), (vec!["mixed-types"], 0));
}

#[test]
fn undecodable_resource_is_rejected_and_stream_continues() {
    for piece in [1, 5, usize::MAX] {
        let mut play = sidecar();
        play.piece = piece;
        let mut broken = cluster("a", "");
        let length = broken.value.len();
        broken.value.truncate(length - 1);
        let requests = play.answer(delta(Clusters, "c1", &[broken, static_cluster("b")], &[]));
        assert_eq!(requests, ["cds ack:c1 nack:a resource cannot be decoded"]);
        assert_eq!(play.violations(), ["undecodable-resource"]);
        assert_eq!(play.answer(delta(Clusters, "c2", &[static_cluster("b")], &[])), ["lds", "cds ack:c2"]);
    }
}

#[test]
fn rejection_in_state_of_the_world_keeps_version() {
    let mut play = Play::new(ProxyKind::Sidecar, XdsVariant::StateOfTheWorld);
    play.connect();
    play.answer(world(Clusters, "c1", &[static_cluster("b")]));
    let mut broken = cluster("a", "");
    broken.value.push(0x0a);
    let requests = play.answer(world(Clusters, "c2", &[broken]));
    assert_eq!(requests, ["cds version:v-c1 ack:c2 nack:a resource cannot be decoded"]);
    assert_eq!(play.session.held(Clusters), 1);
}

#[test]
fn nameless_and_duplicate_resources_are_rejected() {
    let mut play = sidecar();
    let requests = play.answer(delta(Clusters, "c1", &[named(Clusters, "", "")], &[]));
    assert_eq!(requests, ["cds ack:c1 nack:a resource has no name"]);
    let requests = play.answer(delta(Clusters, "c2", &[static_cluster("a"), static_cluster("a")], &[]));
    assert_eq!(requests, ["cds ack:c2 nack:a resource occurs twice"]);
    let requests = play.answer(delta(Clusters, "c3", &[static_cluster("a")], &["a"]));
    assert_eq!(requests, ["cds ack:c3 nack:a resource occurs twice"]);
    assert_eq!(play.violations(), ["missing-name", "duplicate-resource", "duplicate-resource"]);
}

#[test]
fn unsubscribed_resources_are_not_kept() {
    let mut play = sidecar();
    play.answer(delta(Clusters, "c1", &[cluster("a", "")], &[]));
    let requests = play.answer(delta(Endpoints, "e1", &[endpoints("a"), endpoints("b")], &[]));
    assert_eq!(requests, ["lds", "eds ack:e1"]);
    assert_eq!((play.violations(), play.session.held(Endpoints)), (vec!["unsubscribed-resource"], 1));
}

#[test]
fn invalid_response_bodies_break_stream() {
    let good = delta(Clusters, "c1", &[static_cluster("a")], &[]);
    let cut = good[..good.len() - 1].to_vec();
    for body in [
        cut,
        vec![0xff; 40],
        vec![0x0b],
        vec![0x00],
        b"\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01".to_vec(),
    ] {
        for piece in [1, usize::MAX] {
            let mut play = sidecar();
            play.piece = piece;
            assert_eq!(play.bytes(&body), Err(StreamBroken), "{body:?}");
            assert_eq!(play.violations(), ["undecodable-message"]);
            play.disconnect();
            assert_eq!(play.connect().len(), 1);
        }
    }
}

#[test]
fn body_of_wrong_length_breaks_stream() {
    let mut play = sidecar();
    let mut receiver = Receiver {
        store: &mut play.store,
        marks: &play.marks,
        events: &mut play.events,
        message_limit_bytes: MESSAGE_LIMIT_BYTES,
    };
    let at = Instant::now();
    assert_eq!(play.session.message_start(MESSAGE_LIMIT_BYTES + 1, &mut receiver), Err(StreamBroken));
    assert_eq!(play.session.message_start(2, &mut receiver), Ok(()));
    assert_eq!(play.session.receive(&[0; 3], at, &mut receiver), Err(StreamBroken));
    assert_eq!(play.session.message_start(2, &mut receiver), Ok(()));
    assert_eq!(play.session.message_end(at, &mut receiver, &mut play.out), Err(StreamBroken));
    assert_eq!(play.session.message_end(at, &mut receiver, &mut play.out), Err(StreamBroken));
    assert_eq!(play.violations(), ["message-too-large", "wrong-length", "wrong-length", "wrong-length"]);
}

#[test]
fn very_long_name_breaks_stream() {
    let mut play = sidecar();
    let body = delta(Clusters, "c1", &[static_cluster(&"a".repeat(100_000))], &[]);
    assert_eq!(play.bytes(&body), Err(StreamBroken));
}

#[test]
fn every_violation_and_type_has_unique_name() {
    let mut names: Vec<_> = Violation::ALL.iter().map(|violation| violation.name()).collect();
    names.extend(ResourceType::ALL.iter().map(|resource_type| resource_type.name()));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Violation::ALL.len() + ResourceType::ALL.len());
}
