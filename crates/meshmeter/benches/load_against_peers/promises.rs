//! What `meshmeter load` promises against its peers, judged by medians over the rounds. Pure.

use crate::generator_contest::{CALM, CPU_US, FULL, Figure, HTTP2, LAG_P99_US, P50_US, PartResult};
use crate::generators::ON_EPOLL;
use std::fmt;

/// Schedule lag at p99 at 1000 a second, microseconds.
const LAG_P99_MAX_US: f64 = 100.0;
/// CPU for each request over HTTP/2, as a part of a peer's.
const HTTP2_CPU_RATIOS_MAX: [(&str, f64); 2] = [("h2load", 1.0), ("fortio", 0.7)];

/// A promise, with the figures that it is judged by.
#[derive(Debug, PartialEq)]
pub struct Promise {
    pub text: String,
    pub kept: bool,
}

/// Every promise that these results can be held against. One about a peer that did not run is not among them; the tables
/// say who did not.
pub fn promises(results: &[PartResult]) -> Vec<Promise> {
    let mut promises: Vec<Promise> = results.iter().filter_map(valid_figures).collect();
    if let Some(result) = results.iter().find(|result| result.title == HTTP2) {
        promises.extend(http2_promises(result));
    }
    promises.extend(results.iter().find(|result| result.title == FULL).and_then(epoll_promise));
    let Some(calm) = results.iter().find(|result| result.title == CALM) else { return promises };
    let median = |label, figure: Figure| calm.contender(label).map(|contender| contender.median(figure));
    if let Some(lag_us) = median("meshmeter load", LAG_P99_US) {
        promises.push(Promise {
            text: format!("{CALM}: schedule lag p99 under {LAG_P99_MAX_US:.0} us: {lag_us:.1} us"),
            kept: lag_us < LAG_P99_MAX_US,
        });
    }
    if let (Some(ours_us), Some(theirs_us)) = (median("meshmeter load", P50_US), median("fortio", P50_US)) {
        promises.push(Promise {
            text: format!("{CALM}: p50 at or below fortio's: {ours_us:.1} us, fortio {theirs_us:.1} us"),
            kept: ours_us <= theirs_us,
        });
    }
    promises
}

/// Where io_uring is forbidden, a request must cost no more than wrk's.
fn epoll_promise(result: &PartResult) -> Option<Promise> {
    let cpu_us = |label| result.contender(label).map(|contender| contender.median(CPU_US));
    let ratio = cpu_us(ON_EPOLL)? / cpu_us("wrk")?;
    let text = format!("{FULL}: CPU for each request on epoll at most wrk's: {ratio:.2}");
    Some(Promise { text, kept: ratio <= 1.0 })
}

fn http2_promises(result: &PartResult) -> impl Iterator<Item = Promise> {
    let cpu_us = |label| result.contender(label).map(|contender| contender.median(CPU_US));
    HTTP2_CPU_RATIOS_MAX.into_iter().filter_map(move |(peer, most)| {
        let ratio = cpu_us("meshmeter load")? / cpu_us(peer)?;
        let text = format!("{HTTP2}: CPU for each request at most {most} of {peer}'s: {ratio:.2}");
        Some(Promise { text, kept: ratio <= most })
    })
}

fn valid_figures(result: &PartResult) -> Option<Promise> {
    let invalid = result.contender("meshmeter load")?.invalid();
    let mut text = format!("{}: every round of meshmeter load is valid", result.title);
    if !invalid.is_empty() {
        text.push_str(&format!(": {}", invalid.join("; ")));
    }
    Some(Promise { text, kept: invalid.is_empty() })
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<9} {}", if self.kept { "kept:" } else { "NOT KEPT:" }, self.text)
    }
}
