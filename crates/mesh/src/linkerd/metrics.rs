//! Counters of Linkerd's proxies, from `/metrics` (Prometheus' text format). Only the labels that identify
//! the ends of a call are kept; series that differ only in other labels are summed.
//!
//! A proxy counts requests where it forwards them: to an endpoint of a service (`outbound`), or to its own
//! application (`inbound`). It counts connections at both of its ends (`peer`): those that it accepts (`src`)
//! and those that it opens (`dst`). Series that have not increased for ten minutes disappear.

use crate::admin::{Admin, AdminError};
use crate::proxy::CounterSource;
use results::exposition::{Sample, add_up};
use std::collections::BTreeMap;

const PATH: &str = "/metrics";
/// Linkerd's label value for connections and requests over mutual TLS; any other value is plaintext.
const MUTUAL_TLS: &str = "true";
/// Route name of a kubelet's probes.
const PROBE: &str = "probe";

/// Traffic that a proxy sends to a Service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Outbound<'a> {
    pub service: &'a str,
    pub namespace: &'a str,
}

/// Traffic that a proxy receives for a port of its pod.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Inbound {
    pub port: u16,
}

/// Counter names of one end.
pub(super) trait Counted {
    fn prefix(&self) -> String;

    fn requests(&self) -> String {
        format!("{}.requests", self.prefix())
    }

    fn plain_requests(&self) -> String {
        format!("{}.requests.plain", self.prefix())
    }

    /// Error responses of this class, `4xx` or `5xx`.
    fn errors(&self, kind: &str) -> String {
        format!("{}.responses.{kind}", self.prefix())
    }

    fn connections(&self) -> String {
        format!("{}.connections", self.prefix())
    }

    fn encrypted_connections(&self) -> String {
        format!("{}.connections.mutual_tls", self.prefix())
    }

    fn plain_connections(&self) -> String {
        format!("{}.connections.plain", self.prefix())
    }

    /// Bytes from the caller.
    fn received_bytes(&self) -> String {
        format!("{}.received_bytes", self.prefix())
    }

    /// Bytes to the caller.
    fn sent_bytes(&self) -> String {
        format!("{}.sent_bytes", self.prefix())
    }

    /// Connections that used this HTTP version, in Linkerd's notation: `http/1` or `http/2`.
    fn connections_of(&self, version: &str) -> String {
        format!("{}.connections.{version}", self.prefix())
    }
}

impl Counted for Outbound<'_> {
    fn prefix(&self) -> String {
        format!("outbound.{}.{}", self.service, self.namespace)
    }
}

impl Counted for Inbound {
    fn prefix(&self) -> String {
        format!("inbound.{}", self.port)
    }
}

/// Connections that a proxy accepts from its application, for any destination.
pub(super) const TAKEN_FROM_APPLICATION: &str = "outbound.connections";

/// A proxy, by the interface with its metrics.
#[derive(Debug)]
pub struct LinkerdProxy(pub Admin);

impl CounterSource for LinkerdProxy {
    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError> {
        Ok(read(&String::from_utf8_lossy(&self.0.ask_counters(PATH)?)))
    }
}

/// All counters of a proxy, by the names of [`Outbound`] and [`Inbound`]. Absent until there is traffic of that kind.
pub fn read(text: &str) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    add_up(text, names, &mut counters);
    counters
}

