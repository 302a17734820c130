//! Options of `meshmeter size`.

use super::NoiseArgs;
use super::words::one_of;
use clap::builder::TypedValueParser;
use clap::{Args, ValueHint, value_parser};
use experiment::Objective;
use experiment::settings::fleet::{ChangeKind, ProxyKinds};
use results::Mode;
use results::units::{Churn, UnitError, parse_cores, parse_fraction, parse_rate, parse_size};
use std::path::PathBuf;

/// Compute how many replicas of a proxy a target needs, their size and cost, from measured runs
///
/// With --control-plane: the CPU and memory of istiod for a mesh with a given number of services and pods,
/// under a given rate of changes.
///
/// Works for gateways, sidecars, waypoints and ztunnels, from the directory of any run. Capacity is what one
/// replica carried. In a closed loop it is the greatest throughput that meets the objective, or where it is crossed.
/// In an open loop it is the rate at which the objective is crossed, between two measured rates; without an
/// objective, the completed rate at the lowest rate that was not kept up with. Every figure has its 95 %
/// confidence interval, which covers only the given runs. What the runs do not support is reported and never
/// extrapolated. Exit status 1: the runs do not answer the question.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meshmeter size --target 50000rps --from runs/ingress-capacity
  meshmeter size --target 345M/day --objective p99=20ms --headroom 30% --from runs/ingress-capacity
  meshmeter size --target 20k --cpu-hour 0.04 --gb-hour 0.005 --mode sidecar --from runs/sidecar-cost --json
  meshmeter size --target 50000rps --prices prices.yaml --from runs/small --from runs/large
  meshmeter size --control-plane --services 3000 --pods 12000 --churn 5/min --istiod-cpu 4 --from runs/control-plane
  meshmeter size --control-plane --services 800 --pods 1600 --churn 25%/m --change service-entry=10/h --prices prices.yaml \
    --from runs/control-plane

Prices file:
  cpu-hour: 0.04           # of a core
  gb-hour: 0.005           # of 1 000 000 000 bytes of memory
  per-replica-hour: 0      # whatever its size; of an istiod too
  currency: USD")]
pub struct SizeArgs {
    /// Total requests, such as 50000rps, 1.2Mrps, 345M/day
    #[arg(long, value_name = "RATE", value_parser = parse_rate, required_unless_present = "control_plane")]
    pub target: Option<f64>,

    /// Directories of runs; several must be from one machine
    #[arg(long, value_name = "RUN", required = true, num_args = 1.., value_hint = ValueHint::DirPath)]
    pub from: Vec<PathBuf>,

    /// Objective at the target, such as p99=20ms,errors=0.1%, or none [default: the objective of the first
    /// run, if it has one]
    #[arg(long, value_name = "FIGURE=BOUND,…", value_parser = parse_objective)]
    pub objective: Option<Objective>,

    /// Share of each replica's capacity that stays free at the target
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = parse_headroom)]
    pub headroom: f64,

    /// Only this mode [default: every mode with proxies]
    #[arg(long, value_name = "MODE", value_parser = mode_parser())]
    pub mode: Option<Mode>,

    /// Only this proxy, such as gateway, client-proxy, waypoint or ztunnel [default: the gateway of a mode
    /// that has one, otherwise every proxy of the mode]
    #[arg(long, value_name = "NAME")]
    pub component: Option<String>,

    /// Only responses of this size, such as 4KiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub payload: Option<u64>,

    #[command(flatten)]
    pub noise: NoiseArgs,

    #[command(flatten)]
    pub prices: PricesArgs,

    #[command(flatten)]
    pub mesh: MeshArgs,

    /// Print the result as JSON, with every input and the formula
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub files: AnswerFilesArgs,
}

/// Files with the answer of `size` or `price`.
#[derive(Debug, Args)]
pub struct AnswerFilesArgs {
    /// Write the answer to this file as a page (HTML)
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Write the answer to this file as Markdown, for a comment or "$GITHUB_STEP_SUMMARY"
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub markdown: Option<PathBuf>,
}

/// Prices per hour.
#[derive(Debug, Args)]
#[command(next_help_heading = "Prices")]
pub struct PricesArgs {
    /// YAML file with prices
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["cpu_hour", "gb_hour"])]
    pub prices: Option<PathBuf>,

    /// Price of a core per hour
    #[arg(long, value_name = "PRICE", value_parser = parse_price, requires = "gb_hour")]
    pub cpu_hour: Option<f64>,

    /// Price of a GB (1 000 000 000 bytes) of memory per hour
    #[arg(long, value_name = "PRICE", value_parser = parse_price, requires = "cpu_hour")]
    pub gb_hour: Option<f64>,

    /// Currency of --cpu-hour and --gb-hour, such as USD
    #[arg(long, value_name = "NAME", requires = "cpu_hour")]
    pub currency: Option<String>,
}

