//! The counters of Linkerd's proxies that prove the path of a call.

use super::metrics::{Counted, Inbound, Outbound, TAKEN_FROM_APPLICATION};
use crate::proof::{
    Count, Demand, Encrypted, Evidence, Forwarded, ProtocolCounters, RequestCounters, Seen, SideCounters,
};
use experiment::schema::HopProtocol;

/// In place of what such a proxy does not count: its retries are of routes that runs do not write.
const NOTHING: &str = "none";

impl Outbound<'_> {
    /// Evidence at the caller's proxy. `is_encrypted`: the callee has a proxy too.
    pub fn evidence(&self, is_encrypted: bool) -> Evidence {
        Evidence {
            handshakes: Some(self.encrypted_connections()),
            tls_expected: is_encrypted,
            forwarded: Some(Forwarded {
                requests: self.requests(),
                connections: self.connections(),
                failed_connections: NOTHING.to_owned(),
                errors: ["4xx", "5xx"].map(|kind| self.errors(kind)),
            }),
            encrypted: is_encrypted.then_some(Encrypted::Forwarded),
            ..of(self, TAKEN_FROM_APPLICATION.to_owned(), is_encrypted)
        }
    }
}

impl Inbound {
    /// Evidence at the callee's proxy. `is_encrypted`: the caller has a proxy too.
    pub fn evidence(&self, is_encrypted: bool) -> Evidence {
        Evidence {
            handshakes: Some(self.encrypted_connections()),
            tls_expected: is_encrypted,
            ..of(self, self.connections(), is_encrypted)
        }
    }
}

fn of(end: &impl Counted, connections: String, is_encrypted: bool) -> Evidence {
    let in_plain_text = Demand {
        counter: end.plain_requests(),
        rises: false,
        otherwise: "passed requests in plain text, though mutual TLS is claimed",
    };
    // Of what comes in. Linkerd's own choice of what proxies speak with each other is not asked for.
    let versions = [(HopProtocol::Http1, "http/1"), (HopProtocol::Http2, "http/2")];
    let counters =
        versions.map(|(protocol, version)| (protocol, Count::Connections(end.connections_of(version))));
    let received = SideCounters { counters: counters.into(), ..SideCounters::default() };
    Evidence {
        protocols: ProtocolCounters { received, ..ProtocolCounters::default() },
        demands: is_encrypted.then_some(in_plain_text).into_iter().collect(),
        ..Evidence::new(Seen::Requests(RequestCounters {
            requests: end.requests(),
            connections,
            retries: NOTHING.to_owned(),
            traced: NOTHING.to_owned(),
            given_up: [NOTHING, NOTHING].map(str::to_owned),
        }))
    }
}
