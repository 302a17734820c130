//! Outputs of a load and their formats.

use crate::cli::ExportArgs;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Outputs of a run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    #[command(flatten)]
    pub files: ResultFileArgs,

    /// Also store the histogram of each second in the JSON, about 1 KB each: `load merge` then merges seconds
    /// exactly
    #[arg(long, requires = "json")]
    pub series_histograms: bool,

    /// Report the requests and response times of each URL too, of at most 100
    #[arg(long)]
    pub per_url: bool,

    /// Serve the figures so far at http://ADDR:PORT/metrics for Prometheus until the run ends. A port alone
    /// listens on 127.0.0.1, port 0 on any free port
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = parse_listen_address)]
    pub metrics_listen: Option<SocketAddr>,

    #[command(flatten)]
    pub export: ExportArgs,
}

/// Files of a measured or merged result. At most one of them may be `-`, standard output.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ResultFileArgs {
    /// Write the result as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<PathBuf>,

    /// Write a line per second as comma-separated values, during the run
    #[arg(long, value_name = "FILE|-")]
    pub csv: Option<PathBuf>,

    /// Write an HdrHistogram interval log (in nanoseconds) during the run: response times of each second and,
    /// with tags, service times and schedule lags
    #[arg(long, value_name = "FILE|-")]
    pub hdr: Option<PathBuf>,

    /// Write the percentiles of the response time (in milliseconds) for the HdrHistogram plotter
    #[arg(long, value_name = "FILE|-")]
    pub percentiles: Option<PathBuf>,

    /// Write the result in fortio's format (its `-json`), with response times rather than service times as
    /// DurationHistogram
    #[arg(long, value_name = "FILE|-")]
    pub fortio: Option<PathBuf>,

    /// Labels in the fortio JSON, for scripts that read them
    #[arg(long, value_name = "TEXT", requires = "fortio")]
    pub fortio_labels: Option<String>,
}

/// An address with a port, or a port alone, which means the loopback address.
fn parse_listen_address(text: &str) -> Result<SocketAddr, String> {
    let port = |text: &str| text.strip_prefix(':').unwrap_or(text).parse::<u16>();
    match port(text) {
        Ok(port) => Ok(SocketAddr::from(([127, 0, 0, 1], port))),
        Err(_) => text.parse().map_err(|_| {
            "expected a port, or an address and a port, such as 9090, 0.0.0.0:9090 or [::1]:9090".to_owned()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_on_the_loopback_address() {
        for (text, expected) in [
            ("9090", "127.0.0.1:9090"),
            (":9090", "127.0.0.1:9090"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("[::1]:0", "[::1]:0"),
        ] {
            assert_eq!(parse_listen_address(text).unwrap().to_string(), expected);
        }
        for text in ["", "localhost:9090", "70000", "127.0.0.1", "::1:9090:"] {
            assert!(parse_listen_address(text).is_err(), "{text}");
        }
    }
}
