//! The way in which the generator's connections were opened.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Settings of connections that are not opened in the usual way: over TCP, from an address that the kernel chooses, and kept open.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionSettings {
    /// The unix socket that all connections go to, such as `unix:/run/shop.sock`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_socket: Option<String>,
    /// Local addresses: one, or the host addresses of a prefix such as `10.0.0.0/24`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Version of the PROXY protocol whose header each connection begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_protocol: Option<u8>,
    /// Each request opened its own connection when it was due, and closed it after the response: its times include opening.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_per_request: bool,
    /// Time between look-ups of the servers' names, seconds: connections opened later went to the addresses found last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookups_every_s: Option<f64>,
    /// Number of client certificates that connections presented in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_certificates: Option<usize>,
}

/// Connections that the peer closed for being idle, probably: its keep-alive timeout.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct IdleCloses {
    /// Connections closed in the window while no request was under way on them, after a response or 500 ms.
    pub connections: u64,
    /// Failed requests (`closed`, `reset`) on connections that had been idle for 100 ms or longer when they were sent (500 ms
    /// before their first request), and on which nothing came back.
    pub requests: u64,
}

impl fmt::Display for ConnectionSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.unix_socket.clone(),
            self.source.as_ref().map(|source| format!("from {source}")),
            self.proxy_protocol.map(|version| format!("PROXY protocol {version}")),
            self.new_per_request.then(|| "a new one per request".to_owned()),
            self.lookups_every_s.map(|every_s| format!("names looked up every {every_s} s")),
            self.client_certificates.map(|number| format!("{number} client certificates in turn")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}
