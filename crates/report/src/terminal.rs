//! The result on a terminal: findings first, then a table per load, then drivers and services where there are several, what each proxy holds, then what was left out.

mod drivers;
mod holdings;
mod load;
mod search;

pub use load::load_text;
pub use search::search_text;

use crate::drivers::{DriverTable, ServiceTable};
use crate::format::{self, Interval};
use crate::holdings::HoldingsTable;
use crate::table::{CellRow, Difference, ResultTable};
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, presets,
};
use experiment::schema::{PublishedFigure, Summary};
use std::fmt::Write as _;

/// From this width on, the names of modes are not broken.
const NAMES_WHOLE: usize = 80;
/// From this width on, an interval stands beside its estimate, not under it.
const WIDE: usize = 118;

/// How the text is to look.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// Columns of the terminal; the text keeps to them down to about 60.
    pub width: usize,
    /// Whether to use colour.
    pub colours: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { width: 80, colours: false }
    }
}

/// The summary of a run as text, ending with a line break.
#[must_use]
pub fn render(summary: &Summary, options: Options) -> String {
    let table = ResultTable::new(summary);
    let mut text = String::new();
    for (index, finding) in summary.findings.iter().enumerate() {
        let finding = format::unbroken(&plain(finding));
        let (first, rest) = if index == 0 { ("", "") } else { ("· ", "  ") };
        for line in
            wrap(&finding, options.width.saturating_sub(first.chars().count())).into_iter().enumerate()
        {
            let indent = if line.0 == 0 { first } else { rest };
            let styled = if index == 0 { bold(&line.1, options) } else { line.1 };
            let _ = writeln!(text, "{indent}{styled}");
        }
        if index == 0 {
            text.push('\n');
        }
    }
    if summary.findings.len() > 1 {
        text.push('\n');
    }
    for group in &table.groups {
        let _ = writeln!(text, "{}", bold(&plain(&group.load), options));
        let _ = writeln!(text, "{}\n", load_table(&table, &group.rows, options).trim_fmt());
    }
    let drivers = DriverTable::new(summary).map(|table| drivers::drivers(&table, options));
    let services = ServiceTable::new(summary).map(|table| drivers::services(&table, options));
    for line in drivers.into_iter().chain(services).flatten() {
        let _ = writeln!(text, "{line}");
    }
    if let Some(held) = HoldingsTable::new(summary) {
        for line in holdings::lines(&held, options) {
            let _ = writeln!(text, "{line}");
        }
        text.push('\n');
    }
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

fn load_table(table: &ResultTable, rows: &[CellRow], options: Options) -> Table {
    let unit = table.unit.symbol();
    let mut drawn = Table::new();
    let wide = options.width >= WIDE;
    drawn.load_style(if wide { presets::NOTHING } else { presets::UTF8_HORIZONTAL_ONLY });
    drawn.set_content_arrangement(ContentArrangement::Dynamic);
    drawn.set_width(u16::try_from(options.width.clamp(40, 400)).unwrap_or(80));
    let mut header = vec!["mode".to_owned()];
    header.extend(table.factors.iter().map(|key| plain(key).replace('.', ".\n")));
    header.push("valid".to_owned());
    if table.closed_loop {
        header.push("requests\na second".to_owned());
        header.push(format!("against\n{}, %", table.floor));
    }
    header.extend(["p50", "p90", "p99"].map(|name| format!("{name}\n{unit}")));
    let shows_added = table.compares && !table.closed_loop;
    if shows_added {
        header.push(format!("added to\np50, {unit}"));
    }
    header.push("proxy\ncores".to_owned());
    header.push(format!("proxy\n{}", table.memory_unit.symbol()));
    drawn.set_header(header);
    for row in rows {
        drawn.add_row(cells(row, table, shows_added, options));
    }
    for index in 0..drawn.column_count() {
        if let Some(column) = drawn.column_mut(index) {
            column.set_padding((u16::from(index > 0), u16::from(wide)));
            if index == 0 && options.width >= NAMES_WHOLE {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
            column.set_cell_alignment(if index > 0 { CellAlignment::Right } else { CellAlignment::Left });
        }
    }
    drawn
}

fn cells(row: &CellRow, table: &ResultTable, shows_added: bool, options: Options) -> Vec<Cell> {
    let again = if row.retakes > 0 { format!("+{}", row.retakes) } else { String::new() };
    let mut valid = Cell::new(format!("{}/{}{again}", row.valid, row.trials));
    if options.colours && row.valid < row.trials {
        valid = valid.fg(if row.valid == 0 { Color::Red } else { Color::Yellow });
    }
    let mut cells = vec![Cell::new(row.mode.name())];
    cells.extend(row.factors.iter().map(|value| Cell::new(plain(value))));
    cells.push(valid);
    if table.closed_loop {
        let completed = row.completed.as_ref().map_or_else(String::new, |rate| stacked(rate, options));
        cells.push(Cell::new(completed));
        let change = row.completed_change.as_ref();
        cells.push(change.map_or_else(|| Cell::new(""), |change| difference_cell(change, options)));
    }
    match &row.percentiles {
        Some(percentiles) => {
            cells.extend(percentiles.iter().take(3).map(|interval| Cell::new(stacked(interval, options))));
        }
        None => {
            let why = row.no_figures.as_deref().unwrap_or_default();
            cells.push(Cell::new(plain(why)));
            cells.extend([Cell::new(format::ABSENT), Cell::new(format::ABSENT)]);
        }
    }
    if shows_added {
        cells.push(row.added.as_ref().map_or_else(|| Cell::new(""), |added| difference_cell(added, options)));
    }
    cells.push(Cell::new(row.proxy_cores.map(format::cores_number).unwrap_or_default()));
    cells.push(Cell::new(row.proxy_memory.clone().unwrap_or_default()));
    cells
}

fn difference_cell(added: &Difference, options: Options) -> Cell {
    let text = if added.shown || !added.has_interval {
        stacked(&added.interval, options)
    } else {
        let range = added.interval.range.as_deref().unwrap_or_default();
        format!("none shown{}({range})", if options.width >= WIDE { " " } else { "\n" })
    };
    let cell = Cell::new(text);
    if options.colours && added.shown { cell.add_attribute(Attribute::Bold) } else { cell }
}

/// The interval beside the estimate where there is room, else under it.
fn stacked(interval: &Interval, options: Options) -> String {
    match &interval.range {
        Some(_) if options.width >= WIDE => interval.text(),
        Some(range) => format!("{}\n{range}", interval.estimate),
        None => interval.estimate.clone(),
    }
}

/// Figures of others beside this run's, a line each; what differs once for each source. Nothing where the run has none.
fn published(summary: &Summary) -> Vec<String> {
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

fn footer(summary: &Summary, table: &ResultTable, options: Options) -> Vec<String> {
    let mut lines = Vec::new();
    let valid: usize = summary.cells.iter().map(|cell| cell.valid).sum();
    let mut trials = format!(
        "{} recorded of {} planned, {valid} valid.",
        format::counted(summary.places_recorded() as u64, "trial", "trials"),
        summary.trials_planned
    );
    if let Some(retakes) = summary.retakes.filter(|retakes| retakes.taken > 0) {
        let _ = write!(
            trials,
            " {} taken again (+), since the machine had disturbed what was measured.",
            retakes.taken
        );
    }
    if !table.shared_load.is_empty() {
        let _ = write!(trials, " {}.", table.shared_load);
    }
    lines.push(trials);
    for version in summary.host.versions.iter().filter(|version| version.named_by.is_some()) {
        lines.push(format!("Not the installed one: {}.", format::named_program(version)));
    }
    if valid > 0 {
        let place = if options.width >= WIDE { "beside" } else { "under" };
        lines.push(format!(
            "Response time from the intended start of each request; {place} each estimate its 95 % interval. \
             CPU and memory are of all proxies together."
        ));
    }
    if !table.not_measured.is_empty() {
        lines.push(format!("Not measured: {}.", table.not_measured.join(", ")));
    }
    for cell in summary.cells.iter().filter(|cell| cell.valid < cell.trials) {
        let load = table_label(summary, cell);
        let why = if cell.valid == 0 { format!(": {}", cell.verdict) } else { String::new() };
        let trials = format::counted(cell.trials as u64, "trial", "trials");
        let again = match cell.retakes {
            0 => String::new(),
            retakes => format!(", {retakes} of them taken again,"),
        };
        lines.push(format!(
            "Left out: {} of {trials}{again} of {} at {load}{why}",
            cell.trials - cell.valid,
            cell.mode
        ));
    }
    lines
}

fn table_label(summary: &Summary, cell: &experiment::schema::Cell) -> String {
    crate::conditions::ConditionLabels::new(summary.cells.iter().map(experiment::schema::Cell::conditions))
        .label(cell.conditions())
}

fn bold(text: &str, options: Options) -> String {
    if options.colours { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// Text from elsewhere without the control characters that a terminal would obey.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// Lines of at most `width` characters, broken at spaces but not at no-break spaces; a longer word has a line of its own.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let longer = line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && longer > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines.into_iter().map(|line| line.replace('\u{a0}', " ")).collect()
}
