//! Options of `meshmeter history`.

use clap::{Args, Subcommand, ValueHint};
use results::{MAX_LABEL_CHARACTERS, is_acting};
use std::path::PathBuf;

/// Keep a history of finished runs, and show the course and the changes of each figure
///
/// A history is a file of JSON lines, a line per run, that is appended to. It shows how far runs of the same state differ, which no
/// run can show by itself: `meshmeter compare --history FILE` judges by it. Runs, results of `meshmeter load --json`, and results of
/// other load generators can be added (docs/compare.md).
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Subcommand.
    #[command(subcommand)]
    pub command: HistoryCommand,
}

/// Subcommands of `meshmeter history`.
#[derive(Debug, Subcommand)]
pub enum HistoryCommand {
    /// Add finished runs to a history
    ///
    /// Runs that were cut short or have no usable figure are not added. A run that the history has is not added again. Exit status:
    /// 1 if a run was not added because of what is wrong with it.
    #[command(after_help = "\
Examples:
  meshmeter history add history.jsonl runs/sidecar-cost-2026-11-20T10-00-00Z
  meshmeter history add history.jsonl runs/nightly --label \"$GITHUB_SHA\"")]
    Add(AddArgs),
    /// Show the course of each figure: changes, what changed with them, and where runs fall into two groups
    #[command(after_help = "\
Examples:
  meshmeter history show history.jsonl
  meshmeter history show history.jsonl --figure p99
  meshmeter history show history.jsonl --json")]
    Show(ShowArgs),
    /// Remove old runs from a history
    #[command(after_help = "\
Examples:
  meshmeter history prune history.jsonl --keep 200
  meshmeter history prune history.jsonl --before 2026-01-01")]
    Prune(PruneArgs),
}

/// Options of `meshmeter history add`.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// History; made if there is none
    #[arg(id = "added_to", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Directories of runs, or result files
    #[arg(value_name = "RUN", required = true, value_hint = ValueHint::AnyPath)]
    pub runs: Vec<PathBuf>,
    /// Commit or version of what was measured, shown at each change: at most 200 characters
    #[arg(long, value_name = "TEXT", value_parser = parse_label)]
    pub label: Option<String>,
}

/// Options of `meshmeter history show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// History
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Only figures whose key contains this, such as p99 or cpu
    #[arg(long, value_name = "TEXT")]
    pub figure: Option<String>,
    /// Print the course as JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `meshmeter history prune`.
#[derive(Debug, Args)]
pub struct PruneArgs {
    /// History
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Keep this many runs, the last ones of the file
    #[arg(long, value_name = "N", required_unless_present = "before", conflicts_with = "before")]
    pub keep: Option<usize>,
    /// Remove runs that started before this day or time, such as 2026-01-01 or 2026-01-01T12:00:00Z. Runs without a known start stay
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    pub before: Option<jiff::Timestamp>,
}

/// A label that can be shown beside other text.
fn parse_label(text: &str) -> Result<String, String> {
    if text.chars().any(is_acting) {
        return Err("it has a control character, or one that turns the direction of writing".to_owned());
    }
    match text.chars().count() {
        0..=MAX_LABEL_CHARACTERS => Ok(text.to_owned()),
        length => Err(format!("it has {length} characters; at most {MAX_LABEL_CHARACTERS} are accepted")),
    }
}

/// A day, from its beginning in UTC, or a time.
fn parse_date(text: &str) -> Result<jiff::Timestamp, String> {
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Ok(time);
    }
    format!("{text}T00:00:00Z")
        .parse()
        .map_err(|_| "expected a date such as 2026-01-01, or a time in RFC 3339".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_and_plain() {
        assert_eq!(parse_label("v1.2 (größer)").as_deref(), Ok("v1.2 (größer)"));
        assert!(parse_label(&"x".repeat(201)).unwrap_err().contains("201 characters"));
        for hostile in ["a\u{202e}b", "a\nb", "\u{1b}[2J"] {
            assert!(parse_label(hostile).unwrap_err().contains("control character"), "{hostile:?}");
        }
    }

    #[test]
    fn dates_are_days_or_times() {
        assert_eq!(parse_date("2026-01-01"), parse_date("2026-01-01T00:00:00Z"));
        assert!(parse_date("2026-01-01T12:00:00+02:00").unwrap() > parse_date("2026-01-01").unwrap());
        assert!(parse_date("yesterday").unwrap_err().contains("2026-01-01"));
    }
}
