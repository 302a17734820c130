//! Options of `meshmeter price`.

use super::size::{AnswerFilesArgs, PricesArgs, mode_parser};
use clap::{Args, ValueHint, value_parser};
use results::Mode;
use results::units::parse_rate;
use std::path::PathBuf;

/// Price all proxies of a topology in every measured mode, from runs at smaller scales
///
/// Runs of a topology at two scales or rates tell the CPU of a proxy at rest from that of a request, and the memory of a proxy from
/// what grows with the mesh. From these, `price` computes proxies, CPU and memory used and reserved, and cost at full scale, by
/// mode and namespace, with the latency that each mode adds at the entry points, and lists what all of it rests on. Without
/// --topology: at the greatest measured load. Exit status 1: the runs do not answer the question.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meshmeter price runs/shop-20 runs/shop-40 --topology shop.yaml --prices prices.yaml
  meshmeter price runs/shop-20 runs/shop-40 --topology shop.yaml --nodes 12 --mode sidecar --mode ambient --json
  meshmeter price runs/tiered --topology tiered --rate 500rps --cpu-hour 0.04 --gb-hour 0.005
  meshmeter price runs/sidecar-cost
  meshmeter price runs/shop-what-if --topology shop.yaml --set istio.sidecar-scope=on --set sidecar.cpu-request=50m
  meshmeter price runs/shop-20 runs/shop-40 --topology shop.yaml --set waypoints=[shop,stores]

`meshmeter size --help` shows a prices file.")]
pub struct PriceArgs {
    /// Directories of runs of one topology; several must be from one machine
    #[arg(value_name = "RUN", required = true, num_args = 1.., value_hint = ValueHint::DirPath)]
    pub runs: Vec<PathBuf>,

    /// Topology at full scale: a file that `meshmeter learn` wrote without --scale, with its provenance beside it, or any
    /// topology with --rate
    #[arg(long, value_name = "FILE|NAME", value_hint = ValueHint::FilePath)]
    pub topology: Option<String>,

    /// Requests of each driver, such as 500rps [default: those in the provenance]
    #[arg(long, value_name = "RATE", requires = "topology", value_parser = parse_rate)]
    pub rate: Option<f64>,

    /// Nodes, each with a node proxy in ambient modes [default: as few as can hold the pods, 110 each]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub nodes: Option<u32>,

    /// Only this mode; may be given several times [default: every measured mode]
    #[arg(long, value_name = "MODE", value_parser = mode_parser())]
    pub mode: Vec<Mode>,

    /// What if: also price the change with another value, all of them together if given several times. A factor of the runs, such as
    /// istio.sidecar-scope=on, whose first value is priced; sidecar.cpu-request and sidecar.memory-request of each sidecar; waypoints,
    /// one per service (waypoints=service) or only those of some namespaces (waypoints=[shop,stores])
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    #[command(flatten)]
    pub prices: PricesArgs,

    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub files: AnswerFilesArgs,
}
