//! Proof of a single edge by request bytes.

use crate::fixture::{CountedProxy, prove};
use experiment::environment::SentLoad;
use mesh::proof::{Evidence, RequestByteCounters, Seen};

/// Requests of 73 bytes.
fn sent(requests: u64) -> SentLoad {
    SentLoad { requests, request_bytes: Some(73.0) }
}

/// A proxy that counts request bytes and connections.
fn ztunnel(added_to: bool, bytes: u64, connections: u64) -> CountedProxy {
    ztunnel_of(added_to, true, bytes, connections)
}

fn ztunnel_of(added_to: bool, multiplexed: bool, bytes: u64, connections: u64) -> CountedProxy {
    let names = ("bytes".to_owned(), "connections".to_owned());
    let seen = Seen::RequestBytes(RequestByteCounters {
        bytes: names.0.clone(),
        response_bytes: "responses".to_owned(),
        connections: names.1.clone(),
        added_to,
        multiplexed,
    });
    let evidence = Evidence { handshakes: Some(names.1.clone()), tls_expected: true, ..Evidence::new(seen) };
    let before = [(names.0.clone(), 7), (names.1.clone(), 7)].into();
    let after = [(names.0, 7 + bytes), (names.1, 7 + connections)].into();
    CountedProxy { name: "ztunnel".to_owned(), side: Some("client"), evidence, before, after: Ok(after) }
}

#[test]
fn number_of_requests_is_computed_from_bytes() {
    let exact = prove(&[ztunnel(false, 3000 * 73, 4)], &sent(3000), None);
    assert!(exact.proven, "{:?}", exact.reasons);
    assert_eq!((exact.proxies[0].requests_received, exact.proxies[0].tls_handshakes), (3000, 4));
    // A proxy before it added headers: there must be enough bytes, and a surplus means nothing.
    assert!(prove(&[ztunnel(true, 6000 * 73, 4)], &sent(3000), None).proven);
    // Overhead of the protocol at the beginning of each connection.
    assert!(prove(&[ztunnel(false, 3000 * 73 + 4 * 200, 4)], &sent(3000), None).proven);
}

/// An HTTP/1.1 connection has no other bytes: any number of connections hides no missing requests.
#[test]
fn http1_connections_add_no_overhead_bytes() {
    let with = |others: u64| prove(&[ztunnel_of(false, false, (3000 + others) * 73, 500)], &sent(3000), None);
    assert!(with(30).proven);
    assert_eq!(
        with(31).reasons,
        ["ztunnel at the client saw 1 requests more than were sent: something else uses this path"]
    );
    assert!(prove(&[ztunnel(false, 3031 * 73, 500)], &sent(3000), None).proven);
}

/// Over HTTP/2 the client sends window updates for the rest of a response, which are not requests.
#[test]
fn window_updates_are_not_counted_as_requests() {
    let bytes = 300 * 73 + 300 * 2 * 13;
    let answered = |response_bytes: u64| {
        let mut proxy = ztunnel(false, bytes, 1);
        proxy.after.as_mut().unwrap().insert("responses".to_owned(), response_bytes);
        prove(&[proxy], &sent(300), None).proven
    };
    assert!(answered(300 * (20 << 20)));
    assert!(!answered(300 * 1024));
}

#[test]
fn bytes_that_went_elsewhere_are_not_proven() {
    let reasons = |proxy: CountedProxy| prove(&[proxy], &sent(3000), None).reasons.join("\n");
    insta::assert_snapshot!(reasons(ztunnel(false, 0, 0)), @r"
    ztunnel at the client saw 0 of 3000 requests: traffic did not pass it
    ztunnel at the client completed no TLS handshake with its peer, though mutual TLS is claimed
    ");
    insta::assert_snapshot!(reasons(ztunnel(true, 2000 * 73, 3)), @"ztunnel at the client saw 2000 of 3000 requests: part of the traffic did not pass it");
    insta::assert_snapshot!(reasons(ztunnel(false, 4000 * 73, 4)), @"ztunnel at the client saw 906 requests more than were sent: something else uses this path");
    let unknown = SentLoad { request_bytes: None, ..sent(3000) };
    assert!(!prove(&[ztunnel(false, 3000 * 73, 4)], &unknown, None).proven);
}
