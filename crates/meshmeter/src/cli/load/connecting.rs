//! Options of `meshmeter load` for the way in which connections are opened.

use super::parse_run_duration;
use crate::cli::words::{one_of, word};
use clap::Args;
use clap::builder::TypedValueParser;
use load::{ProxyProtocol, Sources};
use std::path::PathBuf;
use std::time::Duration;

/// A resolver is asked no more often.
const MIN_LOOKUP_INTERVAL: Duration = Duration::from_millis(100);

/// Options for opening connections.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connections")]
pub struct ConnectingArgs {
    /// Connect to the unix stream socket at PATH. The URL gives the Host header, the path and the TLS name, and
    /// no name is resolved
    #[arg(long, value_name = "PATH", conflicts_with = "connect_to")]
    pub unix_socket: Option<PathBuf>,

    /// Open connections from these local addresses in turn: one, or the host addresses of a prefix, such as
    /// 10.0.0.0/24 (the first 65536 of them). Each has its own ports for a server, 28232 by default
    #[arg(long, value_name = "ADDR[/PREFIX]", conflicts_with = "unix_socket")]
    pub source: Option<Sources>,

    /// Look the names of servers up again at this interval, such as 30s: connections that are opened then go to the addresses
    /// found last, and open ones stay where they are. A name that cannot be looked up keeps its addresses [default: only before
    /// the run]
    #[arg(long, value_name = "D", value_parser = parse_interval, conflicts_with = "unix_socket")]
    pub resolve_every: Option<Duration>,

    /// Begin each connection with a header of the PROXY protocol, before TLS: it has the connection's own addresses
    #[arg(long, value_name = "VERSION", value_parser = proxy_protocol_parser())]
    pub proxy_protocol: Option<ProxyProtocol>,

    /// Open a connection for each request when it is due, and close it after the response: connecting and the TLS
    /// handshake are in the response time. --connections bounds how many there are at a time; without it none of
    /// them waits for another. --requests-per-connection 1 opens as many, but each in advance
    #[arg(long, conflicts_with_all = ["requests_per_connection", "streams", "connections_per_server"])]
    pub new_connection_per_request: bool,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_run_duration(text)?;
    if interval < MIN_LOOKUP_INTERVAL { Err("must be at least 100ms".to_owned()) } else { Ok(interval) }
}

fn proxy_protocol_parser() -> impl TypedValueParser<Value = ProxyProtocol> {
    one_of([(word("1", "Text"), ProxyProtocol::V1), (word("2", "Binary"), ProxyProtocol::V2)])
}
