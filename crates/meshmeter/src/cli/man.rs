//! Options of `meshmeter man`.

use clap::Args;
use std::path::PathBuf;

/// Write the manual pages, one per subcommand
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  meshmeter man --out ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Directory for the pages, created if missing
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}
