//! A comparison as a page: of two arms with verdicts, or of two runs side by side.

use super::figure::{self, label, value};
use super::{Description, shown_change, shown_ratio, verdict_word};
use crate::html::charts::looks::{self, Look};
use crate::html::charts::rows::{Line, Mark, Row, RowChart};
use crate::html::sections::{self, ProfileSection};
use crate::profile::Profile;
use crate::side_by_side::SideBySide;
use crate::svg::Marker;
use results::{ComparedFigure, Comparison, Estimate, FigureVerdict};
use serde::Serialize;
use statistics::words;

/// Content of `comparison.html`.
#[derive(Debug, Serialize)]
pub(crate) struct Page {
    name: String,
    headline: String,
    /// Figures that got worse, by how much.
    worse: Vec<String>,
    /// Reasons why nothing may be concluded.
    failures: Vec<String>,
    /// Error rate, environments that differ, or the two runs side by side.
    basis: Vec<String>,
    against: &'static str,
    figures: Table,
    /// A chart per cell.
    differences: Vec<Chart>,
    /// A chart per figure.
    looks: Vec<Chart>,
    /// Facts that differ between two runs.
    environments: Option<Table>,
    notes: Vec<String>,
    profiles: Option<ProfileSection>,
}

/// A table of texts.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<TableRow>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Column {
    name: &'static str,
    /// CSS class: `n` for numbers.
    class: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct TableRow {
    cells: Vec<String>,
    /// CSS class of the first cell: the verdict's colour.
    class: &'static str,
}

#[derive(Debug, Serialize)]
struct Chart {
    caption: String,
    svg: String,
}

impl Page {
    /// Two arms of a comparison.
    pub(crate) fn new(comparison: &Comparison, profiles: &[Profile]) -> Self {
        let Description { headline, environment, worse, failures, rows, notes, .. } =
            Description::new(comparison);
        // The rate of a gate that looks after every repeat: of finished runs the notes say how they are judged.
        let sureness = comparison.finished.is_none().then(|| super::error_rate(comparison)).flatten();
        let other_notes = notes.iter().filter(|note| Some(*note) != sureness.as_ref());
        let other_notes = other_notes.map(|note| words::sentence(note)).collect();
        Self {
            name: comparison.name.clone(),
            headline,
            worse,
            failures,
            basis: environment.iter().chain(&sureness).map(|text| words::sentence(text) + ".").collect(),
            against: against(comparison),
            figures: figures(rows, comparison),
            differences: differences(comparison),
            looks: looks(comparison),
            environments: None,
            notes: other_notes,
            profiles: sections::profiles(profiles),
        }
    }

    /// Two runs side by side, without verdicts.
    pub(crate) fn side_by_side(compared: &SideBySide) -> Self {
        let [first, second] = &compared.environments;
        let row = |row: &crate::side_by_side::Row| {
            let [one, other, ratio] = row.texts.clone();
            plain_row([row.cell.clone(), format!("{}, {}", row.figure, row.unit), one, other, ratio])
        };
        let of_difference = |difference: &crate::side_by_side::Difference| {
            let [one, other] = difference.values.clone();
            plain_row([difference.what.clone(), one, other])
        };
        let explanations = compared.explanations.iter().map(|text| (*text).to_owned());
        Self {
            name: compared.name.clone(),
            headline: "Two runs side by side".to_owned(),
            worse: Vec::new(),
            failures: Vec::new(),
            basis: vec![format!("A: {first}. B: {second}.")],
            figures: Table {
                caption: "Estimates over the valid trials with 95 % intervals; B/A is their ratio."
                    .to_owned(),
                columns: columns([("Cell", ""), ("Figure", ""), ("A", "n"), ("B", "n"), ("B/A", "n")]),
                rows: compared.rows.iter().map(row).collect(),
            },
            against: "",
            differences: Vec::new(),
            looks: Vec::new(),
            environments: Some(Table {
                caption: "Facts of machines, versions and experiments that are not the same.".to_owned(),
                columns: columns([("Fact", ""), ("A", "prose"), ("B", "prose")]),
                rows: compared.differences.iter().map(of_difference).collect(),
            }),
            notes: explanations.chain(compared.unmatched.iter().cloned()).collect(),
            profiles: None,
        }
    }
}

pub(crate) fn columns<const N: usize>(columns: [(&'static str, &'static str); N]) -> Vec<Column> {
    columns.into_iter().map(|(name, class)| Column { name, class }).collect()
}

pub(crate) fn plain_row<const N: usize>(cells: [String; N]) -> TableRow {
    TableRow { cells: cells.into(), class: "" }
}

