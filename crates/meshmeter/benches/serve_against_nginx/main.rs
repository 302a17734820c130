//! `cargo bench --bench serve_against_nginx`: is `meshmeter serve` ever the bottleneck? Both servers, in
//! turn, respond with 1 KB, pinned to CPU 0, to wrk on CPU 1. Takes about a minute; leave the machine alone
//! in the meantime. The tests run it in a tiny form. Exits with status 1 if a promise is not kept.

#[path = "../contest/mod.rs"]
mod contest;
mod server_contest;

use contest::exit_code;
use server_contest::Contest;
use std::process::ExitCode;

/// Promises of the service: maximum idle memory, and minimum requests per CPU second as a fraction of
/// nginx's.
const MAX_IDLE_MEMORY_BYTES: u64 = 6_000_000;
const MIN_REQUESTS_PER_CORE_RATIO: f64 = 0.9;

#[allow(clippy::print_stdout, reason = "a benchmark's result is its output")]
fn main() -> ExitCode {
    let contest =
        Contest { meshmeter: env!("CARGO_BIN_EXE_meshmeter").into(), rounds: 7, seconds: 3, connections: 64 };
    exit_code(contest.run().map(|result| {
        println!("{result}");
        let small = result.servers[0].idle_memory_bytes <= MAX_IDLE_MEMORY_BYTES;
        let fast = result.requests_per_core_ratio() >= MIN_REQUESTS_PER_CORE_RATIO;
        small && fast
    }))
}
