//! Options of `meshmeter collect-spans`.

use clap::Args;
use std::net::SocketAddr;

/// See the command's help.
#[derive(Debug, Args)]
pub struct CollectSpansArgs {
    /// Address and port to listen on for OTLP over plaintext HTTP/1.1
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
}
