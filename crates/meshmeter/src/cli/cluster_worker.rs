//! Options of `meshmeter cluster-worker`.

use clap::Args;
use results::units::parse_duration;
use std::path::PathBuf;
use std::time::Duration;

/// See the command's help.
#[derive(Debug, Args)]
pub struct ClusterWorkerArgs {
    /// Port on the loopback to listen on
    #[arg(long, value_name = "PORT")]
    pub port: u16,

    /// Directory for input files and results
    #[arg(long, value_name = "DIR")]
    pub directory: PathBuf,

    /// Exit after this long without a request
    #[arg(long, value_name = "D", default_value = "5m", value_parser = parse_duration)]
    pub abandoned_after: Duration,

    /// POST to this URL at the end, to terminate the proxy in the same pod
    #[arg(long, value_name = "URL")]
    pub end_proxy: Option<String>,
}
