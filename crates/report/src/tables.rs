//! Tables that are described once: the same columns and cells for the terminal and for HTML.

use crate::format::{ABSENT, Interval};
use results::Estimate;
use serde::Serialize;

/// Longer groups show the first [`MAX_ROWS`] rows, or copies folded together.
pub(crate) const MAX_UNFOLDED_ROWS: usize = 8;

/// Rows of a group that is cut to the first ones.
const MAX_ROWS: usize = 5;

/// A table: rows in groups, whose cells follow the columns.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) groups: Vec<Group>,
}

/// A column, and where it is shown.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Column {
    kind: Kind,
    /// Title in HTML; `None` if HTML does not have the column.
    html: Option<String>,
    /// Heading on a terminal; `None` if a terminal does not have the column.
    #[serde(skip)]
    pub(crate) terminal: Option<String>,
    /// True if only wide terminals have it.
    #[serde(skip)]
    pub(crate) is_wide: bool,
    /// True if only groups of copies have it.
    of_copies: bool,
}

/// Kind of content of a column.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// Subject of the row.
    Name,
    Text,
    Prose,
    Number,
}

impl Column {
    fn new(kind: Kind, html: &str) -> Self {
        Self { kind, html: Some(html.to_owned()), terminal: None, is_wide: false, of_copies: false }
    }

    /// Names of the rows, in HTML.
    pub(crate) fn name(html: &str) -> Self {
        Self::new(Kind::Name, html)
    }

    /// Text, in HTML.
    pub(crate) fn text(html: &str) -> Self {
        Self::new(Kind::Text, html)
    }

    /// Sentences, in HTML.
    pub(crate) fn prose(html: &str) -> Self {
        Self::new(Kind::Prose, html)
    }

    /// Figures, in HTML.
    pub(crate) fn number(html: &str) -> Self {
        Self::new(Kind::Number, html)
    }

    /// A column that only a terminal has.
    pub(crate) fn only_terminal(heading: &str) -> Self {
        Self { html: None, ..Self::new(Kind::Text, "").terminal(heading) }
    }

    /// Shows the column on a terminal too.
    pub(crate) fn terminal(self, heading: &str) -> Self {
        Self { terminal: Some(heading.to_owned()), ..self }
    }

    /// Shows the column on wide terminals alone.
    pub(crate) fn wide(self) -> Self {
        Self { is_wide: true, ..self }
    }

    /// Shows the column in groups of copies alone.
    pub(crate) fn of_copies(self) -> Self {
        Self { of_copies: true, ..self }
    }
}

/// Rows with a heading.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Group {
    /// Cell such as `sidecar at 1000/s`; empty without a heading.
    pub(crate) place: String,
    /// Note beside it, such as a summary of all rows in one sentence.
    pub(crate) note: String,
    /// True if the heading is marked.
    pub(crate) flag: bool,
    /// True if a terminal does not have the group.
    #[serde(skip)]
    pub(crate) only_html: bool,
    /// The rows shown, if not all: such as `The 5 slowest`.
    pub(crate) selection: Option<String>,
    /// True if each row combines copies in several namespaces: figures are medians over copies, ranges are
    /// over copies.
    pub(crate) folded: bool,
    /// The most relevant first.
    pub(crate) rows: Vec<TableRow>,
    /// Every row, if `rows` does not have them all.
    pub(crate) all: Vec<TableRow>,
}

/// Cells of a row.
pub(crate) type TableRow = Vec<TableCell>;

impl Group {
    /// Rows below a heading.
    pub(crate) fn new(place: String, rows: Vec<TableRow>) -> Self {
        Self { place, rows, ..Self::default() }
    }

    /// All rows if there are few; otherwise the copies folded together if that leaves fewer, cut to the first
    /// ones if needed. `order` describes what comes first, such as `slowest`.
    pub(crate) fn selected(
        place: String,
        note: String,
        all: Vec<TableRow>,
        copies: Vec<TableRow>,
        order: &str,
    ) -> Self {
        if all.len() <= MAX_UNFOLDED_ROWS {
            return Self { note, ..Self::new(place, all) };
        }
        let folded = !copies.is_empty() && copies.len() < all.len();
        let mut rows = if folded { copies } else { all.clone() };
        let selection = (rows.len() > MAX_UNFOLDED_ROWS).then(|| {
            rows.truncate(MAX_ROWS);
            format!("The {MAX_ROWS} {order}")
        });
        Self { note, selection, folded, all, ..Self::new(place, rows) }
    }
}

/// A cell: a text, or a figure with its interval.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TableCell {
    #[serde(flatten)]
    pub(crate) figure: Interval,
    /// True if it is marked.
    flag: bool,
    /// True if a terminal shows it with a star, which lines below the tables explain.
    #[serde(skip)]
    pub(crate) has_star: bool,
    /// Reason why the figure is unusable.
    spoiled: Option<String>,
}

impl TableCell {
    /// A figure; a dash without an estimate.
    pub(crate) fn figure(estimate: Option<Estimate>, text: impl Fn(&Estimate) -> Interval) -> Self {
        estimate.as_ref().map_or_else(Interval::absent, text).into()
    }

    /// Strikes the figure out for a reason, if any.
    pub(crate) fn spoiled(self, spoiled: Option<String>) -> Self {
        Self { spoiled, ..self }
    }

    /// Marks the cell on a condition.
    pub(crate) fn flagged(self, flag: bool) -> Self {
        Self { flag, ..self }
    }

    /// Adds a star on a condition; a dash has none.
    pub(crate) fn starred(self, has_star: bool) -> Self {
        Self { has_star: has_star && self.figure.estimate != ABSENT, ..self }
    }
}

impl From<Interval> for TableCell {
    fn from(figure: Interval) -> Self {
        Self { figure, flag: false, has_star: false, spoiled: None }
    }
}

impl<T: ToString> From<T> for TableCell {
    fn from(text: T) -> Self {
        Interval { estimate: text.to_string(), range: None }.into()
    }
}
