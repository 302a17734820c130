//! `cargo bench --bench lateness`: what does it cost to send requests on time? CPU per request of `meshmeter load` with several
//! tolerances and of its peers, beside how late their requests are, measured at the server: arrivals by the kernel's timestamps
//! against the schedule that fits them best. Takes about seven minutes; leave the machine alone in the meantime. fortio, oha and
//! wrk2 are taken from PATH or from where `FORTIO`, `OHA` and `WRK2` name them. Numbers after `--` select rates:
//! `cargo bench --bench lateness -- 20000`. The tests run it in a tiny form. It has no promises.

mod arrivals;
#[path = "../contest/mod.rs"]
mod contest;
mod frontier;
#[allow(dead_code, reason = "tasks and programs of other benchmarks")]
#[path = "../load_against_peers/generators.rs"]
mod generators;
#[path = "../load_against_peers/peers/mod.rs"]
mod peers;
mod schedule;
mod timestamped;

use contest::process::on_path;
use contest::{Outcome, exit_code};
use frontier::Frontier;
use peers::Peers;
use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const ROUNDS: usize = 3;
/// Rates, and for how many seconds a generator runs: long enough for its start to count little.
const RATES: [(u32, u32); 3] = [(1000, 8), (20_000, 4), (50_000, 4)];

fn main() -> ExitCode {
    exit_code(frontiers().map(|()| true))
}

#[allow(clippy::print_stdout, reason = "a benchmark's result is its output")]
fn frontiers() -> Outcome<()> {
    // Cargo itself adds `--bench`.
    let asked = env::args().skip(1).filter(|word| !word.starts_with('-'));
    let asked: Vec<u32> = asked.map(|word| word.parse()).collect::<Result<_, _>>()?;
    let peers = Peers::find(|variable| env::var_os(variable).map(PathBuf::from), on_path);
    for (rate, seconds) in RATES {
        if asked.is_empty() || asked.contains(&rate) {
            let frontier = Frontier::new(rate, Path::new(env!("CARGO_BIN_EXE_meshmeter")), &peers);
            println!("{}", frontier.run(ROUNDS, seconds)?);
        }
    }
    Ok(())
}
