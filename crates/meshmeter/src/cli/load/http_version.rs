//! Options of `meshmeter load` for the HTTP version.

use clap::{Args, ValueEnum};

/// Options of HTTP.
#[derive(Debug, Args)]
pub struct HttpArgs {
    /// HTTP version. On https:// ALPN negotiates 2; on http:// the server must support prior knowledge (h2c)
    #[arg(long, value_enum, default_value_t, help_heading = "Request")]
    pub http: HttpVersion,

    /// HTTP/2: maximum concurrent requests per connection; fewer if the server allows fewer [default: 32].
    /// WebSocket: maximum unanswered messages per connection, if the server answers them in order [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Request")]
    pub streams: Option<u32>,
}

/// Supported versions of HTTP.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum HttpVersion {
    /// HTTP/1.1 with keep-alive, one request at a time on a connection
    #[default]
    #[value(name = "1.1")]
    Http1,
    /// HTTP/2, with concurrent requests on a connection
    #[value(name = "2")]
    Http2,
}
