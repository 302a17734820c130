//! h2load, of nghttp2: its arguments, and what it prints.

use super::Outcome;
use super::process::Ended;

/// What h2load counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct H2loadReading {
    pub requests: f64,
    pub requests_per_second: f64,
}

/// One thread, in a closed loop over so many connections of so many streams; the URL follows.
pub fn arguments(connections: u32, streams: u32, seconds: u32) -> Vec<String> {
    vec!["-t1".to_owned(), format!("-c{connections}"), format!("-m{streams}"), format!("-D{seconds}")]
}

/// Reads what it printed.
///
/// # Errors
/// Where it failed, or any request did.
pub fn read(ended: &Ended) -> Outcome<H2loadReading> {
    let text = &ended.stdout;
    let number_before = |words: &str| -> Outcome<f64> {
        let before = text.split_once(words).and_then(|(before, _)| before.split_whitespace().last());
        Ok(before.ok_or_else(|| format!("h2load printed no number before `{words}`"))?.parse()?)
    };
    let unhealthy = !ended.status.success() || !text.contains(" 0 failed, 0 errored, 0 timeout");
    let (answers, succeeded) = (number_before(" done,"), number_before(" 2xx,"));
    match (answers, succeeded) {
        (Ok(answers), Ok(succeeded)) if !unhealthy && answers == succeeded => {
            Ok(H2loadReading { requests: answers, requests_per_second: number_before(" req/s,")? })
        }
        _ => Err(format!("h2load: {}: {text}{}", ended.status, ended.stderr).into()),
    }
}
