//! The seconds of a generator's run as CSV: a header line, then one line per second.
//!
//! Times are in microseconds. A time is `inf` if it falls among failed requests, which rank above all others,
//! and empty if no request ended. No field contains a comma or a quote.

use results::SeriesPoint;
use std::fmt::Write as _;

/// Header line with the column names.
pub const HEADER: &str =
    "t_s,offered_rate,sent,completed,failed,rate,p50_us,p90_us,p99_us,p99.9_us,max_us,errors\n";

/// One second with the figures of its line.
#[derive(Clone, Debug)]
pub struct SecondOfRun<'a> {
    /// Counts and times of the second.
    pub point: &'a SeriesPoint,
    /// Part of the second inside the window, in seconds: the last second of a window may be cut off.
    pub length_s: f64,
    /// Requests that were due; `None` in a closed loop.
    pub due: Option<f64>,
    /// Error counts by kind.
    pub errors: &'a [(&'static str, u64)],
}

/// The line of one second. Errors are written as `kind=count`, separated by spaces.
#[must_use]
pub fn line(second: &SecondOfRun<'_>) -> String {
    let SecondOfRun { point, length_s, due, errors } = second;
    let mut line = format!("{},", point.t_s);
    if let Some(due) = due {
        let _ = write!(line, "{}", rounded(due / length_s));
    }
    let rate = rounded(point.completed as f64 / length_s);
    let _ = write!(line, ",{},{},{},{rate}", point.sent, point.completed, point.failed);
    for time_us in [point.p50_us, point.p90_us, point.p99_us, point.p99_9_us, point.max_us] {
        line.push(',');
        match time_us {
            _ if point.completed + point.failed == 0 => {}
            Some(time_us) => {
                let _ = write!(line, "{time_us}");
            }
            None => line.push_str("inf"),
        }
    }
    let errors: Vec<String> = errors.iter().map(|(kind, count)| format!("{kind}={count}")).collect();
    let _ = writeln!(line, ",{}", errors.join(" "));
    line
}

/// Rounds to a thousandth.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str) -> Vec<&str> {
        let fields: Vec<&str> = line.trim_end_matches('\n').split(',').collect();
        assert_eq!(fields.len(), HEADER.split(',').count(), "{line}");
        fields
    }

    #[test]
    fn line_has_a_field_per_column() {
        let point = SeriesPoint {
            t_s: 2.0,
            sent: 52,
            completed: 50,
            failed: 2,
            p50_us: Some(210.0),
            p90_us: Some(300.0),
            p99_us: Some(400.0),
            p99_9_us: Some(401.0),
            max_us: Some(402.0),
        };
        let errors = [("timeout", 1), ("reset", 1)];
        let line = line(&SecondOfRun { point: &point, length_s: 0.5, due: Some(52.5), errors: &errors });
        assert_eq!(
            fields(&line),
            ["2", "105", "52", "50", "2", "100", "210", "300", "400", "401", "402", "timeout=1 reset=1"]
        );
    }

    #[test]
    fn times_are_empty_without_requests_and_inf_among_failed_requests() {
        let empty = SeriesPoint { t_s: 3.0, sent: 1, ..SeriesPoint::default() };
        let text = line(&SecondOfRun { point: &empty, length_s: 1.0, due: None, errors: &[] });
        assert_eq!(fields(&text), ["3", "", "1", "0", "0", "0", "", "", "", "", "", ""]);
        let point = SeriesPoint { completed: 9, failed: 1, p50_us: Some(7.0), p90_us: Some(8.0), ..empty };
        let point = SeriesPoint { p99_us: None, p99_9_us: None, max_us: None, ..point };
        let text = line(&SecondOfRun { point: &point, length_s: 1.0, due: None, errors: &[] });
        assert_eq!(fields(&text), ["3", "", "1", "9", "1", "9", "7", "8", "inf", "inf", "inf", ""]);
    }
}
