//! Options of `meshmeter cluster-runner`.

use clap::Args;
use results::units::parse_duration;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// See the command's help.
#[derive(Debug, Args)]
pub struct ClusterRunnerArgs {
    /// Port on the loopback to listen on
    #[arg(long, value_name = "PORT")]
    pub port: u16,

    /// Port on which the kubelet probes whether the run has ended
    #[arg(long, value_name = "PORT")]
    pub ended_port: u16,

    /// Directory of the run
    #[arg(long, value_name = "DIR")]
    pub folder: PathBuf,

    /// Keep a directory that has not been copied for this long
    #[arg(long, value_name = "D", value_parser = parse_duration)]
    pub keep_for: Duration,

    /// Arguments of the run
    #[arg(last = true, required = true)]
    pub arguments: Vec<OsString>,
}
