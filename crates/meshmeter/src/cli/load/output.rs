//! Where the result of a load goes, and in which form.

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

    /// Keep the histogram of each second in the JSON too, about 1 KB each: `load merge` then merges the seconds exactly
    #[arg(long, requires = "json")]
    pub series_histograms: bool,

    /// Report the requests and response times of each URL too, of at most 100
    #[arg(long)]
    pub per_url: bool,

    /// Serve the figures so far at http://ADDR:PORT/metrics for Prometheus until the run ends. A port alone is on 127.0.0.1,
    /// 0 is any that is free
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = parse_listen_address)]
    pub metrics_listen: Option<SocketAddr>,

    #[command(flatten)]
    pub export: ExportArgs,
}

/// Files of a result, measured or merged. Each may be `-`, standard output, but only one of them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct ResultFileArgs {
    /// Write the result as JSON to FILE, or to standard output with -
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<PathBuf>,

    /// Write a line for each second as comma-separated values, as they go
    #[arg(long, value_name = "FILE|-")]
    pub csv: Option<PathBuf>,

    /// Write an HdrHistogram interval log (in nanoseconds) as it goes: response times of each second and, with tags,
    /// service times and schedule lags
    #[arg(long, value_name = "FILE|-")]
    pub hdr: Option<PathBuf>,

    /// Write the percentiles of the response time (in milliseconds) as the HdrHistogram plotter reads them
    #[arg(long, value_name = "FILE|-")]
    pub percentiles: Option<PathBuf>,

    /// Write the result as fortio does (its `-json`), with response times, not service times, as DurationHistogram
    #[arg(long, value_name = "FILE|-")]
    pub fortio: Option<PathBuf>,

    /// The Labels in the fortio JSON, for scripts that read them
    #[arg(long, value_name = "TEXT", requires = "fortio")]
    pub fortio_labels: Option<String>,
}

/// An address with a port, or a port alone on the loopback address.
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
