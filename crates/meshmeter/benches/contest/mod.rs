//! What the benchmarks of programs against each other have in common: programs pinned to CPUs, run to their end with what
//! they used, servers that go away, taking turns.
//!
//! Read `process.rs` first. Left out: what is compared with what, and what is printed. That is each benchmark's own.

#![allow(dead_code, reason = "each benchmark uses a part of this")]

pub mod h2load;
pub mod nginx;
pub mod process;
pub mod server;
pub mod wrk;

use std::error::Error;

/// A result, or a text that says what is missing or wrong.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// Size of the body that servers answer with, bytes.
pub const BODY_BYTES: usize = 1024;

/// In which order the contenders run in a round: whoever comes first takes turns too.
pub fn turns(round: usize, contenders: usize) -> impl Iterator<Item = usize> {
    (0..contenders).map(move |place| (round + place) % contenders)
}

/// The median; not a number where there are no figures.
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
