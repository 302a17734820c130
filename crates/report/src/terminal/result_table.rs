//! Table of the cells under one load.

use super::style::{CellStyle, Options, WIDE, marked, plain};
use crate::format::{self, Interval};
use crate::marks::Mark;
use crate::table::{CellRow, Difference, ResultTable};
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

/// Mark of a figure.
pub(super) const STAR: &str = "*";
/// From this width on, names of modes are not broken across lines.
const NAMES_WHOLE: usize = 80;

/// The cells of one load, one row each.
pub(crate) fn load_table(table: &ResultTable, rows: &[CellRow], options: Options) -> Table {
    let unit = table.unit.symbol();
    let mut drawn = Table::new();
    let wide = options.width >= WIDE;
    drawn.load_style(if wide { presets::NOTHING } else { presets::UTF8_HORIZONTAL_ONLY });
    drawn.set_content_arrangement(ContentArrangement::Dynamic);
    drawn.set_width(u16::try_from(options.width.clamp(40, 400)).unwrap_or(80));
    let mut header = vec!["mode".to_owned()];
    header.extend(table.factors.iter().map(|key| plain(key).replace(' ', "\n")));
    header.push("valid".to_owned());
    if table.closed_loop {
        header.push("requests\nper second".to_owned());
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
    let mut valid = format!("{}/{}{again}", row.valid, row.trials);
    if options.colours && row.valid < row.trials {
        valid = marked(&valid, if row.valid == 0 { CellStyle::Red } else { CellStyle::Yellow });
    }
    let mut cells = vec![Cell::new(row.mode.name())];
    cells.extend(row.factors.iter().map(|value| Cell::new(plain(value))));
    cells.push(Cell::new(valid));
    if table.closed_loop {
        let completed = row.completed.as_ref().map_or_else(String::new, |rate| {
            stacked(&starred(rate, &row.completed_mark, row.valid), options)
        });
        cells.push(Cell::new(completed));
        let change = row.completed_change.as_ref();
        cells.push(change.map_or_else(|| Cell::new(""), |change| difference_cell(change, options)));
    }
    match &row.percentiles {
        Some(percentiles) => {
            let spoiled =
                row.spoiled.percentiles.iter().map(|spoiled| spoiled.as_ref().map(|(range, _)| range));
            let shown = percentiles.iter().zip(spoiled).map(|(known, spoiled)| spoiled.unwrap_or(known));
            let marked = shown.zip(&row.marks).take(3);
            cells
                .extend(marked.map(|(interval, mark)| {
                    Cell::new(stacked(&starred(interval, mark, row.valid), options))
                }));
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
    for (usage, mark) in [(&row.proxy_cores, &row.cores_mark), (&row.proxy_memory, &row.memory_mark)] {
        let usage = usage.as_ref().map(|usage| {
            let margin = usage.margin().filter(|_| options.width >= NAMES_WHOLE);
            with_margin(&starred(usage, mark, row.valid).estimate, margin, options)
        });
        cells.push(Cell::new(usage.unwrap_or_default()));
    }
    cells
}

/// Adds a star if the figure is marked; the lines below the tables explain it.
fn starred(interval: &Interval, mark: &Option<Mark>, valid: usize) -> Interval {
    let is_notable = mark.as_ref().is_some_and(|mark| mark.is_notable(valid));
    let star = if is_notable && interval.estimate != format::ABSENT { STAR } else { "" };
    Interval { estimate: format!("{}{star}", interval.estimate), range: interval.range.clone() }
}

fn difference_cell(added: &Difference, options: Options) -> Cell {
    let text = if added.shown || !added.has_interval {
        stacked(&added.interval, options)
    } else if options.width >= WIDE {
        added.text()
    } else {
        format!("{}\nnot shown", stacked(&added.interval, options))
    };
    Cell::new(if options.colours && added.shown { marked(&text, CellStyle::Bold) } else { text })
}

/// The margin beside the estimate if there is space, otherwise below it: two columns of ranges would squeeze
/// the others.
fn with_margin(estimate: &str, margin: Option<String>, options: Options) -> String {
    match margin {
        Some(margin) => format!("{estimate}{}{margin}", if options.width >= WIDE { " " } else { "\n" }),
        None => estimate.to_owned(),
    }
}

/// The interval beside the estimate if there is space, otherwise below it.
fn stacked(interval: &Interval, options: Options) -> String {
    match &interval.range {
        Some(_) if options.width >= WIDE => interval.text(),
        Some(range) => format!("{}\n{range}", interval.estimate),
        None => interval.estimate.clone(),
    }
}