/// Names of the counters that a sample adds to.
fn names(sample: &Sample<'_>) -> Vec<String> {
    let label = |name: &str| sample.label(name).unwrap_or_default();
    let is_at = |peer: &str| label("peer") == peer;
    match (sample.name, &*label("direction")) {
        ("outbound_tcp_detect_http_results_total", _) => {
            let (service, namespace) = (label("parent_name"), label("parent_namespace"));
            let end = Outbound { service: &service, namespace: &namespace };
            vec![end.connections_of(&label("result"))]
        }
        ("inbound_tcp_transport_header_connections_total", _) => {
            let name = |end: Inbound| end.connections_of(&label("session_protocol"));
            inbound(sample).map(name).into_iter().collect()
        }
        (CONNECTIONS, "outbound") if is_at("src") => vec![TAKEN_FROM_APPLICATION.to_owned()],
        (_, "outbound") if !is_at("src") && !label("dst_service").is_empty() => {
            let (service, namespace) = (label("dst_service"), label("dst_namespace"));
            let end = Outbound { service: &service, namespace: &namespace };
            let bytes = [end.sent_bytes(), end.received_bytes()];
            names_of(&end, sample, bytes)
        }
        (_, "inbound") if !is_at("dst") && label("route_name") != PROBE => {
            let names = |end: Inbound| names_of(&end, sample, [end.received_bytes(), end.sent_bytes()]);
            inbound(sample).map(names).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn inbound(sample: &Sample<'_>) -> Option<Inbound> {
    Some(Inbound { port: sample.label("target_port")?.parse().ok()? })
}

const CONNECTIONS: &str = "tcp_open_total";

/// `bytes`: the counters of bytes that the proxy reads at this end and writes to it.
fn names_of(end: &impl Counted, sample: &Sample<'_>, [read, written]: [String; 2]) -> Vec<String> {
    let is_encrypted = sample.label("tls").as_deref() == Some(MUTUAL_TLS);
    match sample.name {
        "request_total" if is_encrypted => vec![end.requests()],
        "request_total" => vec![end.requests(), end.plain_requests()],
        CONNECTIONS if is_encrypted => vec![end.connections(), end.encrypted_connections()],
        CONNECTIONS => vec![end.connections(), end.plain_connections()],
        "tcp_read_bytes_total" => vec![read],
        "tcp_write_bytes_total" => vec![written],
        "response_total" => match sample.label("status_code").as_deref().and_then(|code| code.get(..1)) {
            Some(kind @ ("4" | "5")) => vec![end.errors(&format!("{kind}xx"))],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Page of a client that has sent 372 requests, and page of a server that has received those of two clients.
    const CLIENT: &str = include_str!("../../tests/fixtures/linkerd_client.prom");
    const SERVER: &str = include_str!("../../tests/fixtures/linkerd_server.prom");

    #[test]
    fn recorded_pages_show_both_ends_of_call() {
        let client = read(CLIENT);
        let server = read(SERVER);
        let outbound = Outbound { service: "server", namespace: "meshmeter" };
        let inbound = Inbound { port: 8080 };
        assert_eq!((client[&outbound.requests()], server[&inbound.requests()]), (372, 928));
        for (counters, end) in [(&client, &outbound as &dyn Counted), (&server, &inbound)] {
            assert_eq!(counters.get(&end.plain_requests()), None);
            assert_eq!(counters[&end.connections()], counters[&end.encrypted_connections()]);
        }
        assert_eq!(client[TAKEN_FROM_APPLICATION], 2);
        assert_eq!(
            (client[&outbound.connections_of("http/1")], server[&inbound.connections_of("http/2")]),
            (2, 2)
        );
    }

    #[test]
    fn plaintext_and_errors_are_counted_and_probes_skipped() {
        let line = |name: &str, labels: &str| {
            format!("{name}{{direction=\"inbound\",target_port=\"8080\",{labels}}} 3\n")
        };
        let page = [
            line("request_total", "tls=\"true\""),
            line("request_total", "tls=\"no_identity\",no_tls_reason=\"no_tls_from_remote\""),
            line("request_total", "tls=\"no_identity\",route_name=\"probe\""),
            line("response_total", "tls=\"true\",status_code=\"503\""),
            line("response_total", "tls=\"true\",status_code=\"200\""),
            line("response_total", "tls=\"true\",status_code=\"\""),
            line("tcp_read_bytes_total", "peer=\"src\",tls=\"true\""),
            line("tcp_open_total", "peer=\"dst\",tls=\"no_identity\""),
        ];
        let inbound = Inbound { port: 8080 };
        let expected = [
            (inbound.requests(), 6),
            (inbound.plain_requests(), 3),
            (inbound.errors("5xx"), 3),
            (inbound.received_bytes(), 3),
        ];
        assert_eq!(read(&page.concat()), expected.into());
    }
}
