//! Options of `meshmeter load merge`.

use super::ResultFileArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Subcommands of `meshmeter load`.
#[derive(Debug, Subcommand)]
pub enum LoadCommand {
    /// Merge the results of several generators
    Merge(MergeArgs),
}

/// Merge what several generators measured at the same time, from the files that `meshmeter load --json`
/// wrote.
///
/// Counts and rates are added up, histograms merged completely: percentiles are those of all requests
/// together. The window extends from the earliest start to the latest end, by the clocks of the generators'
/// machines, which are assumed to agree. The result is valid if every part is, and all parts measured
/// together for at least nine tenths of the window. It does not depend on the order and grouping in which
/// results are merged.
///
/// Exit status: 0 the merged result is valid, 1 it is not, 2 a file is not such a result, 3 an output could
/// not be written.
#[derive(Debug, Args)]
#[command(after_help = "Example, on two machines with one start and then on one of them:\n  \
                        meshmeter load --start-at 2026-11-20T12:00:00Z --rate 5000 --series-histograms --json a.json \
                        http://10.0.0.1/\n  \
                        meshmeter load merge a.json b.json --json both.json")]
pub struct MergeArgs {
    /// Results, or merged results
    #[arg(required = true, num_args = 2.., value_name = "RESULT")]
    pub results: Vec<PathBuf>,

    #[command(flatten)]
    pub files: ResultFileArgs,
}
