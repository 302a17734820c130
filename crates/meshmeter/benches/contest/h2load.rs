//! h2load of nghttp2: its arguments and its output.

use super::Outcome;
use super::process::Ended;

/// What h2load counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct H2loadReading {
    pub requests: f64,
    pub requests_per_second: f64,
}

/// Arguments for one thread and a closed loop over connections with several streams each; the URL follows.
pub fn arguments(connections: u32, streams: u32, seconds: u32) -> Vec<String> {
    vec!["-t1".to_owned(), format!("-c{connections}"), format!("-m{streams}"), format!("-D{seconds}")]
}

/// Parses its output.
///
/// # Errors
/// Returns an error if it failed, or any request did.
pub fn read(ended: &Ended) -> Outcome<H2loadReading> {
    let text = &ended.stdout;
    let number_before = |words: &str| -> Outcome<f64> {
        let before = text.split_once(words).and_then(|(before, _)| before.split_whitespace().last());
        Ok(before.ok_or_else(|| format!("h2load: no number before `{words}`"))?.parse()?)
    };
    // A response whose head arrived before the end is counted by status. A response that did not complete is
    // not counted as a request.
    let good = [" 0 failed, 0 errored, 0 timeout", " 2xx, 0 3xx, 0 4xx, 0 5xx"];
    if !ended.status.success() || !good.iter().all(|words| text.contains(words)) {
        return Err(format!("h2load: {}: {text}{}", ended.status, ended.stderr).into());
    }
    Ok(H2loadReading { requests: number_before(" done,")?, requests_per_second: number_before(" req/s,")? })
}
