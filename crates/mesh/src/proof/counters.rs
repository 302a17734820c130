//! Counters of a proxy that tell of the path, by what each of them counts.

use super::delta::counter;
use super::service::CountedService;
use experiment::environment::SentLoad;
use experiment::schema::{HopProtocol, ProxyProof, StreamProof};

/// Bytes of a request for the service's counters and of its response, heads included, at most: the service counts them
/// among its own. Where there is little traffic they weigh more than a response.
pub const COUNTERS_REQUEST_BYTES: u64 = 1024;

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
    pub(super) fn beside_requests(&self, proof: &ProxyProof, sent: &SentLoad) -> u64 {
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

/// Counters of what an Envoy sends on through the cluster of the path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Forwarded {
    /// Requests, those that were sent again among them.
    pub requests: String,
    /// Connections that it opened.
    pub connections: String,
    /// Those of them that never came about.
    pub failed_connections: String,
    /// Requests that were answered with an error, by the proxy itself or by those behind it.
    pub errors: [String; 2],
}

impl Forwarded {
    /// What the connection manager with this prefix sends on through this cluster.
    #[must_use]
    pub fn through(connection_manager: &str, cluster: &str) -> Self {
        Self {
            errors: ["4xx", "5xx"].map(|kind| format!("http.{connection_manager}.downstream_rq_{kind}")),
            requests: format!("cluster.{cluster}.upstream_rq_total"),
            connections: format!("cluster.{cluster}.upstream_cx_total"),
            failed_connections: format!("cluster.{cluster}.upstream_cx_connect_fail"),
        }
    }
}

/// The connections each of which must have completed a handshake, where mutual TLS is claimed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Encrypted {
    /// Those that the load came on.
    Received,
    /// Those that it was sent on by.
    Forwarded,
}

/// Where a proxy counts what it speaks with its neighbours.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ProtocolCounters {
    /// With the one nearer to the client.
    pub received: SideCounters,
    /// With the one nearer to the server.
    pub forwarded: SideCounters,
    /// Where it tells gRPC from what else HTTP/2 carries; absent where it does not.
    pub grpc: Option<GrpcCounters>,
}

/// Counters by which a proxy that reads requests knows those of gRPC.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GrpcCounters {
    /// Requests of gRPC.
    pub requests: String,
    /// All that came by HTTP/2.
    pub of_http2: String,
}

/// The same for one of its sides.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SideCounters {
    /// Protocol to be spoken there; absent if nothing is.
    pub expected: Option<HopProtocol>,
    /// The counter of each protocol.
    pub counters: Vec<(HopProtocol, Count)>,
    /// The counter of connections by HBONE; absent where it speaks none, or does not count them apart.
    pub hbone: Option<Count>,
}

/// A counter of what is spoken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Count {
    /// Of requests: those of the trial count.
    Requests(String),
    /// Of connections: all that there ever were count.
    Connections(String),
}

impl ProtocolCounters {
    /// Where an Envoy counts it that reads requests.
    #[must_use]
    pub fn l7(
        connection_manager: &str,
        cluster: &str,
        received: HopProtocol,
        forwarded: HopProtocol,
    ) -> Self {
        let requests = |version: &str| format!("http.{connection_manager}.downstream_rq_{version}_total");
        Self {
            received: SideCounters {
                expected: Some(received),
                counters: of_versions(|version| Count::Requests(requests(version))),
                hbone: None,
            },
            forwarded: SideCounters {
                expected: Some(forwarded),
                counters: of_versions(|version| Count::Connections(connections_to(cluster, version))),
                hbone: None,
            },
            grpc: Some(GrpcCounters {
                requests: format!("cluster.{cluster}.grpc.total"),
                of_http2: requests("http2"),
            }),
        }
    }

    /// Where an Envoy counts it that carries connections to this cluster.
    #[must_use]
    pub fn l4(cluster: &str) -> Self {
        let carried = Count::Connections(format!("tcp.{cluster}.downstream_cx_total"));
        let received = SideCounters {
            expected: Some(HopProtocol::Tcp),
            counters: vec![(HopProtocol::Tcp, carried)],
            hbone: None,
        };
        let mut forwarded = received.clone();
        forwarded
            .counters
            .extend(of_versions(|version| Count::Connections(connections_to(cluster, version))));
        Self { received, forwarded, grpc: None }
    }

    /// All counters.
    #[cfg(test)]
    pub fn counters(&self) -> impl Iterator<Item = &str> {
        let of_grpc = self.grpc.iter().flat_map(|grpc| [grpc.requests.as_str(), &grpc.of_http2]);
        self.received.counters().chain(self.forwarded.counters()).chain(of_grpc)
    }
}

/// A counter for each version of HTTP, by Envoy's word for it.
fn of_versions(count: impl Fn(&str) -> Count) -> Vec<(HopProtocol, Count)> {
    [(HopProtocol::Http1, "http1"), (HopProtocol::Http2, "http2"), (HopProtocol::Http3, "http3")]
        .map(|(protocol, version)| (protocol, count(version)))
        .into()
}

fn connections_to(cluster: &str, version: &str) -> String {
    format!("cluster.{cluster}.upstream_cx_{version}_total")
}

impl SideCounters {
    /// All counters.
    #[cfg(test)]
    fn counters(&self) -> impl Iterator<Item = &str> {
        let counts = self.counters.iter().map(|(_, count)| count).chain(&self.hbone);
        counts.map(|count| match count {
            Count::Requests(name) | Count::Connections(name) => name.as_str(),
        })
    }
}

/// Counters of a proxy that carries connections unread.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StreamCounters {
    /// The connections that took the path.
    pub connections: String,
    /// Bytes from the client's side.
    pub received_bytes: String,
    /// Bytes to the client's side.
    pub sent_bytes: String,
}

impl StreamCounters {
    /// Those of Envoy's TCP proxy before this cluster. All of its filter chains that lead there count together.
    #[must_use]
    pub fn for_tcp_proxy(cluster: &str) -> Self {
        Self {
            connections: format!("tcp.{cluster}.downstream_cx_total"),
            received_bytes: format!("tcp.{cluster}.downstream_cx_rx_bytes_total"),
            sent_bytes: format!("tcp.{cluster}.downstream_cx_tx_bytes_total"),
        }
    }

    pub(super) fn read(&self, service: Option<&CountedService>, rise: impl Fn(&str) -> u64) -> StreamProof {
        StreamProof {
            connections: rise(&self.connections),
            connections_expected: service.map_or(0, |service| service.proof().connections),
            received_bytes: rise(&self.received_bytes),
            sent_bytes: rise(&self.sent_bytes),
        }
    }

    /// Whether the proxy has counted what the service has.
    pub(super) fn hold(&self, service: &CountedService, rise: &impl Fn(&str) -> u64) -> bool {
        let served = service.proof();
        rise(&self.connections) >= served.connections
            && rise(&self.received_bytes) + COUNTERS_REQUEST_BYTES >= served.received_bytes
            && rise(&self.sent_bytes) + COUNTERS_REQUEST_BYTES >= served.sent_bytes
    }
}
