//! Command-line options as types, one module per command.

mod cluster;
mod cluster_runner;
mod cluster_worker;
mod collect_spans;
mod compare;
mod components;
mod doctor;
mod export;
mod fleet;
mod headers;
mod history;
mod lab;
mod learn;
mod load;
mod man;
mod noise;
mod price;
mod report;
mod run;
mod schema;
mod serve;
mod size;
mod topology;
mod trials;
mod usage_error;
mod view;
mod words;

pub use cluster::{
    AttachArgs, CheckClusterArgs, CleanArgs, ClusterArgs, ClusterCommand, DetachArgs, OnClusterArgs, RbacArgs,
};
pub use cluster_runner::ClusterRunnerArgs;
pub use cluster_worker::ClusterWorkerArgs;
pub use collect_spans::CollectSpansArgs;
pub use compare::CompareArgs;
pub use components::{HubArgs, OverrideArgs, ReleaseArgs};
pub use doctor::DoctorArgs;
pub use export::ExportArgs;
pub use fleet::{ControlPlaneArgs, FleetArgs, MetricsUrl};
pub use headers::GivenHeaders;
pub use history::{AddArgs, HistoryArgs, HistoryCommand, PruneArgs, ShowArgs};
pub use lab::{
    DownArgs, ExecArgs, ForwardArgs, InstallArgs, LabArgs, LabCommand, PodArgs, RemoveArgs, StatusArgs,
    UpArgs,
};
pub use learn::{LearnArgs, provenance_path};
pub use load::{
    Bidirectional, Clients, GrpcArgs, HttpArgs, HttpVersion, LoadArgs, LoadCommand, MAX_CONNECTIONS,
    MergeArgs, OfferedRate, OutputArgs, ProgressStyle, ResultFileArgs, ScheduleArgs, StartAt,
    parse_stage_rate,
};
pub use man::ManArgs;
pub use noise::NoiseArgs;
pub use price::PriceArgs;
pub use report::{AutomationArgs, ReportArgs};
pub use run::{RunArgs, RunPlace};
pub use schema::{FileKind, SchemaArgs};
pub use serve::{NodeArgs, ServeArgs, TlsArgs};
pub use size::{PricesArgs, SizeArgs};
pub use topology::{
    CheckArgs, ConvertArgs, DrawArgs, DrawingFormat, GenerateArgs, ParameterArgs, SourceArgs, TopologyArgs,
    TopologyCommand, TopologyFormat,
};
pub use trials::TrialArgs;
pub use view::ViewArgs;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::env;
use std::process::ExitCode;

/// Measures what a service mesh costs: latency, CPU and memory, with honest statistics.
#[derive(Debug, Parser)]
#[command(version = crate::build::version(), max_term_width = 110, propagate_version = true)]
pub struct Cli {
    /// Subcommand.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the command line. Prints usage errors, help and version, for which it returns the exit status. `check` gets the
    /// definitions of the options and their values, and prints what is wrong with them.
    pub fn parse_or_report(
        check: impl FnOnce(&clap::Command, &ArgMatches) -> Result<(), ExitCode>,
    ) -> Result<Self, ExitCode> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(env::args_os()).map_err(usage_error::report)?;
        check(&command, &matches)?;
        Self::from_arg_matches(&matches).map_err(|error| usage_error::report(error.format(&mut command)))
    }
}

/// Subcommands. A variant without a doc comment uses the help text of its arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    Run(Box<RunArgs>),
    Compare(Box<CompareArgs>),
    History(HistoryArgs),
    Load(Box<LoadArgs>),
    /// Serve as a synthetic service
    Serve(ServeArgs),
    /// Rebuild the report of a run from its directory
    Report(ReportArgs),
    View(ViewArgs),
    Size(Box<SizeArgs>),
    Price(Box<PriceArgs>),
    Topology(TopologyArgs),
    Learn(Box<LearnArgs>),
    Fleet(Box<FleetArgs>),
    Lab(LabArgs),
    Cluster(ClusterArgs),
    Doctor(DoctorArgs),
    /// Run a detached run in its pod and keep its results (used by its Job)
    #[command(hide = true)]
    ClusterRunner(ClusterRunnerArgs),
    /// Start generators for a run on a cluster (used by pods of its Jobs)
    #[command(hide = true)]
    ClusterWorker(ClusterWorkerArgs),
    /// Count the spans that proxies send (used by labs)
    #[command(hide = true)]
    CollectSpans(CollectSpansArgs),
    /// Print a completion script for a shell
    Completion {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    Man(ManArgs),
    Schema(SchemaArgs),
}
