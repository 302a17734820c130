//! wrk2: its arguments, and what it prints.

use crate::contest::process::Ended;
use crate::contest::{Outcome, wrk};
use crate::generators::{Latency, Load, Reading};

/// Open loops; latency counts from when a request was due, by a timer of a millisecond.
///
/// # Errors
/// For closed loops, which it does not know.
pub fn arguments(load: Load, seconds: u32) -> Outcome<Vec<String>> {
    let Load::Open { rate, connections } = load else { return Err("wrk2 knows no closed loop".into()) };
    let mut arguments = wrk::arguments(connections, seconds);
    arguments.extend(["--latency".to_owned(), format!("-R{rate}")]);
    Ok(arguments)
}

/// Reads what it printed: wrk's lines, and a table of percentiles. It begins to measure after ten seconds; what was shorter has
/// no percentiles.
///
/// # Errors
/// Where it failed, or any request did.
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

/// A time as it prints it, such as `1.05ms`, in microseconds.
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
