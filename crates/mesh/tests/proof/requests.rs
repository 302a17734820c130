//! Proof of a single edge by the bytes of its requests.

use crate::fixture::{CountedProxy, prove};
use experiment::environment::SentLoad;
use mesh::proof::{Evidence, RequestByteCounters, Seen};

/// Requests of 73 bytes.
fn sent(requests: u64) -> SentLoad {
    SentLoad { requests, request_bytes: Some(73.0) }
}

/// A proxy that counts bytes, with these of requests, and connections.
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
fn bytes_show_how_many_requests_passed() {
    let exact = prove(&[ztunnel(false, 3000 * 73, 4)], &sent(3000), None);
    assert!(exact.proven, "{:?}", exact.reasons);
    assert_eq!((exact.proxies[0].requests_received, exact.proxies[0].tls_handshakes), (3000, 4));
    // A proxy before it added headers: there must be enough, and more says nothing.
    assert!(prove(&[ztunnel(true, 6000 * 73, 4)], &sent(3000), None).proven);
    // A protocol's own words at the beginning of each connection.
    assert!(prove(&[ztunnel(false, 3000 * 73 + 4 * 200, 4)], &sent(3000), None).proven);
}

/// A connection of HTTP/1.1 has nothing else on it: however many there are, they hide no request of others.
#[test]
fn connections_of_one_request_at_a_time_carry_requests_alone() {
    let with = |others: u64| prove(&[ztunnel_of(false, false, (3000 + others) * 73, 500)], &sent(3000), None);
    assert!(with(30).proven);
    assert_eq!(
        with(31).reasons,
        ["ztunnel at the client saw 1 requests more than were sent: something else uses this path"]
    );
    assert!(prove(&[ztunnel(false, 3031 * 73, 500)], &sent(3000), None).proven);
}

/// Over HTTP/2 the client makes room for the rest of an answer, which is no request.
#[test]
fn room_for_large_answers_is_no_request() {
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
fn bytes_that_went_elsewhere_are_no_proof() {
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
