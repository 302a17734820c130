//! Counters of a proxy that show the path, grouped by what they count.

use experiment::environment::SentLoad;
use results::{HopProtocol, ServiceProof, StreamProof};

/// Maximum bytes of the request for the service's counters and of its response, headers included. The service
/// counts them too. With little traffic they may outweigh a response.
pub const COUNTERS_REQUEST_BYTES: u64 = 1024;
/// Size of the HTTP/2 preface, settings and first headers of a connection, in requests.
const CONNECTION_IN_REQUESTS: u64 = 16;
/// Size of a WINDOW_UPDATE frame of HTTP/2.
const WINDOW_UPDATE_BYTES: f64 = 13.0;
/// Bytes of a response after which the generator sends one: half of its window.
const WINDOW_UPDATE_AFTER_BYTES: f64 = (8 << 20) as f64;

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestCounters {
    pub requests: String,
    /// Connections, each of which may leave one request unread.
    pub connections: String,
    pub retries: String,
    pub traced: String,
    /// Given up because their route's timeout had expired.
    pub given_up: [String; 2],
}

/// Counters of a proxy that does not read requests but forwards their bytes unchanged.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestByteCounters {
    pub bytes: String,
    pub response_bytes: String,
    pub connections: String,
    /// True if a proxy before it adds bytes: there must be enough, and a surplus means nothing.
    pub added_to: bool,
    /// True if the protocol adds bytes of its own on each connection, as HTTP/2 does.
    pub multiplexed: bool,
}

impl RequestByteCounters {
    pub(super) fn requests(&self, rise: impl Fn(&str) -> u64, sent: &SentLoad) -> u64 {
        let Some(each) = sent.request_bytes.filter(|bytes| *bytes > 0.0) else { return 0 };
        let requests = (rise(&self.bytes) as f64 / each).round() as u64;
        if self.added_to { requests.min(sent.requests) } else { requests }
    }

    pub(super) fn beside_requests(&self, rise: impl Fn(&str) -> u64, sent: &SentLoad) -> u64 {
        let each = sent.request_bytes.filter(|bytes| self.multiplexed && *bytes > 0.0);
        let Some(each) = each else { return 0 };
        let told = rise(&self.response_bytes) as f64 / WINDOW_UPDATE_AFTER_BYTES;
        let window_updates = (told * WINDOW_UPDATE_BYTES / each) as u64;
        CONNECTION_IN_REQUESTS * rise(&self.connections) + window_updates
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Forwarded {
    /// Includes retries.
    pub requests: String,
    pub connections: String,
    pub failed_connections: String,
    /// Requests answered with an error, by the proxy itself or by an upstream.
    pub errors: [String; 2],
}

impl Forwarded {
    pub fn through(connection_manager: &str, cluster: &str) -> Self {
        Self {
            errors: ["4xx", "5xx"].map(|kind| format!("http.{connection_manager}.downstream_rq_{kind}")),
            requests: format!("cluster.{cluster}.upstream_rq_total"),
            connections: format!("cluster.{cluster}.upstream_cx_total"),
            failed_connections: format!("cluster.{cluster}.upstream_cx_connect_fail"),
        }
    }
}

/// The connections that must each complete a handshake if mutual TLS is claimed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Encrypted {
    Received,
    Forwarded,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ProtocolCounters {
    pub received: SideCounters,
    pub forwarded: SideCounters,
    /// Absent if the proxy does not distinguish gRPC from other HTTP/2.
    pub grpc: Option<GrpcCounters>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GrpcCounters {
    pub requests: String,
    pub of_http2: String,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SideCounters {
    /// Absent if nothing is expected.
    pub expected: Option<HopProtocol>,
    pub counters: Vec<(HopProtocol, Count)>,
    /// Connections over HBONE; absent if there are none, or they are not counted separately.
    pub hbone: Option<Count>,
}

impl SideCounters {
    fn new(expected: HopProtocol, counters: Vec<(HopProtocol, Count)>) -> Self {
        Self { expected: Some(expected), counters, hbone: None }
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Count {
    /// Counts the increase during the trial.
    Requests(String),
    /// Counts the total since the proxy's start.
    Connections(String),
}

impl ProtocolCounters {
    pub fn l7(
        connection_manager: &str,
        cluster: &str,
        received: HopProtocol,
        forwarded: HopProtocol,
    ) -> Self {
        let requests = |version: &str| format!("http.{connection_manager}.downstream_rq_{version}_total");
        Self {
            received: SideCounters::new(received, of_versions(|version| Count::Requests(requests(version)))),
            forwarded: SideCounters::new(forwarded, connections_to(cluster)),
            grpc: Some(GrpcCounters {
                requests: format!("cluster.{cluster}.grpc.total"),
                of_http2: requests("http2"),
            }),
        }
    }

    pub fn l4(cluster: &str) -> Self {
        let carried = Count::Connections(format!("tcp.{cluster}.downstream_cx_total"));
        let received = SideCounters::new(HopProtocol::Tcp, vec![(HopProtocol::Tcp, carried)]);
        let mut forwarded = received.clone();
        forwarded.counters.extend(connections_to(cluster));
        Self { received, forwarded, grpc: None }
    }
}

/// A counter per HTTP version, by Envoy's name for the version.
fn of_versions(count: impl Fn(&str) -> Count) -> Vec<(HopProtocol, Count)> {
    [(HopProtocol::Http1, "http1"), (HopProtocol::Http2, "http2"), (HopProtocol::Http3, "http3")]
        .map(|(protocol, version)| (protocol, count(version)))
        .into()
}

fn connections_to(cluster: &str) -> Vec<(HopProtocol, Count)> {
    of_versions(|version| Count::Connections(format!("cluster.{cluster}.upstream_cx_{version}_total")))
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StreamCounters {
    pub connections: String,
    pub received_bytes: String,
    pub sent_bytes: String,
}

impl StreamCounters {
    /// Envoy's TCP proxy to this cluster, over all of its filter chains.
    pub fn for_tcp_proxy(cluster: &str) -> Self {
        Self {
            connections: format!("tcp.{cluster}.downstream_cx_total"),
            received_bytes: format!("tcp.{cluster}.downstream_cx_rx_bytes_total"),
            sent_bytes: format!("tcp.{cluster}.downstream_cx_tx_bytes_total"),
        }
    }

    pub(super) fn read(&self, passing: Option<&ServiceProof>, rise: impl Fn(&str) -> u64) -> StreamProof {
        StreamProof {
            connections: rise(&self.connections),
            connections_expected: passing.map_or(0, |passing| passing.connections),
            received_bytes: rise(&self.received_bytes),
            sent_bytes: rise(&self.sent_bytes),
        }
    }

    pub(super) fn hold(&self, passing: &ServiceProof, rise: &impl Fn(&str) -> u64) -> bool {
        rise(&self.connections) >= passing.connections
            && rise(&self.received_bytes) + COUNTERS_REQUEST_BYTES >= passing.received_bytes
            && rise(&self.sent_bytes) + COUNTERS_REQUEST_BYTES >= passing.sent_bytes
    }
}
