//! wrk and wrk2: text.
//!
//! wrk prints mean, standard deviation and maximum, with `--latency` four percentiles too, and no histogram; its times start with
//! the send. wrk2 (`--latency`) counts from the intended start, and prints its histogram as a percentile spectrum, in milliseconds.
//! With `--u_latency` it prints times from the send as well, which are not read.

use super::steps::from_cumulative;
use super::{ForeignError, ForeignResult, figure_of_percentile, lines};
use crate::clock::Clock;
use crate::figure::Figure;

const US_IN_MS: f64 = 1000.0;
/// Begins the part of wrk2 with times from the intended start.
const RECORDED: &str = "Latency Distribution (HdrHistogram - Recorded Latency)";
/// Begins the part of wrk2 with times from the send.
const UNCORRECTED: &str = "Latency Distribution (HdrHistogram - Uncorrected Latency";

pub(super) fn is_one(text: &str) -> bool {
    text.contains("Requests/sec:") || text.starts_with("Running ") && text.contains(" test @ ")
}

pub(super) fn read(text: &str) -> Result<ForeignResult, ForeignError> {
    let is_corrected = text.contains(RECORDED);
    let (tool, clock) =
        if is_corrected { ("wrk2", Clock::ResponseTime) } else { ("wrk", Clock::ServiceTime) };
    let mut result = ForeignResult::new(tool, clock);
    let mut spectrum: Vec<(f64, u64)> = Vec::new();
    let (mut is_in_spectrum, mut is_uncorrected, mut has_max) = (false, false, false);
    // A line whose time is none, unless it is the last one of a file that was cut short.
    let mut without_time = None;
    for (number, line) in lines(text) {
        is_uncorrected |= line.starts_with(UNCORRECTED);
        if is_uncorrected {
            // The rates come after it.
            read_rates(line, &mut result);
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Detailed", "Percentile", "spectrum:"] => is_in_spectrum = true,
            // "#[Mean = …": the end of the spectrum.
            [first, ..] if first.starts_with("#[") => is_in_spectrum = false,
            ["Value", "Percentile", ..] => {}
            [value, _, count, ..] if is_in_spectrum => {
                let wrong =
                    || ForeignError::new(format!("wrk2: line {number} is not a line of its spectrum"));
                let value: f64 = value.parse().map_err(|_| wrong())?;
                spectrum.push((value * US_IN_MS, count.parse().map_err(|_| wrong())?));
            }
            [threads, "threads", "and", connections, "connections"] if threads.parse::<u64>().is_ok() => {
                result.connections = connections.parse().ok();
            }
            ["Running", _, "test", "@", target] => result.target = Some((*target).to_owned()),
            ["Thread", "Stats", _, _, third, ..] => has_max = *third == "Max",
            ["Latency", mean, _, third, ..] if *mean != "Distribution" => {
                let mean = time_us(mean);
                without_time = without_time.or(mean.is_none().then_some(number));
                result.times_us.extend(mean.map(|mean| (Figure::Mean, mean)));
                // Some versions of wrk2 print a percentile in its place.
                result.times_us.extend(time_us(third).filter(|_| has_max).map(|max| (Figure::Max, max)));
            }
            [percentile, time] if percentile.ends_with('%') => {
                let percentile = percentile.trim_end_matches('%').parse::<f64>().ok();
                let both = percentile.zip(time_us(time));
                without_time = without_time.or(both.is_none().then_some(number));
                let named = |(percentile, time)| Some((figure_of_percentile(percentile)?, time));
                result.times_us.extend(both.and_then(named));
            }
            _ => read_rates(line, &mut result),
        }
    }
    result.steps = from_cumulative(spectrum);
    result.add_percentiles_of_steps();
    if is_corrected {
        result.limit("times before its calibration ended, in its first seconds, are not in its histogram");
        result.limit(
            "the file does not tell the offered rate: the completed one is compared, as of a closed loop",
        );
    } else {
        result.limit_service_time("a closed loop that sends when the last response came");
        result.limit("no histogram: no figure has an interval");
    }
    if result.answered.is_none() {
        return Err(ForeignError::new(format!("{tool}: it has no line `N requests in …`: it was cut short")));
    }
    if let Some(number) = without_time {
        return Err(ForeignError::new(format!("{tool}: line {number} has no time")));
    }
    Ok(result)
}

/// A line at the end.
fn read_rates(line: &str, result: &mut ForeignResult) {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        [count, "requests", "in", time, ..] => {
            result.answered = count.parse().ok();
            result.duration_s = time_us(time.trim_end_matches(',')).map(|us| us / 1e6);
        }
        ["Requests/sec:", rate] => result.rate_completed = rate.parse().ok(),
        ["Socket", "errors:", rest @ ..] => {
            let counts = rest.iter().filter_map(|word| word.trim_end_matches(',').parse::<u64>().ok());
            result.failed = counts.fold(0, u64::saturating_add);
        }
        ["Non-2xx", _, _, "responses:", count] => {
            result.errors = count.parse().unwrap_or(0);
            result.limit(&format!("the times of {count} error responses are among those of the others"));
        }
        _ => {}
    }
}

/// `706.00us`, `1.44ms`, `1.30s`, `5.00m`, `1.00h`.
fn time_us(text: &str) -> Option<f64> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 60e6), ("h", 3600e6)];
    let at = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (value, unit) = text.split_at(at);
    let (_, unit_us) = units.iter().find(|(name, _)| *name == unit)?;
    Some(value.parse::<f64>().ok()? * unit_us)
}
