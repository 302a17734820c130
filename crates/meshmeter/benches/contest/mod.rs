//! Common parts of the benchmarks of programs against each other: programs pinned to CPUs, run until they
//! exit, with their resource usage; servers that are stopped; the order of contenders.
//!
//! Read `process.rs` first. What is compared, and what is printed, is up to each benchmark.

#![allow(dead_code, reason = "each benchmark uses a part of this")]

pub mod h2load;
pub mod nginx;
pub mod process;
pub mod promise;
pub mod server;
pub mod wrk;

use std::error::Error;
use std::process::ExitCode;

/// A result, or a message that says what is missing or wrong.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// Exit status of a benchmark that knows whether its promises were kept; prints its error.
#[allow(clippy::print_stderr, reason = "a benchmark's result is its output")]
pub fn exit_code(kept: Outcome<bool>) -> ExitCode {
    match kept {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Size of response bodies, bytes.
pub const BODY_BYTES: usize = 1024;

/// Order of the contenders in a round; each round starts with the next one.
pub fn turns(round: usize, contenders: usize) -> impl Iterator<Item = usize> {
    (0..contenders).map(move |place| (round + place) % contenders)
}

/// Median; NaN if there are no figures.
pub fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    let upper = figures.len() / 2;
    match figures.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => figures[upper],
        _ => f64::midpoint(figures[upper - 1], figures[upper]),
    }
}
