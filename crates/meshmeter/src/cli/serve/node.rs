//! Options of `meshmeter serve` for a service of a topology.

use super::parse_address;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What else says how to answer, where no topology does.
const OF_THE_ECHO_SERVER: [&str; 18] = [
    "size",
    "delay",
    "cpu_time",
    "error_rate",
    "status",
    "stall",
    "max_connections",
    "connection_close_after",
    "idle_timeout",
    "tls",
    "tls_listen",
    "tls_cert",
    "client_ca",
    "tls_name",
    "tls_ca_out",
    "tcp_listen",
    "tcp_tls_listen",
    "tcp_reply_size",
];

/// Which service of which topology to be.
#[derive(Debug, Args)]
#[command(next_help_heading = "Service of a topology")]
pub struct NodeArgs {
    /// Be one service of this topology file: answer each endpoint by its script, which calls other services
    #[arg(long, value_name = "FILE", requires = "service", conflicts_with_all = OF_THE_ECHO_SERVER)]
    pub topology: Option<PathBuf>,

    /// The service to be: its name, or NAMESPACE/NAME
    #[arg(long, value_name = "NAME", requires = "topology")]
    pub service: Option<String>,

    /// Address and port for counts, metrics and health
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:8079",
        requires = "topology",
        value_parser = parse_address
    )]
    pub admin_listen: SocketAddr,

    /// Where a called service or a database is [default: NAME.NAMESPACE.svc.cluster.local, port 8080 or 27017]
    #[arg(long, value_name = "NAME=HOST:PORT", requires = "topology", value_parser = parse_connect)]
    pub connect: Vec<(String, String)>,

    /// Certificates to verify databases with, PEM
    #[arg(long, value_name = "FILE", requires = "topology")]
    pub database_ca: Option<PathBuf>,
}

fn parse_connect(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, place)) if !name.is_empty() && !place.is_empty() => {
            Ok((name.to_owned(), place.to_owned()))
        }
        _ => Err("expected a service and where it is, for example shop/cart=127.0.0.1:8081"),
    }
}
