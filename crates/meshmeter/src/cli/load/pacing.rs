//! Options of `meshmeter load` that say how its threads wait until something is due.

use clap::{Args, ValueEnum};
use load::Pacing;

/// See the module.
#[derive(Debug, Args)]
pub struct PacingArgs {
    /// How threads wait until a request is due
    #[arg(long, value_enum, default_value_t, help_heading = "Load")]
    pub pacing: PacingName,
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

impl From<PacingName> for Pacing {
    fn from(name: PacingName) -> Self {
        match name {
            PacingName::Economical => Self::Economical,
            PacingName::Precise => Self::Precise,
            PacingName::Auto => Self::Auto,
        }
    }
}
