//! Shared parts of a run's CSV tables: the fields of a cell and of an estimate, and a line.

use results::{Cell, Estimate, Percentiles, TimeFigure};

/// Mode and load of a cell, with their column names.
pub(crate) fn load_fields(cell: &Cell) -> Vec<(String, String)> {
    let load = &cell.load;
    [
        ("mode", cell.mode.name().to_owned()),
        ("protocol", load.protocol.clone()),
        ("rate", load.rate.map_or_else(String::new, |rate| rate.to_string())),
        ("clients", load.clients.map_or_else(String::new, |clients| clients.to_string())),
        ("connections", load.connections.to_string()),
        ("payload_bytes", load.payload_bytes.to_string()),
        ("valid_trials", cell.valid.to_string()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// Background services as in older versions, then one field per factor under its dotted key. They come last
/// in a line, so that they shift no other field.
pub(crate) fn factor_fields(cell: &Cell) -> Vec<(String, String)> {
    let services = cell.load.surrounding_services;
    let services = services.map_or_else(String::new, |services| services.to_string());
    let factors = cell.factors.iter().map(|(key, value)| (key.clone(), value.to_string()));
    std::iter::once(("surrounding_services".to_owned(), services)).chain(factors).collect()
}

/// An estimate and the ends of its interval; empty if there is none or it is not finite.
pub(crate) fn estimate_fields(name: &str, estimate: Option<Estimate>) -> [(String, String); 3] {
    let number = |value: Option<f64>| {
        value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
    };
    [
        (name.to_owned(), number(estimate.map(|estimate| estimate.estimate))),
        (format!("{name}_low"), number(estimate.and_then(|estimate| estimate.low))),
        (format!("{name}_high"), number(estimate.and_then(|estimate| estimate.high))),
    ]
}

/// A percentile of the response time in microseconds. If it falls among requests without a response it is
/// `inf`, with the known lower bound as `_low`.
pub(crate) fn percentile_fields(
    name: &str,
    times: Option<&Percentiles>,
    figure: TimeFigure,
) -> [(String, String); 3] {
    let estimate = times.and_then(|times| times.figure(figure));
    let mut fields = estimate_fields(name, estimate);
    if let Some(censored) = times.and_then(|times| times.censored(figure)) {
        let low = censored.above_us.map_or_else(String::new, |above_us| above_us.to_string());
        for (field, value) in fields.iter_mut().zip([INFINITE.to_owned(), low, INFINITE.to_owned()]) {
            field.1 = value;
        }
    }
    fields
}

/// Number of trials of an estimate; empty if an older result lacks it.
pub(crate) fn n_field(name: &str, estimate: Option<Estimate>) -> (String, String) {
    let n = estimate.map(|estimate| estimate.n).filter(|n| *n > 0);
    (format!("{name}_n"), n.map_or_else(String::new, |n| n.to_string()))
}

/// Marks a time without an upper bound.
const INFINITE: &str = "inf";

/// A line with its line break. A field with a comma, a quote or a line break is quoted as in RFC 4180.
pub(crate) fn line(fields: impl Iterator<Item = String>) -> String {
    fields.map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

fn quoted(field: String) -> String {
    if field.contains([',', '"', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}
