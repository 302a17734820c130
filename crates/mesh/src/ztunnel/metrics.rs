//! ztunnel's counters, from its `/metrics` (Prometheus' text format): connections and bytes, per side.
//!
//! A ztunnel on both sides of a connection counts it twice: as source (opened by the client's pod) and as
//! destination (arrived for the server's pod). Byte counters increase during a connection, not at its end.
//! They exclude the framing of HBONE and TLS, so they count the bytes that client and server exchange. Only
//! the labels of the two peers are kept; series that differ only in other labels are summed. A peer is
//! identified by its canonical service, its label `app`, which all replicas share. `*_workload` is the name
//! of the pod if no controller created it.

use results::exposition::{Sample, add_up};
use std::collections::BTreeMap;
use std::fmt;

/// The end of a connection at which it is counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    Source,
    Destination,
}

impl Side {
    const ALL: [Self; 2] = [Self::Source, Self::Destination];

    /// Counter of connections without TLS, between any peers.
    pub fn plain_connections(self) -> String {
        format!("{self}.connections.plain")
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => "source",
            Self::Destination => "destination",
        })
    }
}

/// Traffic between two pods, counted at one end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stream<'a> {
    pub side: Side,
    pub from: Peer<'a>,
    pub to: Peer<'a>,
}

/// Name and namespace of a workload.
pub type Peer<'a> = (&'a str, &'a str);

impl Stream<'_> {
    /// Counter of connections over mutual TLS (HBONE).
    pub fn mutual_tls_connections(&self) -> String {
        format!("{self}.connections.mutual_tls")
    }

    /// Counter of connections without TLS; absent until there was one.
    pub fn plain_connections(&self) -> String {
        format!("{self}.connections.plain")
    }

    pub fn request_bytes(&self) -> String {
        format!("{self}.request_bytes")
    }

    pub fn response_bytes(&self) -> String {
        format!("{self}.response_bytes")
    }

    /// Part of the request bytes that came over connections without TLS; absent until there were any.
    pub fn plain_request_bytes(&self) -> String {
        format!("{self}.request_bytes.plain")
    }

    pub fn plain_response_bytes(&self) -> String {
        format!("{self}.response_bytes.plain")
    }
}

impl fmt::Display for Stream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { side, from: (from, from_namespace), to: (to, to_namespace) } = self;
        write!(f, "{side}.{from}>{to}")?;
        if from_namespace.is_empty() && to_namespace.is_empty() {
            return Ok(());
        }
        write!(f, "@{from_namespace}>{to_namespace}")
    }
}

/// ztunnel's label value for connections over HBONE; any other value means plaintext.
const MUTUAL_TLS: &str = "mutual_tls";

/// All counters, by the names of [`Stream`] and [`Side`]. A stream has none until it is first seen.
pub fn counters(text: &str) -> BTreeMap<String, u64> {
    let mut counters: BTreeMap<String, u64> =
        Side::ALL.into_iter().map(|side| (side.plain_connections(), 0)).collect();
    add_up(text, |sample| names(sample).unwrap_or_default(), &mut counters);
    counters
}

