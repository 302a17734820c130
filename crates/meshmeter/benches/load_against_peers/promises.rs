//! Promises of `meshmeter load` against its peers, checked by medians over the rounds. Pure.

use crate::contest::promise::Promise;
use crate::generator_contest::{
    CPU_US, Figure, HANDSHAKES, IMBALANCE_PERCENT, LAG_P99_US, MEMORY_MB, P50_US, PartResult, RATE,
};
use crate::parts::{
    ALONE, BRISK, CALM, CHURN, ECONOMICAL, FOUR_TIMES, FULL, HTTP2, LASTING, MANY, ON_EPOLL, ON_IO_URING,
    PRECISE, PRECISE_ON_IO_URING, TLS,
};

/// Maximum p99 of the schedule lag at 1000 requests/s, microseconds.
const MAX_LAG_P99_US: f64 = 100.0;
/// Maximum CPU time per request over HTTP/2, as a fraction of a peer's.
const HTTP2_CPU_RATIOS_MAX: [(&str, f64); 2] = [("h2load", 1.0), ("fortio", 0.7)];

/// Maximum difference of the median response time at 1000 requests/s from that of a client that has the
/// server to itself, microseconds.
const MAX_NEAR_ALONE_US: f64 = 10.0;
/// Maximum p99 of the schedule lag at 20 000 requests/s, microseconds.
const BRISK_LAG_P99_MAX_US: [(&str, f64); 4] =
    [(OURS, 100.0), (ON_IO_URING, 100.0), (PRECISE, 30.0), (PRECISE_ON_IO_URING, 30.0)];
/// Maximum CPU time per request at 20 000 requests/s with economical pacing, as a fraction of a peer's.
const BRISK_CPU_MAX: [(&str, f64); 3] = [("fortio", 0.75), ("oha", 0.6), ("wrk2", 1.0)];

/// Maximum CPU time per request at full speed, as a fraction of wrk's.
const FULL_CPU_OF_WRK_MAX: [(&str, f64); 2] = [(OURS, 0.8), (ON_EPOLL, 1.0)];

/// Maximum CPU time per request over TLS, as a fraction of wrk's.
const MAX_TLS_CPU_OF_WRK: f64 = 1.0;
/// Minimum share of the churned connections whose handshake is in the histogram: the last ones may lie
/// outside.
const MIN_HANDSHAKES: f64 = 0.99;
/// Maximum deviation of a connection's requests from the average, percent.
const MAX_IMBALANCE_PERCENT: f64 = 5.0;
/// Maximum peak resident memory with 64 and with ten thousand connections, and maximum growth of a run four times as
/// long. Some 19 MB of it are pages of the program's file, which grow with the program and stay in the page cache.
const MAX_MEMORY_MB: f64 = 32.0;
const MAX_MEMORY_OF_MANY_MB: f64 = 96.0;
const MAX_MEMORY_GROWTH: f64 = 1.1;

const OURS: &str = "meshmeter load";

/// All promises that these results can be checked against. Promises about a peer that did not run are left
/// out; the tables say which peers did not run.
pub fn promises(results: &[PartResult]) -> Vec<Promise> {
    let mut promises: Vec<Promise> = results.iter().filter_map(valid_figures).collect();
    for result in results {
        match result.title {
            FULL => promises.extend(full_speed(result)),
            CALM => promises.extend(calm(result)),
            BRISK => promises.extend(brisk(result)),
            HTTP2 => promises.extend(http2(result)),
            TLS => promises.extend(tls(result)),
            CHURN => promises.extend(churn(result)),
            MANY => promises.extend(many(result)),
            LASTING => promises.extend(lasting(result)),
            _ => {}
        }
    }
    promises
}

/// Promises in a closed loop.
fn full_speed(result: &PartResult) -> Vec<Promise> {
    let mut promises = Vec::new();
    for (label, most) in FULL_CPU_OF_WRK_MAX {
        if let (Some(ours), Some(theirs)) = (median(result, label, CPU_US), median(result, "wrk", CPU_US)) {
            promises.push(at_most(result, &format!("{label}: CPU over wrk's"), ours / theirs, most));
        }
        if let (Some(ours), Some(theirs)) = (median(result, label, RATE), median(result, "wrk", RATE)) {
            promises.push(at_least(result, &format!("{label}: answers/s over wrk's"), ours / theirs, 1.0));
        }
    }
    promises
}

/// Promises in a closed loop over TLS.
fn tls(result: &PartResult) -> Vec<Promise> {
    let mut promises = Vec::new();
    for label in [OURS, ON_EPOLL] {
        if let (Some(ours), Some(theirs)) = (median(result, label, CPU_US), median(result, "wrk", CPU_US)) {
            let what = format!("{label}: CPU over wrk's");
            promises.push(at_most(result, &what, ours / theirs, MAX_TLS_CPU_OF_WRK));
        }
    }
    promises
}

