//! Options of `meshmeter compare`.

use super::{AutomationArgs, OverrideArgs, ReleaseArgs, TrialArgs};
use clap::{Args, ValueHint};
use results::units::{parse_duration, parse_fraction};
use std::path::PathBuf;
use std::time::Duration;

/// Value of `--budget` without the option.
const DEFAULT_BUDGET: Duration = Duration::from_mins(10);

/// Compare two sets of settings in one run, or finished runs, and say what got worse, better, or stayed equivalent
///
/// Base and head are two Envoys, two releases of Istio, or two values of any key of the experiment. Each repeat measures every
/// mode and load with the base, with the head, and with the base once more: the control. After each repeat every figure is
/// judged: worse, better, equivalent (within a margin), or inconclusive. The comparison ends as soon as all figures are decided,
/// or when the budget is spent. If nothing changed, at most 3 in 100 comparisons call any figure worse or better, however often
/// they look. Where the control differs from the base, the machine drifted, and the figure is inconclusive.
///
/// --self-test compares this machine with itself, without a change and with known ones, and counts what was said: false alarms,
/// and effects found.
///
/// Memory is compared by anonymous memory, which does not depend on the page cache. Modes that the settings cannot change, such
/// as `none` with two Envoys, are not measured. A comparison runs in a lab on this machine. docs/compare.md has examples for
/// GitHub Actions and GitLab CI.
///
/// Trials that other programs disturbed are in no verdict. There is no --accept-noise, as in `meshmeter run`: noise would decide
/// a gate, whose exit status cannot say so.
///
/// Without --base and --head, finished runs are compared: directories of runs, results of `meshmeter load --json`, and results of
/// fortio, k6, wrk, wrk2, oha, vegeta, nighthawk and HdrHistogram logs. The first one is the base, and each other one a head. How
/// far runs of the same state differ is unknown from two runs: a history (`meshmeter history add`) shows it. With --history the
/// given runs, or without any the newest one of the history, are judged by its runs of the same environment since the last change
/// of each figure.
///
/// Exit status: 0 no figure is worse, 1 data are missing or the comparison was interrupted, 2 usage error, 3 the environment
/// failed, 4 a figure is worse, 5 a figure is inconclusive and --strict is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  meshmeter compare --base components.envoy=/opt/envoy-1.35 --head components.envoy=/opt/envoy-1.36 sidecar-cost
  meshmeter compare --base proxy.workers=1 --head proxy.workers=2 sidecar-cost --set load.rate=[1000]
  meshmeter compare --base components.istio=1.29.4 --head components.istio=1.30.4 mesh-modes --set modes=[none,sidecar]
  meshmeter compare --base proxy.mtls=true --head proxy.mtls=false sidecar-cost --margin 2% --budget 20m
  meshmeter compare --base before.yaml --head after.yaml --strict --junit compare.xml
  meshmeter compare --resume runs/upgrade
  meshmeter compare --self-test --budget 1h
  meshmeter compare --base proxy.workers=1 --head proxy.workers=2 sidecar-cost --dry-run
  meshmeter compare runs/before runs/after
  meshmeter compare fortio-before.json fortio-after.json
  meshmeter compare --history history.jsonl runs/today --strict --markdown compare.md")]
pub struct CompareArgs {
    /// Preset study, or experiment file; none if base and head are files. Of finished runs: the base, or with --history a run
    #[arg(value_name = "STUDY|FILE|RUN", value_hint = ValueHint::AnyPath)]
    pub experiment: Option<String>,

    /// Of finished runs: further ones
    #[arg(value_name = "RUN", value_hint = ValueHint::AnyPath, conflicts_with_all = ["base", "head"])]
    pub further: Vec<String>,

    /// Setting of the base, such as proxy.workers=1; may be given several times. Without a study: its experiment file
    #[arg(long, value_name = "KEY=VALUE|FILE", value_hint = ValueHint::AnyPath, requires = "head")]
    pub base: Vec<String>,