/// Names of the counters that a sample adds to.
fn names(sample: &Sample<'_>) -> Option<Vec<String>> {
    // ztunnel names directions from the server's point of view: received bytes are requests.
    let family = sample.name.strip_prefix("istio_tcp_")?;
    let label = |name: &str| sample.label(name).unwrap_or_default();
    let reporter = label("reporter");
    let side = Side::ALL.into_iter().find(|side| side.to_string() == reporter)?;
    let [from, to] = ["source", "destination"].map(|peer| {
        (label(&format!("{peer}_canonical_service")), label(&format!("{peer}_workload_namespace")))
    });
    let stream = Stream { side, from: (&from.0, &from.1), to: (&to.0, &to.1) };
    let is_plain = label("connection_security_policy") != MUTUAL_TLS;
    Some(match (family, is_plain) {
        ("connections_opened_total", false) => vec![stream.mutual_tls_connections()],
        ("connections_opened_total", true) => vec![side.plain_connections(), stream.plain_connections()],
        ("received_bytes_total", false) => vec![stream.request_bytes()],
        ("received_bytes_total", true) => vec![stream.request_bytes(), stream.plain_request_bytes()],
        ("sent_bytes_total", false) => vec![stream.response_bytes()],
        ("sent_bytes_total", true) => vec![stream.response_bytes(), stream.plain_response_bytes()],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of a real ztunnel, with most labels removed.
    const METRICS: &str = r#"
# HELP istio_tcp_connections_opened The total number of TCP connections opened.
# TYPE istio_tcp_connections_opened counter
istio_tcp_connections_opened_total{reporter="source",source_canonical_service="client",destination_canonical_service="server",connection_security_policy="mutual_tls",source_region="unknown"} 4
istio_tcp_connections_opened_total{reporter="source",source_canonical_service="client",destination_canonical_service="server",response_flags="x",connection_security_policy="mutual_tls"} 1
istio_tcp_connections_opened_total{reporter="source",source_canonical_service="client",destination_canonical_service="other",connection_security_policy="mutual_tls",source_region="unknown"} 1
istio_tcp_connections_opened_total{reporter="destination",source_canonical_service="client",destination_canonical_service="server",connection_security_policy="unknown",source_region="unknown"} 3
istio_tcp_connections_closed_total{reporter="source",connection_security_policy="mutual_tls"} 9
istio_tcp_received_bytes_total{reporter="source",source_canonical_service="client",destination_canonical_service="server",connection_security_policy="mutual_tls"} 438082
istio_tcp_sent_bytes_total{reporter="destination",source_canonical_service="client",destination_canonical_service="server",connection_security_policy="mutual_tls"} 6547091 1700000000
istio_tcp_sockets_open{reporter="destination"} 1
istio_build{component="ztunnel",tag="unknown"} 1
process_open_fds 39
"#;

    #[test]
    fn connections_and_bytes_are_summed_per_side() {
        let counters = counters(METRICS);
        let expected = [
            ("destination.connections.plain", 3),
            ("destination.client>server.connections.plain", 3),
            ("destination.client>server.response_bytes", 6_547_091),
            ("source.client>other.connections.mutual_tls", 1),
            ("source.client>server.connections.mutual_tls", 5),
            ("source.client>server.request_bytes", 438_082),
            ("source.connections.plain", 0),
        ];
        assert_eq!(counters, expected.map(|(name, count)| (name.to_owned(), count)).into());
    }

    /// Unmodified page of a cluster node's ztunnel that is on both sides of a call.
    #[test]
    fn recorded_page_has_both_sides_of_call() {
        let counters = counters(include_str!("../../tests/fixtures/ztunnel_of_a_node.prom"));
        for side in Side::ALL {
            let stream = Stream { side, from: ("load", "default"), to: ("web", "default") };
            let names = [stream.mutual_tls_connections(), stream.request_bytes(), stream.response_bytes()];
            assert_eq!(names.map(|name| counters[&name]), [16, 6111, 105_827], "{side}");
            assert_eq!(
                (counters[&side.plain_connections()], counters.get(&stream.plain_connections())),
                (0, None)
            );
        }
    }

    #[test]
    fn workloads_of_different_namespaces_are_distinguished() {
        let line = |namespace: &str, bytes: u64| {
            format!(
                "istio_tcp_received_bytes_total{{reporter=\"source\",source_canonical_service=\"client\",\
                 source_workload_namespace=\"{namespace}\",destination_canonical_service=\"server\",\
                 destination_workload_namespace=\"{namespace}\"}} {bytes}"
            )
        };
        let counters = counters(&[line("mesh-1", 5), line("mesh-2", 7)].join("\n"));
        for (namespace, bytes) in [("mesh-1", 5), ("mesh-2", 7)] {
            let stream =
                Stream { side: Side::Source, from: ("client", namespace), to: ("server", namespace) };
            assert_eq!(counters[&stream.request_bytes()], bytes);
        }
    }
}
