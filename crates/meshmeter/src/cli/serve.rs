//! Options of `meshmeter serve`.

mod node;
mod tcp;
mod tls;

pub use node::NodeArgs;
pub use tcp::TcpArgs;
pub use tls::TlsArgs;

use clap::Args;
use experiment::settings::service::MAX_CPU_TIME;
use results::units::{parse_duration, parse_fraction, parse_size};
use service::Stall;
use std::net::SocketAddr;
use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

/// Default responses, and how a request asks for a different one.
const AFTER_HELP: &str = "\
HTTP/1.1, HTTP/2 and gRPC share a port: plaintext connections are identified by their first bytes, TLS connections by ALPN (h2 \
or http/1.1). The query of an HTTP request can set another response: size, delay, cpu-time, error-rate and status, \
or a stream of events: events, first, gap and event-bytes. Other keys are ignored.
    curl 'http://127.0.0.1:8080/?size=10KB&delay=5ms&error-rate=1%'
    curl --http2-prior-knowledge 'http://127.0.0.1:8080/?status=503'
    curl -N 'http://127.0.0.1:8080/?events=20&first=50ms&gap=10ms'
A WebSocket echoes its messages, or answers each with a stream of messages if its URL asks for events:
    meshmeter load --clients 8 --body subscribe --pushes 20 'ws://127.0.0.1:8080/?events=20&gap=10ms'
A gRPC call sets it in its message (reflection: service meshmeter.v1.Echo):
    grpcurl -plaintext -d '{\"replyBytes\": 100, \"delayUs\": 5000}' 127.0.0.1:8080 meshmeter.v1.Echo/Unary
TLS with a certificate made for the purpose:
    meshmeter serve --tls --tls-ca-out ca.pem
    curl --cacert ca.pem https://localhost:8443/
Counts since the start, for each protocol:
    curl http://127.0.0.1:8080/meshmeter/counters
One service of a topology, which calls another:
    meshmeter serve --topology shop.yaml --service web --connect cart=127.0.0.1:8081
    curl http://127.0.0.1:8079/metrics";

/// Options of the synthetic service.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ServeArgs {
    /// Address and port to listen on for plaintext HTTP/1.1, HTTP/2 and gRPC; port 0 is any free one
    /// [default: 127.0.0.1:8080; a service of a topology: 0.0.0.0:8080]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_address)]
    pub listen: Option<SocketAddr>,

    /// Size of the response body, or of a gRPC reply's payload, such as 1024, 1KB (1000 bytes) or 1KiB (1024)
    #[arg(long, value_name = "SIZE", default_value = "1KiB", value_parser = parse_size)]
    pub size: u64,

    /// Time from the end of a request to the start of its response, such as 250us or 5ms
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    pub delay: Duration,

    /// Additional CPU time per response, after the delay, such as 100us; at most 1s. The thread spins for
    /// this time, whereas --delay waits
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_cpu_time)]
    pub cpu_time: Duration,

    /// Fraction of requests that get status 500 (gRPC: INTERNAL), such as 0.1% or 0.001
    #[arg(long, value_name = "FRACTION", default_value = "0%", value_parser = parse_fraction)]
    pub error_rate: f64,

    /// HTTP status of the other responses
    #[arg(
        long,
        value_name = "STATUS",
        default_value = "200",
        value_parser = clap::value_parser!(u16).range(i64::from(*service::STATUSES.start())..=i64::from(*service::STATUSES.end()))
    )]
    pub status: u16,

    /// Worker threads
    #[arg(
        long,
        value_name = "THREADS",
        default_value = "1",
        value_parser = clap::value_parser!(u16).range(1..=service::MAX_THREADS as i64)
    )]
    pub threads: u16,

    /// Send no responses at the end of every period, such as 1s/10s: one second in every ten
    #[arg(long, value_name = "LENGTH/PERIOD", value_parser = str::parse::<Stall>)]
    pub stall: Option<Stall>,

    /// Maximum concurrent connections; further ones wait to be accepted [default: limited by open files]
    #[arg(long, value_name = "COUNT")]
    pub max_connections: Option<NonZeroUsize>,

    /// Close each connection after this many responses; over HTTP/2 with GOAWAY, and requests sent before it
    /// arrives are answered
    #[arg(long, value_name = "COUNT")]
    pub connection_close_after: Option<NonZeroU64>,

    /// Close a connection that has been idle for this long
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_duration)]
    pub idle_timeout: Duration,

    /// Seed for choosing the requests that fail, and for everything that a script draws [default: random]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    #[command(flatten)]
    pub tls: TlsArgs,

    #[command(flatten)]
    pub tcp: TcpArgs,

    #[command(flatten)]
    pub node: NodeArgs,
}

fn parse_cpu_time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    if time > MAX_CPU_TIME { Err("expected at most 1s".to_owned()) } else { Ok(time) }
}

pub(super) fn parse_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an IP address and a port, for example 127.0.0.1:8080 or [::1]:8080")
}
