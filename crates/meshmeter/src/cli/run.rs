//! Options of `meshmeter run`.

use super::{
    AutomationArgs, DetachArgs, ExportArgs, NoiseArgs, OnClusterArgs, OverrideArgs, ReleaseArgs, TrialArgs,
};
use clap::{Args, ValueEnum, ValueHint};
use components::IstioVersion;
use std::path::PathBuf;

/// Run an experiment, a preset study or a file, in a lab on this machine
///
/// The experiment is the name of a preset study, or a YAML file (docs/experiment-file.md). Its trials run in
/// network namespaces with real proxies. Each trial is written to the run's directory as it ends: Ctrl-C
/// keeps the results so far. Modes that are unavailable here are not measured, and the run reports what they lack.
///
/// A cell is mode x factors x load. A key that holds a list is a factor: proxy.workers=[1,2,4] measures every
/// mode and load with each number of workers; several factors are crossed. topology.namespaces and
/// topology.replicas set the number of copies of the topology and of pods per service. fresh sets how long a
/// deployment lives: `trial`, or `mode`, which all loads of a mode within a repeat share.
///
/// Exit status: 0 good, 1 the objective was not met or nothing valid was measured, 2 usage error, 3 the environment failed
/// or some mode completed no trial.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meshmeter run sidecar-cost
  meshmeter run sidecar-cost --repeats 10 --duration 20s --out runs/long
  meshmeter run sidecar-cost --set load.rate=[2000] --set proxy.mtls=false
  meshmeter run sidecar-cost --set proxy.workers=[1,2,4] --set load.connections=[4,16] --dry-run
  meshmeter run mesh-modes --set topology.namespaces=[1,5] --set fresh=mode
  meshmeter run istio-upgrade --set components.istio=[1.29.4,1.30.4]
  meshmeter run control-plane --set fleet.proxies=[250,500,1000,2000]
  meshmeter run mesh-modes --istio 1.29.4 --istio 1.30.4
  meshmeter run my-experiment.yaml --dry-run
  meshmeter run --resume runs/long
  meshmeter run mesh-modes --on cluster --context staging --image registry.example.com/meshmeter:1
  meshmeter run mesh-modes --on cluster --image registry.example.com/meshmeter:1 --detach --service-account perf:meshmeter")]
pub struct RunArgs {
    /// Preset study, or experiment file [studies: sidecar-cost, mesh-modes, ai-gateway, mesh-size,
    /// istio-upgrade, emojivoto, tiered-50, egress, egress-direct, ingress-capacity, ingress-scenarios, control-plane]
    #[arg(value_name = "STUDY|FILE", value_hint = ValueHint::FilePath, required_unless_present = "resume")]
    pub experiment: Option<String>,

    /// Directory for the run [default: runs/<name>-<time>]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,

    /// Replace an earlier run in that directory
    #[arg(long, requires = "out")]
    pub overwrite: bool,

    /// Continue the run in DIR, which was interrupted or killed, with the trials that it still lacks. On another
    /// machine, or with other programs, it is refused
    #[arg(
        long,
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        conflicts_with_all = ["experiment", "out", "overwrite", "repeats", "retakes", "duration", "pacing", "noise_floor",
            "calibrate", "scale", "set", "seed", "istio", "detach"]
    )]
    pub resume: Option<PathBuf>,

    /// Where trials run: in a lab on this machine, or on a Kubernetes cluster (docs/cluster.md)
    #[arg(long, value_name = "PLACE", value_enum, default_value_t = RunPlace::Lab)]
    pub on: RunPlace,

    /// Print every trial that would run, in order, and stop; on a cluster, every object of the first deployment of each mode
    #[arg(long)]
    pub dry_run: bool,

    /// Fail if a mode is unavailable here, instead of measuring the others
    #[arg(long)]
    pub require_all_modes: bool,

    /// Measure each cell this many times
    #[arg(long, value_name = "N")]
    pub repeats: Option<String>,

    #[command(flatten)]
    pub trials: TrialArgs,

    #[command(flatten)]
    pub noise: NoiseArgs,

    /// Print the summary as JSON instead of a table
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub automation: AutomationArgs,

    #[command(flatten)]
    pub export: ExportArgs,

    /// Cluster to use, and how.
    #[command(flatten)]
    pub cluster: OnClusterArgs,

    #[command(flatten)]
    pub detached: DetachArgs,

    /// Run this release of Istio, from its published images, or `pinned` for the one built from source.
    /// Several releases are compared (components.istio). A release that is not installed is fetched first
    #[arg(long, value_name = "VERSION", help_heading = "Releases of Istio")]
    pub istio: Vec<IstioVersion>,

    #[command(flatten)]
    pub releases: ReleaseArgs,

    /// Programs to run instead of the installed ones.
    #[command(flatten)]
    pub overrides: OverrideArgs,
}

/// Environment of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum RunPlace {
    /// A lab on this machine
    Lab,
    /// A Kubernetes cluster
    Cluster,
}
