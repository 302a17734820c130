//! A run as Markdown, for comments and summaries of CI systems: findings, tables, excluded trials, the
//! machine.
//!
//! Tables and lines are those of [`crate::terminal`]. What does not fit into a comment is left to
//! `report.html`.

use crate::RunData;
use crate::disturbed;
use crate::format;
use crate::sentences;
use crate::size::SizeParts;
use crate::table::{LoadGroup, ResultTable};
use crate::terminal::{self, Options, WIDE, plain};
use results::{Host, PriceResult, SizeResult, StatedFinding};
use statistics::{is_missed, objective_met};

/// GitHub rejects comments of more than 65 536 characters.
const MAX_LENGTH: usize = 60_000;
/// The Markdown renderer lays out tables, so no line is broken here.
const LAYOUT: Options = Options { width: WIDE, colours: false };

/// Width of the tables in a block of code, which scrolls: no difference is broken.
const PARTS: usize = 200;

/// The Markdown page of a run.
#[must_use]
pub fn render(run: &RunData) -> String {
    let summary = &run.summary;
    let table = ResultTable::new(summary);
    let (headline, beside) = sentences::opening(summary);
    let mut page = Page::default();
    page.add(&format!("## {}\n\n{}\n", escape(&summary.name), escape(&summary.question)));
    page.add(&disturbed::accepted(summary).map(|text| format!("\n{}\n", escape(&text))).unwrap_or_default());
    page.add(&headline.map(|headline| format!("\n**{}**\n", escape(&headline.text))).unwrap_or_default());
    let detail = headline.map(|headline| headline.detail.as_str()).filter(|detail| !detail.is_empty());
    page.add(&detail.map(|detail| format!("\n{}\n", escape(detail))).unwrap_or_default());
    page.add(objective(run));
    page.add(&findings(&beside));
    for group in &table.groups {
        page.add(&load(&table, group));
    }
    page.add(&folded("Further findings", &findings(&sentences::others(summary))));
    let parts = terminal::parts(summary, Options { width: PARTS, ..LAYOUT });
    if !parts.is_empty() {
        page.add(&folded(
            "Further tables",
            &format!("\n```text\n{}\n```\n", parts.trim_end().replace("```", "'''")),
        ));
    }
    page.add(&folded("Published figures", &list(terminal::published(summary).iter().map(String::as_str))));
    page.add(&list(terminal::footer(summary, &table, LAYOUT).iter().map(String::as_str)));
    page.end(&machine(&run.host))
}

/// An answer of `meshmeter size` as Markdown.
#[must_use]
pub fn render_size(result: &SizeResult) -> String {
    sized(&SizeParts::new(result))
}

/// An answer of `meshmeter price` as Markdown.
#[must_use]
pub fn render_price(result: &PriceResult) -> String {
    sized(&SizeParts::of_price(result))
}

fn sized(parts: &SizeParts) -> String {
    let mut page = Page::default();
    let first = parts.warnings.iter().chain([&parts.headline]);
    first.for_each(|text| page.add(&format!("**{}**\n\n", escape(text))));
    let lines = |texts: &[String]| list(texts.iter().map(String::as_str));
    page.add(&format!("{}\n", escape(&parts.opening)));
    for answer in &parts.answers {
        page.add(&format!("\n## {}\n", escape(&answer.place)));
        answer.said.iter().for_each(|text| page.add(&format!("\n**{}**\n", escape(text))));
        let cells = |cells: &[String]| cells.iter().map(|cell| escape(cell)).collect::<Vec<_>>();
        let rows = answer.rows.iter().map(|row| cells(row));
        page.add(&format!("\n{}", rendered(cells(&answer.header), rows)));
        page.add(&lines(&answer.basis));
        page.add(&lines(&answer.notes));
    }
    page.add(&lines(&parts.refusals));
    page.add(&folded("Formula", &lines(&parts.formula)));
    page.end(&format!("\n{}\n", escape(parts.scope)))
}

/// Text of limited length.
#[derive(Default)]
struct Page {
    text: String,
    left_out: usize,
}

impl Page {
    /// Adds a part if it still fits.
    fn add(&mut self, part: &str) {
        if self.text.len() + part.len() > MAX_LENGTH {
            self.left_out += 1;
        } else {
            self.text.push_str(part);
        }
    }

    fn end(self, last: &str) -> String {
        let left_out = match self.left_out {
            0 => String::new(),
            parts => format!(
                "\n{} not shown here: see report.html.\n",
                format::counted(parts as u64, "part is", "parts are")
            ),
        };
        self.text + &left_out + last
    }
}

/// A list of findings, each with its detail beneath it.
fn findings(findings: &[&StatedFinding]) -> String {
    let detail = |detail: &str| format!("<br><sub>{}</sub>", escape(detail));
    let lines = findings.iter().map(|stated| {
        let detail = Some(stated.detail.as_str()).filter(|text| !text.is_empty()).map(detail);
        format!("- {}{}\n", escape(&stated.text), detail.unwrap_or_default())
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

pub(crate) fn list<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items = items.into_iter().filter(|item| !item.is_empty());
    let lines: String = items.map(|item| format!("- {}\n", escape(item.trim_start_matches("· ")))).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

pub(crate) fn folded(title: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!("\n<details><summary>{title}</summary>\n{content}\n</details>\n")
}

/// Whether every cell met the objective; empty without an objective. A finding names the cells that did not,
/// and why.
fn objective(run: &RunData) -> &'static str {
    if run.experiment.objective.is_empty() {
        return "";
    }
    match (objective_met(&run.experiment, &run.summary).is_good(), is_missed(&run.summary)) {
        (true, _) => "\n**Objective: met**\n",
        (false, true) => "\n**Objective: not met**\n",
        (false, false) => "\n**Objective: not shown to be met**\n",
    }
}

/// The table of one load.
fn load(table: &ResultTable, group: &LoadGroup) -> String {
    let drawn = terminal::load_table(table, &group.rows, LAYOUT);
    let cells = |row: &comfy_table::Row| -> Vec<String> {
        row.cell_iter().map(|cell| escape(&cell.content())).collect()
    };
    let header = drawn.header().map(cells).unwrap_or_default();
    format!("\n**{}**\n\n{}", escape(&group.load), rendered(header, drawn.row_iter().map(cells)))
}

/// A table of escaped cells. Figures are right-aligned, as on the terminal.
fn rendered(header: Vec<String>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule = (0..header.len()).map(|index| if index == 0 { "---" } else { "---:" }.to_owned()).collect();
    let rows: String = rows.map(line).collect();
    format!("{}{}{rows}", line(header), line(rule))
}

/// One line: the machine and the versions.
fn machine(host: &Host) -> String {
    let versions: Vec<String> = host
        .versions
        .iter()
        .map(|version| format!("{} {}", version.name, format::version(&version.version, true)))
        .collect();
    let machine = format!(
        "{}, {}, {}, Linux {}, {}",
        host.cpu_model,
        format::counted(host.cpus as u64, "CPU", "CPUs"),
        format::size(host.memory_bytes as f64),
        host.kernel,
        host.distribution
    );
    format!("\n<sub>{}; {}</sub>\n", escape(&machine), escape(&versions.join(", ")))
}

/// Text without control characters, and with Markdown syntax escaped.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in plain(text).chars() {
        match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' => escaped.extend(['\\', character]),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            other => escaped.push(other),
        }
    }
    escaped
}
