//! Data shared by all sections.

use crate::conditions::ConditionLabels;
use crate::html::charts::{WIDE, WIDTH};
use crate::html::style::ModeStyle;
use crate::run::RunData;
use results::{Cell, Conditions, Mode, TrialRecord};
use serde::Serialize;
use statistics::TrialsByCell;

/// A chart with its caption.
#[derive(Debug, Serialize)]
pub struct Chart {
    /// Short caption, such as the load.
    pub(super) caption: String,
    /// Our own SVG, which the templates pass through.
    pub(super) svg: String,
    /// The same for the width of a page; empty if other charts are beside it.
    pub(super) wide: String,
}

impl Chart {
    pub(in crate::html) fn new(caption: String, svg: String) -> Self {
        Self { caption, svg, wide: String::new() }
    }

    /// A chart that has its row for itself if it is alone. `draw` gets the width and the id.
    pub(super) fn in_row(
        caption: String,
        id: &str,
        is_alone: bool,
        draw: impl Fn(f64, &str) -> String,
    ) -> Self {
        let wide = if is_alone { draw(WIDE, &format!("{id}-wide")) } else { String::new() };
        Self { caption, svg: draw(WIDTH, id), wide }
    }
}

/// A row of a table, about a mode.
#[derive(Debug, Serialize)]
pub struct ModeRow {
    /// CSS class of the mode's colour.
    class: &'static str,
    name: String,
    /// One per column; empty if there is no such figure.
    values: Vec<String>,
}

impl ModeRow {
    pub(super) fn new(mode: Mode, name: String, values: impl IntoIterator<Item = String>) -> Self {
        Self { class: ModeStyle::for_mode(mode).class, name, values: values.into_iter().collect() }
    }
}

/// Run, labels and modes.
pub(super) struct Context<'a> {
    pub(super) run: &'a RunData,
    pub(super) trials: TrialsByCell<'a>,
    pub(super) conditions: ConditionLabels,
    /// Modes of the run, in display order.
    pub(super) modes: Vec<Mode>,
}

impl<'a> Context<'a> {
    pub(super) fn new(run: &'a RunData) -> Self {
        let cells = &run.summary.cells;
        let conditions = ConditionLabels::new(
            cells.iter().map(Cell::conditions).chain(run.trials.iter().map(TrialRecord::conditions)),
        );
        let modes = Mode::ALL
            .into_iter()
            .filter(|mode| {
                cells.iter().any(|cell| cell.mode == *mode)
                    || run.trials.iter().any(|trial| trial.mode == *mode)
            })
            .collect();
        Self { run, trials: TrialsByCell::new(&run.trials), conditions, modes }
    }

    /// The cells under these conditions, by mode.
    pub(super) fn cells_of(&self, at: Conditions<'_>) -> Vec<&'a Cell> {
        let cells = self.run.summary.cells.iter();
        let mut cells: Vec<&Cell> = cells.filter(|cell| cell.conditions() == at).collect();
        cells.sort_by_key(|cell| cell.mode);
        cells
    }
}
