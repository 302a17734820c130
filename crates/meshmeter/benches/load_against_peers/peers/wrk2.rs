//! wrk2: its arguments and its output.

use crate::contest::process::Ended;
use crate::contest::{Outcome, wrk};
use crate::generators::{Latency, Load, Reading};

/// Arguments for open loops. Latency is measured from when a request was due, with a timer resolution of 1
/// ms.
///
/// # Errors
/// Returns an error for closed loops, which it does not support.
pub fn arguments(load: Load, seconds: u32) -> Outcome<Vec<String>> {
    let Load::Open { rate, connections } = load else { return Err("wrk2 knows no closed loop".into()) };
    let mut arguments = wrk::arguments(connections, seconds);
    arguments.extend(["--latency".to_owned(), format!("-R{rate}")]);
    Ok(arguments)
}

/// Parses its output: wrk's lines, and a table of percentiles. It starts to measure after ten seconds;
/// shorter runs have no percentiles.
///
/// # Errors
/// Returns an error if it failed, or any request did.
pub fn read(ended: &Ended) -> Outcome<Reading> {
    let counts = wrk::read(ended)?;
    let percentile = |name: &str| {
        let line = ended.stdout.lines().find_map(|line| line.trim().strip_prefix(name))?;
        time_us(line.trim()).filter(|time| *time > 0.0)
    };
    Ok(Reading {
        requests: counts.requests,
        requests_per_second: counts.requests_per_second,
        latency_us: percentile("50.000%").zip(percentile("99.000%")).map(|(p50, p99)| Latency { p50, p99 }),
        ..Reading::default()
    })
}

/// Parses a time as it is printed, such as `1.05ms`, into microseconds.
fn time_us(text: &str) -> Option<f64> {
    let unit_at = text.find(|character: char| character.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let factor = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}
