//! Options of `meshmeter load` for how threads wait until a request is due.

use crate::cli::words::{one_of, word};
use clap::Args;
use clap::builder::TypedValueParser;
use results::Pacing;
use results::units::parse_duration;
use std::time::Duration;

/// Maximum of --lag-tolerance: beyond it requests would come in bursts, and be late by more than services
/// take.
const MAX_LAG_TOLERANCE: Duration = Duration::from_millis(10);

/// Options for pacing.
#[derive(Debug, Args)]
pub struct PacingArgs {
    /// How threads wait until a request is due
    #[arg(long, default_value = "auto", value_parser = pacing_parser(), help_heading = "Load")]
    pub pacing: Pacing,

    /// With --pacing economical: how late requests may usually be sent, so that one wake-up can send several.
    /// A longer tolerance uses less CPU; it is part of the response times, and recorded in the result
    #[arg(long, value_name = "TIME", value_parser = parse_tolerance, help_heading = "Load")]
    pub lag_tolerance: Option<Duration>,
}

fn pacing_parser() -> impl TypedValueParser<Value = Pacing> {
    one_of([
        (
            word(
                "economical",
                "Sleep; at high rates send up to 0.1 ms late, several at a time. Uses the least CPU",
            ),
            Pacing::Economical,
        ),
        (
            word(
                "precise",
                "Spin all the time, with the least lag. Needs a CPU per thread that nothing else uses",
            ),
            Pacing::Precise,
        ),
        (word("auto", "Sleep, and spin at the end if the machine has a CPU to spare"), Pacing::Auto),
    ])
}

fn parse_tolerance(text: &str) -> Result<Duration, String> {
    let tolerance = parse_duration(text).map_err(|error| error.to_string())?;
    if tolerance > MAX_LAG_TOLERANCE { Err("must be at most 10ms".to_owned()) } else { Ok(tolerance) }
}