    /// Setting of the head, which is judged; may be given several times. Without a study: its experiment file
    #[arg(long, value_name = "KEY=VALUE|FILE", value_hint = ValueHint::AnyPath, requires = "base")]
    pub head: Vec<String>,

    /// Relative difference up to which base and head count as equivalent, such as 2% [default: by figure, the smallest that
    /// this machine resolves by its calibration, otherwise 3%]
    #[arg(long, value_name = "M", value_parser = parse_margin)]
    pub margin: Option<f64>,

    /// Time for all trials, without --calibrate: no repeat begins that would probably exceed it. Of a self-test, time for all
    /// comparisons [default: 10m]
    #[arg(long, value_name = "D", value_parser = parse_budget)]
    pub budget: Option<Duration>,

    /// Measure each cell at most this many times, at least 4 [default: as often as the budget allows, at most 100; for each
    /// comparison of a self-test 12]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(4..=100))]
    pub repeats: Option<u16>,

    /// Continue the comparison in DIR, which was interrupted or killed, with the trials that it still lacks. It makes the looks
    /// that were planned, and none besides. On another machine, or with other programs, it is refused
    #[arg(
        long,
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        conflicts_with_all = ["experiment", "further", "history", "across_environments", "base", "head", "margin", "budget", "out", "overwrite", "repeats", "dry_run",
            "retakes", "duration", "pacing", "noise_floor", "calibrate", "scale", "set", "seed"]
    )]
    pub resume: Option<PathBuf>,

    /// Test the comparison on this machine: compare an experiment of its own (sidecar, 500 requests/s) with itself, then with a
    /// server and with proxies that compute longer, again and again, and count what was said. Prints a table, or JSON
    #[arg(
        long,
        conflicts_with_all = ["experiment", "further", "history", "across_environments", "base", "head", "resume", "strict", "dry_run", "overwrite", "junit", "markdown"]
    )]
    pub self_test: bool,

    /// Known effect of a self-test, relative to the median and to the CPU of the proxies
    #[arg(long, value_name = "F", default_value = "5%", value_parser = parse_margin, requires = "self_test")]
    pub effect: f64,

    /// Exit with status 5 if a figure is inconclusive
    #[arg(long)]
    pub strict: bool,

    /// Print every trial that could run, in order, and the margins, and stop
    #[arg(long)]
    pub dry_run: bool,

    /// Directory for the comparison [default: runs/<name>-<time>]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,

    /// Replace an earlier comparison or run in that directory
    #[arg(long, requires = "out")]
    pub overwrite: bool,

    #[command(flatten)]
    pub trials: TrialArgs,

    /// Of finished runs: judge them by this history; without runs, judge its newest one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["base", "head"])]
    pub history: Option<PathBuf>,

    /// Of finished runs: compare them although their machines, kernels, versions, studies or loads differ
    #[arg(long, conflicts_with_all = ["base", "head"])]
    pub across_environments: bool,

    /// Print comparison.json instead of a table
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub automation: AutomationArgs,

    #[command(flatten)]
    pub releases: ReleaseArgs,

    /// Programs to run instead of the installed ones, in base and head.
    #[command(flatten)]
    pub overrides: OverrideArgs,
}

impl CompareArgs {
    /// Time for all trials, or of a self-test for all comparisons.
    pub fn budget(&self) -> Duration {
        self.budget.unwrap_or(DEFAULT_BUDGET)
    }

    /// True if nothing is measured: no settings are given to compare.
    pub fn is_of_finished_runs(&self) -> bool {
        self.base.is_empty() && self.head.is_empty() && !self.self_test && self.resume.is_none()
    }
}

fn parse_margin(text: &str) -> Result<f64, String> {
    let margin = parse_fraction(text).map_err(|error| error.to_string())?;
    if margin > 0.0 { Ok(margin) } else { Err("expected more than 0, such as 2%".to_owned()) }
}

fn parse_budget(text: &str) -> Result<Duration, String> {
    let budget = parse_duration(text).map_err(|error| error.to_string())?;
    if budget.is_zero() { Err("expected more than 0, such as 10m".to_owned()) } else { Ok(budget) }
}
