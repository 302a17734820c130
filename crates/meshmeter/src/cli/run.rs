//! Options of `meshmeter run`.

use super::OverrideArgs;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Run an experiment in a lab on this machine and report what it shows.
///
/// The experiment is one of the preset studies by name, or a YAML file. Its trials run in network namespaces with real
/// proxies; everything is recorded in the run's folder as it is measured, so that Ctrl-C keeps the results so far.
/// Modes that cannot run here are named with what they lack and left out; nothing stands in for them.
///
/// Exit status: 0 good, 1 the objective was not met or nothing valid was measured, 2 wrong use, 3 the environment failed or
/// let no trial of a mode end well.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  meshmeter run sidecar-cost\n  meshmeter run sidecar-cost --repeats 10 --duration 20s --out runs/long\n  \
                        meshmeter run sidecar-cost --set load.rate=[2000] --set proxy.mtls=false\n  meshmeter run my-experiment.yaml --dry-run"
)]
pub struct RunArgs {
    /// A preset study, or an experiment file [studies: sidecar-cost, mesh-modes, mesh-size, egress]
    #[arg(value_name = "STUDY|FILE", value_hint = ValueHint::FilePath)]
    pub experiment: String,

    /// The run's folder [default: runs/<name>-<time>]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,

    /// Replace an earlier run in that folder
    #[arg(long, requires = "out")]
    pub overwrite: bool,

    /// Print every trial that would run, in order, and stop
    #[arg(long)]
    pub dry_run: bool,

    /// Fail where a mode cannot run here, instead of measuring the others
    #[arg(long)]
    pub require_all_modes: bool,

    /// Measure each cell this many times
    #[arg(long, value_name = "N")]
    pub repeats: Option<String>,

    /// Take each trial that the machine disturbed again, at most this many times, after the others of its repeat
    ///
    /// Disturbed is a trial where nothing but other processes or the generator's own lateness makes its figures useless. What
    /// the mesh does (saturation, errors, a path that is not proven, a component that dies) is never measured again until it
    /// looks better. No more than a third of the trials are taken again; every take is kept and shown.
    #[arg(long, value_name = "N")]
    pub retakes: Option<String>,

    /// Measured window of each trial, such as 20s
    #[arg(long, value_name = "D")]
    pub duration: Option<String>,

    /// Multiply every rate (or number of clients) by this
    #[arg(long, value_name = "F")]
    pub scale: Option<String>,

    /// Change a key of the experiment, such as load.connections=16; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Order the trials by this seed, which every run records
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Print the summary as JSON instead of a table
    #[arg(long)]
    pub json: bool,

    /// Programs to run instead of the installed ones.
    #[command(flatten)]
    pub overrides: OverrideArgs,
}
