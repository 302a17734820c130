//! Options of `meshmeter serve` for a service of a topology.

use super::parse_address;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Options of the standalone server, which conflict with `--topology`.
const OF_THE_ECHO_SERVER: [&str; 19] = [
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
    "http3",
    "tls_cert",
    "client_ca",
    "tls_name",
    "tls_ca_out",
    "tcp_listen",
    "tcp_tls_listen",
    "tcp_reply_size",
];

/// Selects a service of a topology.
#[derive(Debug, Args)]
#[command(next_help_heading = "Service of a topology")]
pub struct NodeArgs {
    /// Act as one service of this topology file: respond on each endpoint by its script, which calls other
    /// services
    #[arg(long, value_name = "FILE", requires = "service", conflicts_with_all = OF_THE_ECHO_SERVER)]
    pub topology: Option<PathBuf>,

    /// Service to act as: its name, or NAMESPACE/NAME
    #[arg(long, value_name = "NAME", requires = "topology")]
    pub service: Option<String>,

    /// Address and port for counters, metrics and health checks
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:8079",
        requires = "topology",
        value_parser = parse_address
    )]
    pub admin_listen: SocketAddr,

    /// Address of a called service or database [default: NAME.NAMESPACE.svc.cluster.local, port 8080 or
    /// 27017]
    #[arg(long, value_name = "NAME=HOST:PORT", requires = "topology", value_parser = parse_connect)]
    pub connect: Vec<(String, String)>,

    /// CA certificates to verify databases with, PEM
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
