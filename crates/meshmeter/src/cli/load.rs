//! Options of `meshmeter load`.

mod grpc;
mod http_version;

pub use grpc::{Bidirectional, GrpcArgs};
pub use http_version::{HttpArgs, HttpVersion};

use super::GivenHeaders;
use clap::{ArgGroup, Args, ValueEnum};
use experiment::definition::MAX_RUN_DURATION;
use results::StatusPattern;
use results::units::{parse_duration, parse_size};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

mod connecting;
mod merge;
mod network;
mod objective;
mod output;
mod pacing;
mod raw;
mod schedule;
mod search;
mod targets;
mod tls;
mod websocket;

pub use connecting::ConnectingArgs;
pub use merge::{LoadCommand, MergeArgs};
pub use objective::ObjectiveArgs;
pub use output::{OutputArgs, ResultFileArgs};
pub use pacing::PacingArgs;
pub use raw::RawArgs;
pub(in crate::cli) use schedule::parse_positive_rate;
pub use schedule::{Clients, OfferedRate, ScheduleArgs, StartAt, parse_stage_rate};
pub use search::SearchArgs;
pub use targets::TargetArgs;
pub use tls::TlsHandshakeArgs;
pub use websocket::WebSocketArgs;

/// Maximum of `--connections`.
pub const MAX_CONNECTIONS: u32 = 100_000;

/// Help heading of options that concern TLS.
const TLS_HEADING: &str = "TLS (https://, grpcs://, wss:// and tls:// URLs)";

/// Load URLs and measure response times from when each request was due
///
/// --rate, --stages, --profile and --replay are an open loop: requests are due at these rates or instants, whatever the
/// target does, so a target that falls behind is visible in the response times. --clients is a closed loop: each client sends
/// its next request after a response. Without any of these the load is a closed loop with a client per
/// connection, and the result names a rate for an open loop.
///
/// Exit status: 0 a valid measurement that meets its objective, or a rate found by --search; 1 one that does
/// not or is not valid (saturated, errors), or no rate found; 2 usage error; 3 the target could not be
/// reached.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    group = ArgGroup::new("load").args(["rate", "clients", "stages", "profile", "replay", "search"]),
    after_help = "Examples:\n  meshmeter load localhost:8080\n  meshmeter load --rate 1000 --connections 4 --duration 30s http://127.0.0.1:8080/\n  \
                  meshmeter load --clients 64 --duration 10s http://127.0.0.1:8080/\n  \
                  meshmeter load --stages 500:30s,1000:30s,2000:30s --json result.json http://127.0.0.1:8080/\n  \
                  meshmeter load --search --objective p99=5ms,errors=0.1% --json curve.json http://127.0.0.1:8080/\n  \
                  meshmeter load --rate 1000 traffic.yaml   (kinds of requests with data)\n  \
                  meshmeter load --replay access.log --speed 2 http://127.0.0.1:8080\n  \
                  meshmeter load --rate 1000 --connect-to 127.0.0.1:8443 'https://shop-{1..100}.example/get/{1..10}'\n  \
                  meshmeter load --clients 8 --body-size 100 --reply-size 10KB tcp://127.0.0.1:9000\n  \
                  meshmeter load --rate 1000 --connections 8 --body hello ws://127.0.0.1:8080/   (echoes)\n  \
                  meshmeter load --clients 8 --body subscribe --pushes 100 'ws://127.0.0.1:8080/?events=100&gap=10ms'\n  \
                  meshmeter load --rate 100 grpc://127.0.0.1:8080   (the health check)\n  \
                  meshmeter load --rate 100 --message '{\"name\": \"x\"}' grpc://127.0.0.1:8080/package.Service/Method\n  \
                  meshmeter load --clients 4 --stream-messages 1000 grpc://127.0.0.1:8080/meshmeter.v1.Echo/BidiStreaming\n  \
                  meshmeter load --rate 100 --cacert authority.pem --sni shop.example https://127.0.0.1:8443/"
)]
pub struct LoadArgs {
    #[command(subcommand)]
    pub command: Option<LoadCommand>,

    #[command(flatten)]
    pub schedule: ScheduleArgs,

    #[command(flatten)]
    pub goal: ObjectiveArgs,

    #[command(flatten)]
    pub search: SearchArgs,

    #[command(flatten)]
    pub targets: TargetArgs,

    #[command(flatten)]
    pub raw: RawArgs,

    #[command(flatten)]
    pub pacing: PacingArgs,

