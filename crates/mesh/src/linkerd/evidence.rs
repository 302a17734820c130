//! Counters of Linkerd's proxies that prove the path of a call.

use super::metrics::{Counted, Inbound, Outbound, TAKEN_FROM_APPLICATION};
use crate::proof::{
    Count, Demand, Encrypted, Evidence, Forwarded, ProtocolCounters, RequestCounters, Seen, SideCounters,
    StreamCounters,
};
use experiment::Protocol;
use results::HopProtocol;

/// Stands in for counters that these proxies lack: they retry only on routes that runs do not create.
const NOTHING: &str = "none";

impl Outbound<'_> {
    /// Evidence at the caller's proxy. `is_encrypted`: the callee has a proxy too.
    pub fn evidence(&self, protocol: Protocol, is_encrypted: bool) -> Evidence {
        let evidence = of(self, protocol, TAKEN_FROM_APPLICATION, is_encrypted);
        if !protocol.is_http() {
            return evidence;
        }
        Evidence {
            forwarded: Some(Forwarded {
                requests: self.requests(),
                connections: self.connections(),
                failed_connections: NOTHING.to_owned(),
                errors: ["4xx", "5xx"].map(|kind| self.errors(kind)),
            }),
            encrypted: is_encrypted.then_some(Encrypted::Forwarded),
            ..evidence
        }
    }
}

impl Inbound {
    /// Evidence at the callee's proxy. `is_encrypted`: the caller has a proxy too.
    pub fn evidence(&self, protocol: Protocol, is_encrypted: bool) -> Evidence {
        of(self, protocol, &self.connections(), is_encrypted)
    }
}

/// `connections`: the counter of connections that requests arrive on.
fn of(end: &impl Counted, protocol: Protocol, connections: &str, is_encrypted: bool) -> Evidence {
    let (seen, counter, otherwise) = if protocol.is_http() {
        let seen = Seen::Requests(RequestCounters {
            requests: end.requests(),
            connections: connections.to_owned(),
            retries: NOTHING.to_owned(),
            traced: NOTHING.to_owned(),
            given_up: [NOTHING, NOTHING].map(str::to_owned),
        });
        let otherwise = "passed requests in plaintext, though mutual TLS is claimed";
        (seen, end.plain_requests(), otherwise)
    } else {
        let seen = Seen::Streams(StreamCounters {
            connections: end.connections(),
            received_bytes: end.received_bytes(),
            sent_bytes: end.sent_bytes(),
        });
        let otherwise = "passed connections in plaintext, though mutual TLS is claimed";
        (seen, end.plain_connections(), otherwise)
    };
    let in_plain_text = Demand { counter, rises: false, otherwise };
    // Covers inbound traffic only: the protocol between proxies is Linkerd's own choice and not checked.
    let versions = [(HopProtocol::Http1, "http/1"), (HopProtocol::Http2, "http/2")];
    let counters =
        versions.map(|(protocol, version)| (protocol, Count::Connections(end.connections_of(version))));
    let received = SideCounters { counters: counters.into(), ..SideCounters::default() };
    Evidence {
        handshakes: Some(end.encrypted_connections()),
        tls_expected: is_encrypted,
        protocols: ProtocolCounters { received, ..ProtocolCounters::default() },
        demands: is_encrypted.then_some(in_plain_text).into_iter().collect(),
        ..Evidence::new(seen)
    }
}
