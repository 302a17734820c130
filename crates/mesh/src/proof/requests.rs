//! Proof of a path by requests: counted by a proxy that reads them, or made out of their bytes where one passes these on as
//! they were sent (ztunnel).
//!
//! Each proxy must have every request that the generator sent. Equality has its honest exceptions. A generator that is stopped
//! leaves at most one request on each connection that no proxy reads any more, so a few may be missing. And a proxy may
//! retry, as a mesh does, so the one behind it may see more, or give up, so that one may see fewer; both are counted too.
//! With bytes there is another: what a protocol says once on each connection. Behind a proxy that changes requests, as a waypoint does, there must only be enough bytes.

use super::{CountedProxy, counter};
use experiment::environment::SentLoad;
use experiment::schema::ProxyProof;

/// Missing requests are never forgiven beyond this share of all, or [`FORGIVEN_AT_LEAST`] where that is more:
/// one of many connections that went past a proxy must show.
const FORGIVEN_FRACTION: f64 = 0.01;
const FORGIVEN_AT_LEAST: u64 = 16;

/// What a connection of HTTP/2 carries beside requests (preface, settings and first headers), in requests.
const CONNECTION_IN_REQUESTS: u64 = 16;

/// HTTP/2 tells the sender of large answers that there is room for more, in frames of so many bytes.
const ROOM_FOR_MORE_BYTES: f64 = 13.0;
/// The generator does so after that many bytes of an answer: half of the room that it has for each.
const ROOM_FOR_MORE_AFTER_BYTES: f64 = (8 << 20) as f64;

/// Counters of a proxy that reads requests.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestCounters {
    /// The requests that arrived at the listener of the path.
    pub requests: String,
    /// The connections that they came on: each may leave one request unread.
    pub connections: String,
    /// The requests that this proxy sent again.
    pub retries: String,
    /// The requests that it chose to trace.
    pub traced: String,
    /// The requests that it gave up, since their route's time was over.
    pub given_up: [String; 2],
}

/// Counters of a proxy that does not read requests, but has their bytes as they were sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestByteCounters {
    /// Bytes from client to server.
    pub bytes: String,
    /// Bytes back.
    pub response_bytes: String,
    /// The connections that they came on.
    pub connections: String,
    /// Whether a proxy before it has added to them: then there must be enough, and more says nothing.
    pub added_to: bool,
    /// Whether the protocol says something of its own on each connection, as HTTP/2 does; others carry requests alone.
    pub multiplexed: bool,
}

impl RequestByteCounters {
    /// How many requests the bytes make.
    pub(super) fn requests(&self, rise: impl Fn(&str) -> u64, sent: &SentLoad) -> u64 {
        let Some(each) = sent.request_bytes.filter(|bytes| *bytes > 0.0) else { return 0 };
        let requests = (rise(&self.bytes) as f64 / each).round() as u64;
        if self.added_to { requests.min(sent.requests) } else { requests }
    }

    /// What came with the requests over these connections and is none, in requests.
    fn beside_requests(&self, proof: &ProxyProof, sent: &SentLoad) -> u64 {
        if !self.multiplexed {
            return 0;
        }
        let Some(each) = sent.request_bytes.filter(|bytes| *bytes > 0.0) else { return 0 };
        let told = counter(proof, &self.response_bytes) as f64 / ROOM_FOR_MORE_AFTER_BYTES;
        let room_for_more = (told * ROOM_FOR_MORE_BYTES / each) as u64;
        let said_once = CONNECTION_IN_REQUESTS * counter(proof, &self.connections);
        said_once.saturating_add(room_for_more)
    }
}

/// Why a proxy may have another number of requests than were sent: what those before it did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Explained {
    /// Requests that were sent again.
    pub retries: u64,
    /// Requests that were given up, and need not have come any further.
    pub given_up: u64,
}

impl Explained {
    /// Adds what this proxy did.
    pub fn add(&mut self, proof: &ProxyProof, counters: &RequestCounters) {
        self.retries += counter(proof, &counters.retries);
        self.given_up += counters.given_up.iter().map(|name| counter(proof, name)).sum::<u64>();
    }
}

/// Judges a proxy that reads requests, behind proxies that did this with them.
pub(super) fn judge_read(
    proxy: &CountedProxy,
    proof: &ProxyProof,
    counters: &RequestCounters,
    before: Explained,
    reasons: &mut Vec<String>,
) {
    judge_count(proxy, proof, counter(proof, &counters.connections), before, reasons);
}

/// The same for one that has their bytes.
pub(super) fn judge_bytes(
    proxy: &CountedProxy,
    proof: &ProxyProof,
    counters: &RequestByteCounters,
    before: Explained,
    sent: &SentLoad,
    reasons: &mut Vec<String>,
) {
    let connections = counter(proof, &counters.connections);
    let beside = counters.beside_requests(proof, sent);
    let none_of_them = beside.saturating_add(most_forgiven(proof.requests_expected));
    let explained = Explained { retries: before.retries.saturating_add(none_of_them), ..before };
    judge_count(proxy, proof, connections, explained, reasons);
}

fn judge_count(
    proxy: &CountedProxy,
    proof: &ProxyProof,
    connections: u64,
    explained: Explained,
    reasons: &mut Vec<String>,
) {
    let (name, received, expected) = (proxy.called(), proof.requests_received, proof.requests_expected);
    let forgiven = forgiven(expected, connections);
    // Whatever explains that some are missing: a proxy that saw nothing proves nothing.
    if (received == 0 && expected > 0) || received + forgiven + explained.given_up < expected {
        let manner =
            if received == 0 { "traffic did not pass it" } else { "part of the traffic did not pass it" };
        reasons.push(format!("{name} saw {received} of {expected} requests: {manner}"));
    } else if received > expected + explained.retries {
        let surplus = received - expected - explained.retries;
        reasons.push(format!(
            "{name} saw {surplus} requests more than were sent: something else uses this path"
        ));
    }
}

/// How many of these requests may be missing at whoever took them on so many connections.
pub(super) fn forgiven(expected: u64, connections: u64) -> u64 {
    connections.min(most_forgiven(expected))
}

pub(super) fn most_forgiven(expected: u64) -> u64 {
    ((expected as f64 * FORGIVEN_FRACTION) as u64).max(FORGIVEN_AT_LEAST)
}

#[cfg(test)]
mod tests {
    use super::super::{CountedProxy, Evidence, Seen, prove};
    use super::*;

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
        let evidence =
            Evidence { handshakes: Some(names.1.clone()), tls_expected: true, ..Evidence::of(seen) };
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
        let with =
            |others: u64| prove(&[ztunnel_of(false, false, (3000 + others) * 73, 500)], &sent(3000), None);
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
}
