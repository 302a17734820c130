//! `cargo bench --bench load_against_peers`: `meshmeter load` and its peers in turn, pinned to CPU 1, against
//! nginx on CPU 0 with a body of 1 KB. Takes about twenty minutes; leave the machine alone in the meantime.
//! wrk and h2load must be installed; fortio, oha and wrk2 are taken from PATH or from where `FORTIO`, `OHA`
//! and `WRK2` name them. The tests run it in a tiny form. Words after `--` select the parts whose titles
//! contain them all: `cargo bench --bench load_against_peers -- HTTP/2`. With `--quick` among them, takes a
//! first look in two minutes: one or two rounds of a second. Exits with status 1 if a promise is not kept.

#[path = "../contest/mod.rs"]
mod contest;
mod generator_contest;
mod generators;
mod parts;
mod peers;
mod promises;

use contest::process::on_path;
use contest::{Outcome, exit_code};
use parts::{Size, effort, parts};
use peers::Peers;
use promises::promises;
use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The sizes in the titles of the parts.
const FULL_SIZE: Size = Size { brisk_rate: 20_000, many_connections: 10_000 };

fn main() -> ExitCode {
    exit_code(contest())
}

/// Returns true if every promise was kept.
#[allow(clippy::print_stdout, reason = "a benchmark's result is its output")]
fn contest() -> Outcome<bool> {
    let meshmeter = Path::new(env!("CARGO_BIN_EXE_meshmeter"));
    let mut results = Vec::new();
    let peers = Peers::find(|variable| env::var_os(variable).map(PathBuf::from), on_path);
    // Cargo itself adds `--bench`.
    let (options, words): (Vec<String>, Vec<String>) =
        env::args().skip(1).partition(|word| word.starts_with('-'));
    let quick = options.iter().any(|option| option == "--quick");
    let chosen = parts(meshmeter, &peers, FULL_SIZE).into_iter();
    for part in chosen.filter(|part| words.iter().all(|word| part.title.contains(word))) {
        let effort = effort(part.title, quick);
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
