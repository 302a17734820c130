//! Options of `meshmeter serve` for raw TCP.

use super::parse_address;
use clap::Args;
use results::units::parse_size;
use service::TcpSizes;
use std::net::SocketAddr;
use std::num::NonZeroU64;

/// Addresses and sizes for raw TCP.
#[derive(Debug, Args)]
#[command(next_help_heading = "Raw TCP")]
pub struct TcpArgs {
    /// Also listen for raw TCP: each request of --tcp-request-size bytes, with any content, gets a reply of
    /// --tcp-reply-size bytes, of which byte i (from 0) is i modulo 251. Delay, stalls and limits apply here
    /// too; an error is a connection closed without a reply. Counters are read over HTTP
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_address)]
    pub tcp_listen: Option<SocketAddr>,

    /// Also listen for raw TCP over TLS
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_address)]
    pub tcp_tls_listen: Option<SocketAddr>,

    /// Size of a TCP request
    #[arg(long, value_name = "SIZE", default_value = "1KiB", value_parser = parse_bytes)]
    pub tcp_request_size: NonZeroU64,

    /// Size of a TCP reply [default: that of a request]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub tcp_reply_size: Option<NonZeroU64>,
}

impl TcpArgs {
    /// Sizes of request and reply.
    pub fn sizes(&self) -> TcpSizes {
        let request_bytes = self.tcp_request_size;
        TcpSizes { request_bytes, reply_bytes: self.tcp_reply_size.unwrap_or(request_bytes) }
    }
}

fn parse_bytes(text: &str) -> Result<NonZeroU64, String> {
    let bytes = parse_size(text).map_err(|error| error.to_string())?;
    NonZeroU64::new(bytes).ok_or_else(|| "expected one byte at least".to_owned())
}
