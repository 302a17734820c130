//! CSV tables of a run: a header line, then one line per row.
//!
//! Estimates have four columns: the estimate, `_low` and `_high` of the 95 % confidence interval, and `_n`, the number of
//! trials. A field is empty if there is no such figure. A percentile that falls among requests without a response is
//! `inf`; its `_low` is the minimum time that these have waited. Times are in microseconds.

use results::{Cell, Estimate, Figure, Percentiles};

/// Fields of a row, with their column names.
#[derive(Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Mode, load and factors of a cell.
    pub(crate) fn of_cell(cell: &Cell) -> Self {
        let load = &cell.load;
        let fields = Self::default()
            .text("mode", cell.mode.name())
            .text("protocol", &load.protocol)
            .text("rate", optional(load.rate))
            .text("clients", optional(load.clients))
            .text("connections", load.connections)
            .text("payload_bytes", load.payload_bytes)
            .text("valid_trials", cell.valid);
        // Only with noise that the user accepted.
        let fields = match cell.noise_accepted {
            0 => fields,
            trials => fields.text("noise_accepted", trials),
        };
        cell.factors.iter().fold(fields, |fields, (key, value)| fields.text(key, value))
    }

    /// Adds a field.
    #[expect(clippy::needless_pass_by_value, reason = "counts and texts are passed as they are")]
    pub(crate) fn text(mut self, name: &str, value: impl ToString) -> Self {
        self.0.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds an estimate.
    pub(crate) fn estimate(self, name: &str, estimate: Option<Estimate>) -> Self {
        let number = |value: Option<f64>| optional(value.filter(|value| value.is_finite()));
        self.text(name, number(estimate.map(|estimate| estimate.estimate)))
            .text(&format!("{name}_low"), number(estimate.and_then(|estimate| estimate.low)))
            .text(&format!("{name}_high"), number(estimate.and_then(|estimate| estimate.high)))
            .text(&format!("{name}_n"), optional(estimate.map(|estimate| estimate.n).filter(|n| *n > 0)))
    }

    /// Adds percentiles of the response time.
    pub(crate) fn times(self, figures: &[Figure], times: Option<&Percentiles>) -> Self {
        figures.iter().fold(self, |fields, figure| {
            let name = format!("{}_us", figure.name());
            match times.and_then(|times| times.censored(*figure)) {
                Some(censored) => fields
                    .text(&name, INFINITE)
                    .text(&format!("{name}_low"), optional(censored.above_us))
                    .text(&format!("{name}_high"), INFINITE)
                    .text(&format!("{name}_n"), ""),
                None => fields.estimate(&name, times.and_then(|times| times.figure(*figure))),
            }
        })
    }
}

/// A table of these rows; empty without any. The cells of a mode lack the columns of factors that cannot touch it: these
/// fields are empty.
pub(crate) fn table(rows: impl IntoIterator<Item = Fields>) -> String {
    let rows: Vec<Fields> = rows.into_iter().collect();
    let columns = columns(&rows);
    if columns.is_empty() {
        return String::new();
    }
    let mut lines = vec![line(columns.iter().cloned())];
    for row in rows {
        lines.push(if row.has(&columns) {
            line(row.0.into_iter().map(|(_, value)| value))
        } else {
            line(columns.iter().map(|column| row.value(column)))
        });
    }
    lines.concat()
}

/// Columns of all rows, in their order.
fn columns(rows: &[Fields]) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for row in rows {
        if row.has(&columns) {
            continue;
        }
        let mut next = 0;
        for (name, _) in &row.0 {
            match columns.iter().position(|column| column == name) {
                Some(place) => next = place,
                None => columns.insert(next, name.clone()),
            }
            next += 1;
        }
    }
    columns
}

impl Fields {
    /// True if the row has exactly these columns.
    fn has(&self, columns: &[String]) -> bool {
        self.0.iter().map(|(name, _)| name).eq(columns)
    }

    fn value(&self, column: &str) -> String {
        let field = self.0.iter().find(|(name, _)| name == column);
        field.map_or_else(String::new, |(_, value)| value.clone())
    }
}

/// Marks a time without an upper bound.
const INFINITE: &str = "inf";

/// The value, or nothing.
pub(crate) fn optional(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A line with its line break. A field with a comma, a quote or a line break is quoted as in RFC 4180.
fn line(fields: impl Iterator<Item = String>) -> String {
    fields.map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

fn quoted(field: String) -> String {
    if field.contains([',', '"', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_absent_factors_are_empty() {
        let row = |factors: &[&str]| {
            let fields = Fields::default().text("mode", "m");
            factors.iter().fold(fields, |fields, key| fields.text(key, "x")).text("valid", 1)
        };
        let table = table([row(&[]), row(&["a"]), row(&["b"]), row(&["a", "b"])]);
        assert_eq!(table, "mode,b,a,valid\nm,,,1\nm,,x,1\nm,x,,1\nm,x,x,1\n");
    }
}
