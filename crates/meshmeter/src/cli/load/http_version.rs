//! Options of `meshmeter load` about the version of HTTP.

use clap::{Args, ValueEnum};

/// See the module.
#[derive(Debug, Args)]
pub struct HttpArgs {
    /// HTTP version. 2 is chosen by ALPN on https://; on http:// the server must know it in advance (h2c)
    #[arg(long, value_enum, default_value_t, help_heading = "Request")]
    pub http: HttpVersion,

    /// HTTP/2: most requests at once on a connection; fewer where the server takes no more [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Request")]
    pub streams: Option<u32>,
}

/// Versions of HTTP that can be spoken.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum HttpVersion {
    /// HTTP/1.1 with keep-alive, one request at a time on a connection
    #[default]
    #[value(name = "1.1")]
    Http1,
    /// HTTP/2, many requests at a time on a connection
    #[value(name = "2")]
    Http2,
}
