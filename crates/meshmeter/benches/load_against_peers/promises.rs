//! What `meshmeter load` promises against its peers, judged by medians over the rounds. Pure.

use crate::generator_contest::{CALM, Figure, LAG_P99_US, P50_US, PartResult};
use std::fmt;

/// Schedule lag at p99 at 1000 a second, microseconds.
const LAG_P99_MAX_US: f64 = 100.0;

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
