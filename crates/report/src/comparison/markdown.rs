//! A comparison as Markdown, for a pull request.

use super::{COLUMNS, Description};
use crate::markdown::{escape, folded, list};
use results::Comparison;
use std::fmt::Write as _;

/// Text of a comparison, ending with a line break.
#[must_use]
pub fn markdown(comparison: &Comparison) -> String {
    let description = Description::new(comparison);
    let mut text = format!("## {}: {}\n", escape(&comparison.name), escape(&description.headline));
    let important: Vec<&String> = description.worse.iter().chain(&description.failures).collect();
    if !important.is_empty() || !description.environment.is_empty() {
        text.push('\n');
        for line in &description.environment {
            let _ = writeln!(text, "- {}", escape(line));
        }
        for line in important {
            let _ = writeln!(text, "- **{}**", escape(line));
        }
    }
    if !description.rows.is_empty() {
        let line = |cells: &[&str; 8]| {
            let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let _ = write!(text, "\n{}|---|---|---|---:|---:|---:|---:|---:|\n", line(&COLUMNS));
        description.rows.iter().for_each(|row| text.push_str(&line(&row.cells())));
    }
    text + &folded("How this was measured", &list(description.notes.iter().map(String::as_str)))
}
