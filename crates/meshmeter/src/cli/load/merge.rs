//! Options of `meshmeter load merge`.

use super::ResultFileArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What else can be done with loads than to run one.
#[derive(Debug, Subcommand)]
pub enum LoadCommand {
    /// Add up the results of several generators
    Merge(MergeArgs),
}

/// Add up what several generators measured at the same time, from the files that `meshmeter load --json` wrote.
///
/// Counts and rates are added, histograms merged whole: percentiles are those of all requests together. The window reaches
/// from the earliest start to the latest end, by the clocks of the generators' machines, which are taken to agree. The sum
/// is valid where every part is and all measured together for nine tenths of the window or more. In whatever order and
/// groups results are merged, the sum is the same.
///
/// Exit status: 0 the sum is valid, 1 it is not, 2 a file is no such result, 3 an output could not be written.
#[derive(Debug, Args)]
#[command(after_help = "Example, on two machines with one start and then on one of them:\n  \
                        meshmeter load --start-at 2026-11-20T12:00:00Z --rate 5000 --series-histograms --json a.json \
                        http://10.0.0.1/\n  \
                        meshmeter load merge a.json b.json --json both.json")]
pub struct MergeArgs {
    /// Results, or sums of results
    #[arg(required = true, num_args = 2.., value_name = "RESULT")]
    pub results: Vec<PathBuf>,

    #[command(flatten)]
    pub files: ResultFileArgs,
}