/// Mesh that a control plane should serve.
#[derive(Debug, Args)]
#[command(next_help_heading = "Control plane")]
pub struct MeshArgs {
    /// Compute what istiod needs for a mesh, from runs of `meshmeter run control-plane` that varied its size
    /// and changes
    #[arg(long, conflicts_with_all = ["target", "objective", "mode", "component", "payload", "accept_noise", "output", "markdown"],
          requires = "services", requires = "pods")]
    pub control_plane: bool,

    /// Number of services in the mesh
    #[arg(long, value_name = "N", requires = "control_plane", value_parser = value_parser!(u64).range(1..))]
    pub services: Option<u64>,

    /// Number of pods in the mesh
    #[arg(long, value_name = "N", requires = "control_plane", value_parser = value_parser!(u64).range(1..))]
    pub pods: Option<u64>,

    /// Connected proxies [default: as many as pods]
    #[arg(long, value_name = "N", requires = "control_plane", value_parser = value_parser!(u64).range(1..))]
    pub proxies: Option<u64>,

    /// Rate at which pods come, go or are replaced, such as 5/min, 2/s, or 25%/m of the pods
    #[arg(long, value_name = "RATE", requires = "control_plane", value_parser = parse_changes)]
    pub churn: Option<Churn>,

    /// Rate of other changes, such as virtual-service=2/min or service-entry=10/h, by a kind that the runs
    /// made
    #[arg(long, value_name = "KIND=RATE", requires = "control_plane", value_parser = parse_change)]
    pub change: Vec<(String, f64)>,

    /// Only fleets of this kind, such as sidecar or ztunnel [default: every kind of the runs]
    #[arg(long, value_name = "KIND", requires = "control_plane", value_parser = parse_kinds)]
    pub kind: Option<ProxyKinds>,

    /// Sidecars only receive their own namespace; number of namespaces, which share services and pods evenly
    #[arg(long, value_name = "NAMESPACES", requires = "control_plane", value_parser = value_parser!(u64).range(1..))]
    pub scope: Option<u64>,

    /// CPU limit of an istiod, such as 2 or 500m: determines how many share the proxies
    #[arg(long, value_name = "CORES", requires = "control_plane", value_parser = parse_cores)]
    pub istiod_cpu: Option<f64>,

    /// Memory limit of an istiod, such as 4GiB: determines how many share the proxies
    #[arg(long, value_name = "SIZE", requires = "control_plane", value_parser = parse_size)]
    pub istiod_memory: Option<u64>,
}

/// A rate of pods, as in experiments, or changes per minute.
fn parse_changes(text: &str) -> Result<Churn, String> {
    let per_minute =
        text.strip_suffix("/min").or_else(|| text.strip_suffix("/m").filter(|rate| !rate.ends_with('%')));
    if let Some(rate) = per_minute {
        let rate = rate.trim().parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate >= 0.0);
        return rate
            .map(|rate| Churn::PodsPerSecond(rate / 60.0))
            .ok_or_else(|| "expected changes per minute, such as 5/min".to_owned());
    }
    text.parse().map_err(|error: UnitError| format!("{error}; or changes per minute, such as 5/min"))
}

/// A kind of change of the mesh, with changes per second.
fn parse_change(text: &str) -> Result<(String, f64), String> {
    let expected = || "expected a kind of change and its rate, such as service-entry=10/h".to_owned();
    let (kind, rate) = text.split_once('=').ok_or_else(expected)?;
    let known = || ChangeKind::ALL.into_iter().filter(|kind| kind.is_of_mesh()).map(ChangeKind::name);
    if !known().any(|name| name == kind) {
        return Err(format!("expected one of {}", known().collect::<Vec<_>>().join(", ")));
    }
    let units = [("/s", 1.0), ("/min", 60.0), ("/h", 3600.0)];
    let found = units.iter().find_map(|(unit, seconds)| Some((rate.strip_suffix(unit)?, *seconds)));
    let (count, seconds) = found.ok_or_else(expected)?;
    let count = count.trim().parse::<f64>().ok().filter(|count| count.is_finite() && *count >= 0.0);
    Ok((kind.to_owned(), count.ok_or_else(expected)? / seconds))
}

fn parse_kinds(text: &str) -> Result<ProxyKinds, String> {
    text.parse().map_err(|error: UnitError| error.to_string())
}

fn parse_objective(text: &str) -> Result<Objective, String> {
    if text == "none" {
        return Ok(Objective::default());
    }
    let objective: Objective =
        text.parse().map_err(|error: experiment::objective::ObjectiveError| error.to_string())?;
    match (objective.rate, objective.achieved) {
        (None, None) => Ok(objective),
        _ => {
            Err("rate and achieved are what --target asks for: expected bounds of times and errors"
                .to_owned())
        }
    }
}

fn parse_headroom(text: &str) -> Result<f64, String> {
    let share = parse_fraction(text).map_err(|error| error.to_string())?;
    if share <= 0.95 {
        Ok(share)
    } else {
        Err("expected at most 95%: nothing would be left to use".to_owned())
    }
}

fn parse_price(text: &str) -> Result<f64, String> {
    let price = text.trim().parse::<f64>().ok().filter(|price| price.is_finite() && *price >= 0.0);
    price.ok_or_else(|| "expected an amount per hour, such as 0.04".to_owned())
}

/// Modes with proxies.
pub(super) fn mode_parser() -> impl TypedValueParser<Value = Mode> {
    let modes = Mode::ALL.into_iter().filter(|mode| mode.floor().is_some());
    one_of(modes.map(|mode| (mode.name().into(), mode)))
}
