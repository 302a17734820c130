//! `cargo bench --bench fan_out`: how much latency does a service of a topology
//! (`meshmeter serve --topology`) add that calls two others at once? Takes about two minutes; leave the machine
//! alone in the meantime. The tests run it in a tiny form. Exits with status 1 if a promise is not kept.

mod bare;
#[path = "../contest/mod.rs"]
mod contest;
mod fan_out_contest;

use contest::exit_code;
use fan_out_contest::{Contest, PROMISED};
use std::process::ExitCode;

/// Maximum that a fan-out of two over HTTP/1.1 adds to the p50 of a callee that responds at once,
/// microseconds.
const MAX_ADDED_P50_US: f64 = 60.0;
/// Maximum resident memory of an idle service with four callees.
const MAX_IDLE_MEMORY_BYTES: u64 = 10_000_000;

#[allow(clippy::print_stdout, reason = "a benchmark's result is its output")]
fn main() -> ExitCode {
    let contest =
        Contest { meshmeter: env!("CARGO_BIN_EXE_meshmeter").into(), rounds: 7, seconds: 2, rate: 1000 };
    exit_code(contest.run().map(|result| {
        println!("{result}");
        let small = result.idle_memory_bytes <= MAX_IDLE_MEMORY_BYTES;
        let fast = result.added_p50_us(PROMISED).is_some_and(|added_us| added_us <= MAX_ADDED_P50_US);
        println!("kept: at most 10 MB idle {small}, at most 60 us added by {PROMISED} {fast}");
        small && fast
    }))
}
