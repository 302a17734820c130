//! Options of `meshmeter load` that say how its threads wait until something is due.

use clap::{Args, ValueEnum};
use experiment::units::parse_duration;
use load::Pacing;
use std::time::Duration;

/// The most that --lag-tolerance may be: beyond it requests would come in bursts, and be late by more than services take.
const MAX_LAG_TOLERANCE: Duration = Duration::from_millis(10);

/// See the module.
#[derive(Debug, Args)]
pub struct PacingArgs {
    /// How threads wait until a request is due
    #[arg(long, value_enum, default_value_t, help_heading = "Load")]
    pub pacing: PacingName,

    /// With --pacing economical: how late requests may usually be sent, so that several go out at one wake. The longer, the
    /// less CPU; it is in the response times, and in the result
    #[arg(long, value_name = "TIME", value_parser = parse_tolerance, help_heading = "Load")]
    pub lag_tolerance: Option<Duration>,
}

/// How threads wait until a request is due.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum PacingName {
    /// Sleep; at high rates send up to 0.1 ms late, several at a time. Least CPU
    Economical,
    /// Spin all the time: least lag. For a CPU of its own for each thread that nobody else needs
    Precise,
    /// Sleep, and spin the last stretch as far as the machine has a CPU to spare
    #[default]
    Auto,
}

fn parse_tolerance(text: &str) -> Result<Duration, String> {
    let tolerance = parse_duration(text).map_err(|error| error.to_string())?;
    if tolerance > MAX_LAG_TOLERANCE { Err("must be at most 10ms".to_owned()) } else { Ok(tolerance) }
}

impl From<PacingName> for Pacing {
    fn from(name: PacingName) -> Self {
        match name {
            PacingName::Economical => Self::Economical,
            PacingName::Precise => Self::Precise,
            PacingName::Auto => Self::Auto,
        }
    }
}
