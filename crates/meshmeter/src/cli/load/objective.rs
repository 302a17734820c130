//! Options of `meshmeter load` for the objective.

use clap::Args;
use experiment::Objective;

/// Options for the objective.
#[derive(Debug, Args)]
pub struct ObjectiveArgs {
    /// Objective, such as p99=5ms,errors=0.1%; exit status 1 if it is missed. Maximum response times: mean,
    /// p50, p75, p90, p95, p99, p99.9, p99.99, max. Maximum fraction of failed requests: errors. Minimum
    /// completed requests per second: rate. Minimum completed fraction of the offered rate: achieved. Of streams of events also
    /// times to the first byte, to the first event and from one event to the next: first-byte-p99, first-event-p99, event-gap-p99 …
    #[arg(long, value_name = "FIGURE=BOUND,…", value_parser = str::parse::<Objective>, help_heading = "Objective")]
    pub objective: Option<Objective>,
}
