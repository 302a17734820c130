//! Search for the highest rate that holds an objective. [`statistics::search`] decides the next step, a
//! [`Probing`] runs it, and one result has all probes. A probe may be a run of the generator or a trial of a
//! whole deployment.

mod progress;
mod result;
mod runner;

pub use progress::SearchProgress;
pub use runner::{Probing, SearchSettings};

use crate::failure::Failure;
use results::SearchResult;
use runner::SearchRunner;
use statistics::search::Search;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which a pause checks for an early end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Searches to the end, or until `stop` is set; the result then has what is known so far.
pub fn run(
    settings: &SearchSettings,
    probing: &mut dyn Probing,
    progress: &mut SearchProgress,
    stop: &AtomicBool,
) -> Result<SearchResult, Failure> {
    let mut runner = SearchRunner {
        settings,
        search: Search::new(settings.plan),
        records: Vec::new(),
        started: Instant::now(),
        unreachable: false,
        too_short_at: None,
    };
    while let Some(rest) = runner.step(probing, progress, stop)? {
        pause(rest, stop);
    }
    Ok(runner.result())
}

/// Pauses for `rest`, or until `stop` is set.
fn pause(rest: Duration, stop: &AtomicBool) {
    let until = Instant::now() + rest;
    while !stop.load(Ordering::Relaxed) && Instant::now() < until {
        thread::sleep(until.saturating_duration_since(Instant::now()).min(POLL_INTERVAL));
    }
}