/// Arms that the head is compared with: finished runs have no control.
fn against(comparison: &Comparison) -> &'static str {
    if comparison.finished.is_some() { "base" } else { "base and control" }
}

fn figures(rows: Vec<super::Row>, comparison: &Comparison) -> Table {
    let row = |(row, figure): (super::Row, &ComparedFigure)| TableRow {
        cells: vec![
            row.verdict,
            row.figure,
            row.cell,
            row.base,
            row.head,
            value(figure.key, figure.control),
            signed_value(figure),
            row.change,
            row.margin,
            row.repeats,
        ],
        class: style(figure.verdict).1,
    };
    Table {
        caption: format!(
            "Means of the arms, and the change from {} to head with the interval that decided.",
            against(comparison)
        ),
        columns: columns([
            ("Verdict", ""),
            ("Figure", ""),
            ("Cell", ""),
            ("Base", "n"),
            ("Head", "n"),
            ("Control", "n"),
            ("Difference", "n"),
            ("Change", "n"),
            ("Margin", "n"),
            ("Repeats", "n"),
        ]),
        rows: rows.into_iter().zip(&comparison.figures).map(row).collect(),
    }
}

fn signed_value(figure: &ComparedFigure) -> String {
    let sign = if figure.difference.is_some_and(|difference| difference.estimate > 0.0) { "+" } else { "" };
    format!("{sign}{}", value(figure.key, figure.difference))
}

/// Marker and colour of a verdict.
pub(crate) fn style(verdict: FigureVerdict) -> (Marker, &'static str) {
    match verdict {
        FigureVerdict::Worse => (Marker::Triangle, "vermilion"),
        FigureVerdict::Inconclusive => (Marker::Diamond, "blue"),
        FigureVerdict::Better => (Marker::TriangleDown, "green"),
        FigureVerdict::Equivalent => (Marker::Circle, "grey"),
    }
}

/// A change in percent, with both ends of its interval.
fn percent(ratio: Estimate) -> (f64, Option<(f64, f64)>) {
    let Estimate { estimate, low, high, .. } = ratio.map(|ratio| 100.0 * (ratio - 1.0));
    (estimate, low.zip(high))
}

/// Changes of each cell, on one axis.
fn differences(comparison: &Comparison) -> Vec<Chart> {
    let mut cells: Vec<(String, Vec<&ComparedFigure>)> = Vec::new();
    for figure in &comparison.figures {
        let place = super::cell(figure);
        match cells.iter_mut().find(|(own, _)| *own == place) {
            Some((_, figures)) => figures.push(figure),
            None => cells.push((place, vec![figure])),
        }
    }
    let chart = |figures: &[&ComparedFigure], shared: Vec<f64>| RowChart {
        axis: "change of the head, %; grey: margin".to_owned(),
        lines: figures.iter().filter_map(|figure| row(figure)).map(Line::Row).collect(),
        shared,
        may_be_logarithmic: false,
    };
    let all: Vec<f64> = cells.iter().flat_map(|(_, figures)| chart(figures, Vec::new()).figures()).collect();
    let drawn = cells.iter().enumerate().map(|(number, (place, figures))| Chart {
        svg: chart(figures, all.clone()).draw(&format!("differences-{number}"), place),
        caption: words::sentence(place),
    });
    drawn.collect()
}

fn row(figure: &ComparedFigure) -> Option<Row> {
    let (estimate, interval) = percent(shown_ratio(figure)?);
    let (marker, class) = style(figure.verdict);
    let margin = 100.0 * figure.margin;
    Some(Row {
        label: label(figure.key),
        symbol: Some((marker, class)),
        value: shown_change(figure),
        mark: Mark::Change { estimate, interval, margin, marker, class },
    })
}

/// Looks at each figure that was looked at more than once.
fn looks(comparison: &Comparison) -> Vec<Chart> {
    let chart = |(number, figure): (usize, &ComparedFigure)| {
        let of = comparison.course.of(figure.key, &figure.cell).iter();
        let all: Vec<Look> = of
            .filter_map(|look| {
                let (change, interval) = percent(look.ratio?);
                let (marker, class) = style(look.verdict);
                let shown = figure::change(look.ratio);
                let text = format!("look {}: {shown}, {}", look.look, verdict_word(look.verdict));
                Some(Look { number: look.look, change, interval, text, marker, class })
            })
            .collect();
        let caption = format!("{} of {}", label(figure.key), super::cell(figure));
        let svg = || looks::chart(&format!("looks-{number}"), &caption, &all, 100.0 * figure.margin);
        (all.len() > 1).then(|| Chart { svg: svg(), caption: words::sentence(&caption) })
    };
    comparison.figures.iter().enumerate().filter_map(chart).collect()
}
