//! The answer of `meshmeter size --control-plane` on a terminal.

use super::style::{Options, bold, plain, wrap};
use crate::format;
use crate::sentences::control_plane_size::{
    control_plane_opening, control_plane_place, control_plane_sentences,
};
use results::ControlPlaneSize;
use std::fmt::Write as _;

/// Scope of every figure.
const SCOPE: &str =
    "Intervals are 95 % and cover these runs alone; other machines, versions and settings were not measured.";

/// The answer as text, ending with a line break. It includes refusals if there are answers; refusals without
/// any answer go to standard error.
#[must_use]
pub fn control_plane_size_text(result: &ControlPlaneSize, options: Options) -> String {
    let wrapped = |text: &str| wrap(&format::unbroken(&plain(text)), options.width);
    let warnings = result.notes.iter().flat_map(|note| wrapped(&note.text));
    let mut lines: Vec<String> = warnings.map(|line| bold(&line, options)).collect();
    lines.extend(wrapped(&control_plane_opening(result)));
    for answer in &result.answers {
        lines.push(String::new());
        lines.extend(wrapped(&control_plane_place(answer)).iter().map(|line| bold(line, options)));
        lines.extend(control_plane_sentences(result, answer).iter().flat_map(|line| wrapped(line)));
        lines.extend(answer.notes.iter().flat_map(|note| wrapped(&format!("· {}", note.text))));
    }
    if !result.answers.is_empty() {
        lines.push(String::new());
        let refusals = result.refusals.iter().map(|refusal| format!("Not answered. {}", refusal.text));
        lines.extend(refusals.flat_map(|refusal| wrapped(&refusal)));
        let published = result.published.iter().map(|figure| format!("Published: {figure}"));
        lines.extend(published.flat_map(|figure| wrapped(&figure)));
        lines.push(String::new());
        lines.extend(wrapped(SCOPE));
        lines.extend(result.formula.iter().flat_map(|line| wrapped(line)));
    }
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}