/// Promises with a handshake per request.
fn churn(result: &PartResult) -> Vec<Promise> {
    let shares = [OURS, ON_EPOLL].map(|label| {
        let told = median(result, label, HANDSHAKES).zip(median(result, label, RATE));
        told.map(|(handshakes, answers)| {
            let what = format!("{label}: handshakes in their histogram over answers");
            at_least(result, &what, handshakes / answers, MIN_HANDSHAKES)
        })
    });
    shares.into_iter().flatten().collect()
}

/// Promises with ten thousand connections.
fn many(result: &PartResult) -> Vec<Promise> {
    let mut promises = Vec::new();
    for label in [OURS, ON_IO_URING] {
        if let Some(percent) = median(result, label, IMBALANCE_PERCENT) {
            let what = format!("{label}: requests of a connection from the average, percent");
            promises.push(at_most(result, &what, percent, MAX_IMBALANCE_PERCENT));
        }
        if let Some(memory_mb) = median(result, label, MEMORY_MB) {
            let what = format!("{label}: memory, MB");
            promises.push(at_most(result, &what, memory_mb, MAX_MEMORY_OF_MANY_MB));
        }
    }
    promises
}

/// Promises for a longer run.
fn lasting(result: &PartResult) -> Vec<Promise> {
    let memory = |label| median(result, label, MEMORY_MB);
    let mut promises: Vec<Promise> = [OURS, ON_IO_URING]
        .into_iter()
        .filter_map(|label| {
            Some(at_most(result, &format!("{label}: memory, MB"), memory(label)?, MAX_MEMORY_MB))
        })
        .collect();
    if let (Some(long), Some(short)) = (memory(FOUR_TIMES), memory(OURS)) {
        let what = "memory of a run four times as long over that";
        promises.push(at_most(result, what, long / short, MAX_MEMORY_GROWTH));
    }
    promises
}

/// Promises over HTTP/2.
fn http2(result: &PartResult) -> Vec<Promise> {
    let mut promises = Vec::new();
    for (peer, most) in HTTP2_CPU_RATIOS_MAX {
        if let (Some(ours), Some(theirs)) = (median(result, OURS, CPU_US), median(result, peer, CPU_US)) {
            promises.push(at_most(result, &format!("CPU over {peer}'s"), ours / theirs, most));
        }
    }
    promises
}

/// Median of a contender's figure, if it ran.
fn median(result: &PartResult, label: &str, figure: Figure) -> Option<f64> {
    result.contender(label).map(|contender| contender.median(figure))
}

/// Promises at 1000 requests/s.
fn calm(result: &PartResult) -> Vec<Promise> {
    let median = |label, figure| median(result, label, figure);
    let mut promises = Vec::new();
    if let Some(lag_us) = median(OURS, LAG_P99_US) {
        promises.push(at_most(result, "schedule lag p99, us", lag_us, MAX_LAG_P99_US));
    }
    if let (Some(ours_us), Some(alone_us)) = (median(OURS, P50_US), median(ALONE, P50_US)) {
        let what =
            format!("p50 {ours_us:.1} us, in a closed loop of one connection {alone_us:.1} us: apart, us");
        promises.push(at_most(result, &what, (ours_us - alone_us).abs(), MAX_NEAR_ALONE_US));
    }
    if let (Some(ours_us), Some(theirs_us)) = (median(OURS, P50_US), median("fortio", P50_US)) {
        promises.push(at_most(result, "p50 over fortio's", ours_us / theirs_us, 1.0));
    }
    if let (Some(ours_us), Some(theirs_us)) = (median(ECONOMICAL, CPU_US), median("fortio", CPU_US)) {
        promises.push(at_most(result, "CPU, economically paced, over fortio's", ours_us / theirs_us, 1.0));
    }
    promises
}

/// Promises at 20 000 requests/s.
fn brisk(result: &PartResult) -> Vec<Promise> {
    let mut promises = Vec::new();
    for (label, most_us) in BRISK_LAG_P99_MAX_US {
        if let Some(lag_us) = median(result, label, LAG_P99_US) {
            promises.push(at_most(result, &format!("{label}: schedule lag p99, us"), lag_us, most_us));
        }
    }
    for (peer, most) in BRISK_CPU_MAX {
        if let (Some(ours), Some(theirs)) = (median(result, OURS, CPU_US), median(result, peer, CPU_US)) {
            promises.push(at_most(result, &format!("CPU over {peer}'s"), ours / theirs, most));
        }
    }
    promises
}

/// A promise about NaN is not kept.
fn at_most(result: &PartResult, what: &str, figure: f64, most: f64) -> Promise {
    Promise::at_most(&format!("{}: {what}", result.title), figure, most)
}

/// A promise about NaN is not kept.
fn at_least(result: &PartResult, what: &str, figure: f64, least: f64) -> Promise {
    Promise {
        text: format!("{}: {what}: {figure:.2}, at least {least}", result.title),
        kept: figure >= least,
    }
}

fn valid_figures(result: &PartResult) -> Option<Promise> {
    let invalid = result.contender(OURS)?.invalid();
    let mut text = format!("{}: no round of meshmeter load has a reason against a figure", result.title);
    if !invalid.is_empty() {
        text.push_str(&format!(": {}", invalid.join("; ")));
    }
    Some(Promise { text, kept: invalid.is_empty() })
}
