//! Options of `meshmeter doctor`.

use super::OverrideArgs;
use clap::Args;

/// See the command's help.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON on standard output
    #[arg(long)]
    pub json: bool,

    /// Look at a lab alone, from within: what the doctor starts as its child
    #[arg(long, hide = true)]
    pub within_lab: bool,

    /// Programs to look at instead of the installed ones.
    #[command(flatten)]
    pub overrides: OverrideArgs,
}
