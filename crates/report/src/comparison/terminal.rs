//! A comparison on the terminal.

use super::{COLUMNS, Description};
use crate::terminal::{GREEN, Options, RED, plain, styled};
use results::{Comparison, ComparisonVerdict, FigureVerdict};
use std::fmt::Write as _;

/// Text of a comparison, ending with a line break.
#[must_use]
pub fn text(comparison: &Comparison, options: Options) -> String {
    let description = Description::new(comparison);
    let mut text = String::new();
    let headline = styled(&plain(&description.headline), colour(comparison.verdict), options);
    let _ = writeln!(text, "{}: {headline}", plain(&comparison.name));
    for line in description.environment.iter().chain(&description.worse).chain(&description.failures) {
        let _ = writeln!(text, "  {}", plain(line));
    }
    if !description.rows.is_empty() {
        text.push('\n');
        text.push_str(&table(&description, comparison, options));
    }
    text.push('\n');
    for note in &description.notes {
        let _ = writeln!(text, "{}", plain(note));
    }
    text
}

fn table(description: &Description, comparison: &Comparison, options: Options) -> String {
    let rows: Vec<[&str; 8]> = description.rows.iter().map(super::Row::cells).collect();
    let mut lines = aligned(&COLUMNS, &rows).into_iter();
    let mut text = lines.next().unwrap_or_default() + "\n";
    for (line, figure) in lines.zip(&comparison.figures) {
        let colour = match figure.verdict {
            FigureVerdict::Worse => Some(RED),
            FigureVerdict::Better => Some(GREEN),
            FigureVerdict::Inconclusive | FigureVerdict::Equivalent => None,
        };
        text.push_str(&styled(&plain(&line), colour, options));
        text.push('\n');
    }
    text
}

/// Header and rows in columns as wide as their widest text, two spaces apart.
pub(super) fn aligned<const N: usize>(header: &[&str; N], rows: &[[&str; N]]) -> Vec<String> {
    let all = || [header].into_iter().chain(rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |cells: &[&str; N]| {
        let padded: Vec<String> =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    all().map(line).collect()
}

fn colour(verdict: ComparisonVerdict) -> Option<&'static str> {
    match verdict {
        ComparisonVerdict::Worse | ComparisonVerdict::Failed => Some(RED),
        ComparisonVerdict::Better | ComparisonVerdict::Equivalent => Some(GREEN),
        ComparisonVerdict::Inconclusive => None,
    }
}
