//! Two runs side by side on a terminal.

use super::style::{Options, bold, plain, wrap};
use super::tables::drawn_table;
use crate::side_by_side::SideBySide;

/// The comparison as text, ending with a line break.
#[must_use]
pub fn side_by_side_text(compared: &SideBySide, options: Options) -> String {
    let [first, second] = &compared.environments;
    let mut lines = vec![bold(&plain(&format!("{} side by side", compared.name)), options)];
    lines.extend(wrap(&plain(&format!("A: {first}")), options.width));
    lines.extend(wrap(&plain(&format!("B: {second}")), options.width));
    let mut cell = "";
    let mut rows = Vec::new();
    for row in &compared.rows {
        if row.cell != cell {
            cell = &row.cell;
            rows.push(vec![plain(cell)]);
        }
        let [one, other, ratio] = row.texts.clone();
        rows.push(vec![format!("  {}, {}", row.figure, row.unit), one, other, ratio]);
    }
    if !rows.is_empty() {
        lines.push(String::new());
        let header = ["", "A", "B", "B/A"].map(str::to_owned);
        lines.extend(drawn_table(&header, rows.into_iter(), options));
    }
    if !compared.differences.is_empty() {
        lines.push(String::new());
        lines.push(bold("What differs", options));
        for difference in &compared.differences {
            let [one, other] = &difference.values;
            let text = format!("{}: A: {one}; B: {other}", difference.what);
            lines.extend(wrap(&plain(&text), options.width));
        }
    }
    let others = compared.explanations.iter().copied().chain(compared.unmatched.iter().map(String::as_str));
    for (index, text) in others.enumerate() {
        if index == 0 {
            lines.push(String::new());
        }
        lines.extend(wrap(&plain(&format!("· {text}")), options.width));
    }
    lines.join("\n") + "\n"
}
