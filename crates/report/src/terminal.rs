//! The result on a terminal: findings, a table per load, drivers and services if there are several, proxy
//! configuration and memory, and excluded trials.

mod control_plane_size;
mod disturbed;
mod fleet;
mod footprint;
mod load;
mod parts;
mod result_table;
mod search;
mod side_by_side;
mod size;
mod style;
mod tables;

pub use control_plane_size::control_plane_size_text;
pub use fleet::fleet_text;
pub use load::load_text;
pub(crate) use parts::parts;
pub(crate) use result_table::load_table;
pub use search::search_text;
pub use side_by_side::side_by_side_text;
pub use size::{price_text, size_text};
pub use style::Options;
pub(crate) use style::{GREEN, RED, WIDE, bold, plain, styled, wrap};

use crate::conditions::ConditionLabels;
use crate::format;
use crate::marks;
use crate::sentences;
use crate::table::ResultTable;
use result_table::STAR;
use results::{Cell, FindingKind, PublishedFigure, StatedFinding, Summary};
use std::fmt::Write as _;
use style::painted;

/// Kinds of findings whose details are lists of proxies, which the report has.
const LISTS: [FindingKind; 3] = [FindingKind::ProxyUsage, FindingKind::Footprint, FindingKind::Path];

/// Indentation of the detail of a finding.
const INDENT: &str = "    ";

/// The summary of a run as text, ending with a line break.
#[must_use]
pub fn render(summary: &Summary, options: Options) -> String {
    let table = ResultTable::new(summary);
    let mut text = String::new();
    let (headline, beside) = sentences::opening(summary);
    for line in crate::disturbed::accepted(summary).iter().flat_map(|noise| finding(noise, "", options)) {
        let _ = writeln!(text, "{line}");
    }
    if let Some(headline) = headline {
        for line in finding(&headline.text, "", options) {
            let _ = writeln!(text, "{}", bold(&line, options));
        }
        text.extend(finding(&headline.detail, INDENT, options).into_iter().map(|line| line + "\n"));
    }
    text.push('\n');
    text.push_str(&findings(&beside, options));
    for group in &table.groups {
        let _ = writeln!(text, "{}", bold(&plain(&group.load), options));
        let _ = writeln!(text, "{}\n", painted(&load_table(&table, &group.rows, options).trim_fmt()));
    }
    text.push_str(&parts(summary, options));
    text.push_str(&findings(&sentences::others(summary), options));
    for line in published(summary).into_iter().chain(footer(summary, &table, options)) {
        if line.is_empty() {
            text.push('\n');
        }
        for wrapped in wrap(&plain(&line), options.width) {
            let _ = writeln!(text, "{wrapped}");
        }
    }
    text
}

/// A list of findings followed by a blank line; empty without findings.
fn findings(findings: &[&StatedFinding], options: Options) -> String {
    let lines = |stated: &&StatedFinding| {
        let detail = Some(&stated.detail).filter(|_| !LISTS.contains(&stated.finding.kind()));
        let detail = detail.map_or_else(Vec::new, |detail| finding(detail, INDENT, options));
        finding(&stated.text, "· ", options).into_iter().chain(detail)
    };
    let text: String = findings.iter().flat_map(lines).map(|line| line + "\n").collect();
    if text.is_empty() { text } else { text + "\n" }
}

/// Lines of a text; continuation lines are indented to the text of the first.
fn finding(text: &str, mark: &str, options: Options) -> Vec<String> {
    let indent = mark.chars().count();
    let lines = wrap(&format::unbroken(&plain(text)), options.width.saturating_sub(indent));
    let lead = |index: usize| if index == 0 { mark.to_owned() } else { " ".repeat(indent) };
    lines.into_iter().enumerate().map(|(index, line)| lead(index) + &line).collect()
}

/// Published figures beside this run's, one line each, and what differs once per source. Empty if the run has
/// none.
pub(crate) fn published(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    if summary.published.iter().all(|figure| figure.measured.is_none()) {
        return lines;
    }
    let mut source: Option<&PublishedFigure> = None;
    for figure in &summary.published {
        if source.is_none_or(|last| (&last.source, &last.differs) != (&figure.source, &figure.differs)) {
            let differs = Some(&figure.differs).filter(|differs| !differs.is_empty());
            let differs = differs.map(|differs| format!(" What differs: {differs}.")).unwrap_or_default();
            lines.push(format!("Published by {}.{differs}", figure.source));
            source = Some(figure);
        }
        let ratio = figure.ratio.map(|ratio| format!(" (×{ratio:.2})")).unwrap_or_default();
        let agrees = match format::agreement(figure) {
            Some(agreement) => format!("; {agreement}"),
            None => String::new(),
        };
        let here = figure.measured.as_deref().unwrap_or(format::ABSENT);
        lines.push(format!("· {}: {}; here {here}{ratio}{agrees}", figure.what, figure.value));
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// Trials, marks and excluded trials behind the tables.
pub(crate) fn footer(summary: &Summary, table: &ResultTable, options: Options) -> Vec<String> {
    let mut lines = Vec::new();
    let valid: usize = summary.cells.iter().map(|cell| cell.valid).sum();
    let mut trials = format!(
        "{} recorded of {} planned, {valid} valid.",
        format::counted(summary.places_recorded() as u64, "trial", "trials"),
        summary.trials_planned
    );
    if let Some(retakes) = summary.retakes.filter(|retakes| retakes.taken > 0) {
        let _ = write!(trials, " {} rerun (+), because the machine had disturbed them.", retakes.taken);
    }
    if !table.shared_load.is_empty() {
        let _ = write!(trials, " {}.", table.shared_load);
    }
    lines.push(trials);
    for version in summary.host.versions.iter().filter(|version| version.named_by.is_some()) {
        lines.push(format!("Not the installed one: {}.", format::named_program(version)));
    }
    if valid > 0 && !table.groups.is_empty() {
        let place = if options.width >= WIDE { "beside" } else { "under" };
        lines.push(format!(
            "{} from the intended start of each request; {place} each estimate its 95 % interval in this run. \
             CPU and memory are of all proxies together, ± to the farther end of their interval.",
            table.times()
        ));
    }
    if !table.not_measured.is_empty() {
        lines.push(format!("Not measured: {}.", table.not_measured.join("; ")));
    }
    lines.extend(marks::notes(summary).into_iter().map(|note| format!("{STAR} {note}.")));
    let labels = ConditionLabels::new(summary.cells.iter().map(Cell::conditions));
    for cell in summary.cells.iter().filter(|cell| cell.excluded > 0) {
        let load = labels.label(cell.conditions());
        let why = if cell.valid == 0 { format!(": {}", cell.verdict) } else { String::new() };
        let trials = format::counted(cell.trials as u64, "trial", "trials");
        let again = match cell.retakes {
            0 => String::new(),
            retakes => format!(" ({retakes} rerun)"),
        };
        lines.push(format!("Excluded: {} of {trials}{again} of {} at {load}{why}", cell.excluded, cell.mode));
    }
    lines
}
