//! Options of `meshmeter load` that say what is asked of the figures.

use clap::Args;
use experiment::Objective;

/// See the module.
#[derive(Debug, Args)]
pub struct ObjectiveArgs {
    /// What must hold, such as p99=5ms,errors=0.1%; missing it is exit status 1. Response times at most: mean, p50, p75, p90,
    /// p95, p99, p99.9, p99.99, max. Failed requests at most: errors. Completed a second at least: rate. Completed of the
    /// offered rate at least: achieved
    #[arg(long, value_name = "FIGURE=BOUND,…", value_parser = str::parse::<Objective>, help_heading = "Objective")]
    pub objective: Option<Objective>,
}