    /// Connections kept open [default: 16 in an open loop; in a closed loop the minimum that its clients
    /// need: one per client, or with HTTP/2 one per 32 or --streams clients; at least one per server]
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CONNECTIONS)), help_heading = "Load")]
    pub connections: Option<u32>,

    /// Close each connection after N requests and open another in its place, in advance of the next request:
    /// only requests that wait for it have that time in their response time (--new-connection-per-request: all)
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub requests_per_connection: Option<NonZeroU64>,

    /// Worker threads [default: half of the CPUs, at most one per connection]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Load")]
    pub threads: Option<u32>,

    /// HTTP method
    #[arg(long, short = 'X', value_name = "M", default_value = "GET", help_heading = "Request")]
    pub method: http::Method,

    /// Add a header, such as 'Accept: text/plain' or 'X-User: {1..1000}' (a number per request), or those in a file, one
    /// per line; may be given several times
    #[arg(long, short = 'H', value_name = "K: V|@FILE", value_parser = parse_header, help_heading = "Request")]
    pub header: Vec<GivenHeaders>,

    /// Body of each request: text, in which {1..1000} is a number per request, or @FILE
    #[arg(long, value_name = "TEXT|@FILE", help_heading = "Request")]
    pub body: Option<String>,

    /// Body of each request: this many bytes of filler, such as 1KiB
    #[arg(long, value_name = "S", value_parser = parse_body_size, conflicts_with = "body", help_heading = "Request")]
    pub body_size: Option<u64>,

    #[command(flatten)]
    pub http: HttpArgs,

    #[command(flatten)]
    pub grpc: GrpcArgs,

    #[command(flatten)]
    pub websocket: WebSocketArgs,

    /// Timeout of each request from its send, and of opening a connection including its TLS handshake
    #[arg(long, value_name = "D", default_value = "10s", value_parser = parse_run_duration, help_heading = "Request")]
    pub timeout: Duration,

    /// Statuses that are not errors: codes and classes, such as 2xx,304 [default: all below 400]
    #[arg(long, value_name = "S,…", value_delimiter = ',', help_heading = "Request")]
    pub expect_status: Vec<StatusPattern>,

    /// Connect to this address instead of the host and port of the URL
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_endpoint, help_heading = "Request")]
    pub connect_to: Option<String>,

    #[command(flatten)]
    pub connecting: ConnectingArgs,

    /// Skip verification of server certificates
    #[arg(long, conflicts_with = "cacert", help_heading = TLS_HEADING)]
    pub insecure: bool,

    /// Trust the CAs in FILE (PEM) instead of the system's
    #[arg(long, value_name = "FILE", help_heading = TLS_HEADING)]
    pub cacert: Option<PathBuf>,

    /// Present the client certificate in FILE (PEM), with any intermediate certificates. With a range of numbers in the name,
    /// as in client-{1..100}.pem, each connection presents the next one
    #[arg(
        long,
        value_name = "FILE",
        requires = "key",
        help_heading = TLS_HEADING
    )]
    pub cert: Option<PathBuf>,

    /// Private key of the client certificate (PEM); with a range as long, one for each certificate
    #[arg(
        long,
        value_name = "FILE",
        requires = "cert",
        help_heading = TLS_HEADING
    )]
    pub key: Option<PathBuf>,

    /// Send NAME as SNI, and verify that name, instead of the URL's host
    #[arg(long, value_name = "NAME", help_heading = TLS_HEADING)]
    pub sni: Option<String>,

    #[command(flatten)]
    pub handshakes: TlsHandshakeArgs,

    #[command(flatten)]
    pub network: network::NetworkArgs,

    #[command(flatten)]
    pub output: OutputArgs,

    /// How to show progress on standard error
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub progress: ProgressStyle,

    /// With --progress json, report all details of each second, including histograms (used by
    /// `meshmeter run`)
    #[arg(long, hide = true, requires = "progress")]
    pub progress_detail: bool,

    /// URLs to load: `http://`, `https://`, `grpc://`, `grpcs://`, `ws://`, `wss://`, `tcp://` or `tls://` with a
    /// host, a port and a path; without a scheme, `http://`
    ///
    /// User and password of a URL are sent as basic authentication, and shown and stored nowhere.
    ///
    /// The path of a gRPC URL is a method, /package.Service/Method; without a path it is the health check,
    /// /grpc.health.v1.Health/Check.
    ///
    /// Over WebSocket a request is a message, --body, on a connection that is open at the path.
    ///
    /// Instead of URLs, a traffic file (.yaml, .yml, .json) may be named: kinds of requests with weights, each with
    /// method, path, headers and body, data for them, and checks.
    ///
    /// Several URLs are requested in turn. A weight before a URL gives its share, such as
    /// `3=http://a/ http://b/`. Host and path may contain ranges of numbers, such as
    /// 'https://shop-{1..1000}.example/get/{1..100}': each host is a server with its own connections, Host
    /// header and TLS name; --connect-to sends them all to one address.
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<String>,
}

/// Format of progress.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum ProgressStyle {
    /// A live line on a terminal, plain lines otherwise
    #[default]
    Auto,
    /// A line per second
    Plain,
    /// A JSON object per event
    Json,
    /// Nothing
    Off,
}

pub(in crate::cli) fn parse_run_duration(text: &str) -> Result<Duration, String> {
    let duration = parse_run_duration_or_zero(text)?;
    if duration.is_zero() { Err("must be longer than zero".to_owned()) } else { Ok(duration) }
}

pub(in crate::cli) fn parse_run_duration_or_zero(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text).map_err(|error| error.to_string())?;
    if duration > MAX_RUN_DURATION { Err("must be at most 24h".to_owned()) } else { Ok(duration) }
}

fn parse_body_size(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text).map_err(|error| error.to_string())?;
    if bytes > load::MAX_BODY_BYTES { Err("a body has at most 64MiB".to_owned()) } else { Ok(bytes) }
}

fn parse_header(text: &str) -> Result<GivenHeaders, String> {
    GivenHeaders::parse(text, |text| {
        let (name, value) =
            text.split_once(':').ok_or("expected a name and a value, such as 'Accept: text/plain'")?;
        let name = name.trim().parse().map_err(|_| "the name is not that of a header")?;
        Ok::<_, &str>((name, value.trim().parse().map_err(|_| "the value is not that of a header")?))
    })
}

fn parse_endpoint(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {
            Ok(text.to_owned())
        }
        _ => Err("expected a host and a port, such as 127.0.0.1:8080".to_owned()),
    }
}
