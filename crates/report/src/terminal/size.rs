//! The answers of `meshmeter size` and `meshmeter price` on a terminal.

use super::style::{Options, bold, plain, wrap};
use super::tables::drawn_table;
use crate::format;
use crate::size::{AnswerParts, SizeParts};
use results::{PriceResult, SizeResult};
use std::fmt::Write as _;

/// The answer as text, ending with a line break. It includes refusals if there are answers; refusals without
/// any answer go to standard error.
#[must_use]
pub fn size_text(result: &SizeResult, options: Options) -> String {
    text(&SizeParts::new(result), options)
}

/// The answer of `meshmeter price` in the same form.
#[must_use]
pub fn price_text(result: &PriceResult, options: Options) -> String {
    text(&SizeParts::of_price(result), options)
}

/// Warnings, the headline if there is an answer, then the parts.
fn text(parts: &SizeParts, options: Options) -> String {
    let headline = Some(&parts.headline).filter(|_| !parts.answers.is_empty());
    let first = parts.warnings.iter().chain(headline).flat_map(|text| wrapped(text, options));
    let mut lines: Vec<String> = first.map(|line| bold(&line, options)).collect();
    lines.extend(wrapped(&parts.opening, options));
    for answer in &parts.answers {
        lines.push(String::new());
        lines.extend(answer_lines(answer, options));
    }
    if parts.answers.iter().any(|answer| !answer.rows.is_empty()) {
        if !parts.refusals.is_empty() {
            lines.push(String::new());
        }
        lines.extend(parts.refusals.iter().flat_map(|refusal| wrapped(refusal, options)));
        lines.push(String::new());
        lines.extend(wrapped(parts.scope, options));
        lines.extend(parts.formula.iter().flat_map(|line| wrapped(line, options)));
    }
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}

fn wrapped(text: &str, options: Options) -> Vec<String> {
    wrap(&format::unbroken(&plain(text)), options.width)
}

fn answer_lines(answer: &AnswerParts, options: Options) -> Vec<String> {
    let all_bold = |text: &str| -> Vec<String> {
        wrapped(text, options).iter().map(|line| bold(line, options)).collect()
    };
    let mut lines = all_bold(&answer.place);
    lines.extend(answer.said.iter().flat_map(|line| all_bold(line)));
    let rows = answer.rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect());
    lines.extend(drawn_table(&answer.header, rows, options));
    lines.extend(answer.basis.iter().flat_map(|line| wrapped(line, options)));
    lines.extend(answer.notes.iter().flat_map(|note| wrapped(&format!("· {note}"), options)));
    lines
}
