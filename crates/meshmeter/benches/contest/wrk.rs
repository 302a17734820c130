//! wrk: its arguments and its output.

use super::Outcome;
use super::process::Ended;

/// What wrk counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WrkReading {
    pub requests: f64,
    pub requests_per_second: f64,
}

/// Arguments for one thread and a closed loop over connections; the URL follows.
pub fn arguments(connections: u32, seconds: u32) -> Vec<String> {
    vec!["-t1".to_owned(), format!("-c{connections}"), format!("-d{seconds}s")]
}

/// Parses its output.
///
/// # Errors
/// Returns an error if it failed, or any request did.
pub fn read(ended: &Ended) -> Outcome<WrkReading> {
    let text = &ended.stdout;
    if !ended.status.success() || text.contains("Socket errors") || text.contains("Non-2xx") {
        return Err(format!("wrk: {}: {text}{}", ended.status, ended.stderr).into());
    }
    let requests = text
        .split_once(" requests in ")
        .and_then(|(before, _)| before.split_whitespace().last())
        .ok_or("wrk printed no count")?
        .parse()?;
    let requests_per_second = text
        .split_once("Requests/sec:")
        .and_then(|(_, rest)| rest.split_whitespace().next())
        .ok_or("wrk printed no rate")?
        .parse()?;
    Ok(WrkReading { requests, requests_per_second })
}
