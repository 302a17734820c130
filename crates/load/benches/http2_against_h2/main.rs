//! `cargo bench -p meshmeter-load --bench http2_against_h2`: the load engine's HTTP/2 and a minimal client on the `h2` crate and
//! tokio, in turn, pinned to CPU 1, against one server on CPU 0 that is neither. First the protocol alone without sockets, then a
//! closed loop, an open loop, and memory by connections and streams. Takes about four minutes; leave the machine alone in the
//! meantime. Words after `--` select parts: `protocol`, `closed`, `open`, `memory`. Without `--bench`, as the tests run it, it does
//! very little. `docs/decisions/0028-http2.md` has figures. Exits with status 1 if a promise is not kept.
//!
//! Requests, their rate and their lateness are those that the server saw; CPU is of the whole process. Read `parts.rs` first.

mod allocations;
mod client;
#[path = "../../../meshmeter/benches/contest/mod.rs"]
mod contest;
mod engine_client;
mod h2_client;
mod pacer;
mod parts;
mod protocol_alone;
mod responses;
#[allow(dead_code, reason = "schedules of other generators")]
#[path = "../../../meshmeter/benches/lateness/schedule.rs"]
mod schedule;
mod server;
mod task;
#[path = "../../../meshmeter/benches/lateness/timestamped.rs"]
mod timestamped;

use client::Client;
use contest::{Outcome, exit_code};
use parts::{Effort, LoadPart, MemoryPart, ProtocolPart};
use server::SERVER;
use std::env;
use std::process::ExitCode;
use std::time::Duration;

const FULL: Effort =
    Effort { rounds: 7, duration: Duration::from_secs(3), requests: 100_000, rate: 20_000, many: 1000 };
/// Shows that the benchmark works, and no figures.
const SMALL: Effort =
    Effort { rounds: 1, duration: Duration::from_millis(200), requests: 100, rate: 500, many: 20 };

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        [SERVER, rate] => server::run(rate).map(|()| true),
        [word, task] => match Client::from_word(word) {
            Some(client) => client.work(task).map(|()| true),
            None => compare(&words),
        },
        _ => compare(&words),
    };
    exit_code(outcome)
}

/// Runs the parts. Returns true if every promise was kept; the small form checks none.
#[allow(clippy::print_stdout, reason = "a benchmark's result is its output")]
fn compare(words: &[&str]) -> Outcome<bool> {
    const PARTS: [&str; 4] = ["protocol", "closed", "open", "memory"];
    // Cargo itself adds `--bench`.
    let is_full = words.contains(&"--bench");
    let effort = if is_full { FULL } else { SMALL };
    let chosen: Vec<&&str> = words.iter().filter(|word| !word.starts_with('-')).collect();
    // Under `cargo test`, words are names of tests.
    if let Some(word) = chosen.iter().find(|word| is_full && !PARTS.contains(word)) {
        return Err(format!("`{word}` is not a part: expected one of {}", PARTS.join(", ")).into());
    }
    let is_chosen = |part: &str| chosen.is_empty() || chosen.iter().any(|word| **word == part);
    let mut promises = Vec::new();
    if is_chosen("protocol") {
        let part = ProtocolPart::run(effort)?;
        println!("{part}");
        promises.extend(part.promises());
    }
    if is_chosen("closed") {
        let part = LoadPart::closed(effort)?;
        println!("{part}");
        promises.extend(part.promise());
    }
    if is_chosen("open") {
        let part = LoadPart::open(effort)?;
        println!("{part}");
        promises.extend(part.promise());
    }
    if is_chosen("memory") {
        let part = MemoryPart::run(effort)?;
        println!("{part}");
        promises.extend(part.promises());
    }
    if !is_full {
        return Ok(true);
    }
    promises.iter().for_each(|promise| println!("{promise}"));
    Ok(promises.iter().all(|promise| promise.kept))
}
