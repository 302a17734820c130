//! `cargo bench --bench load_against_peers`: `meshmeter load` and its peers alternately, pinned to CPU 1, against nginx on CPU 0
//! with a body of 1 KB. Takes about nine minutes; leave the machine alone meanwhile. wrk and h2load must be there; fortio, oha and wrk2 are
//! taken from the PATH or from where `FORTIO`, `OHA` and `WRK2` name them. The same contest runs tiny in the tests.
//! Words after `--` choose the parts whose titles have them all: `cargo bench --bench load_against_peers -- HTTP/2`.
//! Ends with status 1 where a promise is not kept.

#[path = "../contest/mod.rs"]
mod contest;
mod generator_contest;
mod generators;
mod peers;
mod promises;

use contest::Outcome;
use contest::process::on_path;
use generator_contest::{Effort, parts};
use peers::Peers;
use promises::promises;
use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Enough rounds for a median, long enough for a p99: at full speed, at 1000 a second, at 20 000 a second, over HTTP/2.
const EFFORTS: [Effort; 4] = [
    Effort { rounds: 7, seconds: 3 },
    Effort { rounds: 7, seconds: 5 },
    Effort { rounds: 7, seconds: 5 },
    Effort { rounds: 7, seconds: 3 },
];

#[allow(clippy::print_stderr, reason = "a benchmark's result is its output")]
fn main() -> ExitCode {
    match contest() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every promise was kept.
#[allow(clippy::print_stdout, reason = "a benchmark's result is its output")]
fn contest() -> Outcome<bool> {
    let meshmeter = Path::new(env!("CARGO_BIN_EXE_meshmeter"));
    let mut results = Vec::new();
    let peers = Peers::find(|variable| env::var_os(variable).map(PathBuf::from), on_path);
    // Cargo itself adds `--bench`.
    let words: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let chosen = parts(meshmeter, &peers).into_iter().zip(EFFORTS);
    for (part, effort) in chosen.filter(|(part, _)| words.iter().all(|word| part.title.contains(word))) {
        let result = part.run(effort)?;
        println!("{result}");
        results.push(result);
    }
    if results.is_empty() {
        return Err(format!("no part has `{}` in its title", words.join(" ")).into());
    }
    let promises = promises(&results);
    for promise in &promises {
        println!("{promise}");
    }
    Ok(promises.iter().all(|promise| promise.kept))
}
