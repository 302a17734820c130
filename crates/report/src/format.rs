//! Numbers as people read them, the same in the terminal and in HTML: 3 significant digits, a unit at each number,
//! an en dash in ranges.
//!
//! Times of one table or chart share one [`TimeUnit`], so that they can be compared at a glance. Figures that are not
//! finite read as [`ABSENT`].
//!
//! `number.rs` is what all rest on; times, sizes and intervals have a file each, `quantity.rs` has rates, shares and CPU,
//! `words.rs` what is said of programs and of figures of others.

mod interval;
mod number;
mod quantity;
mod size;
#[cfg(test)]
mod tests;
mod time;
mod words;

pub use interval::{Interval, cores_interval};
pub use number::{count, counted, digits, tick, with_unit};
pub use quantity::{cores, cores_number, offered_rate, percent, rate};
pub use size::{SizeUnit, payload, size};
pub use time::{TimeUnit, above, duration, moment, time, time_or_above};
pub use words::{agreement, named_program, shortened_digest, unbroken};

/// What stands where there is no figure.
pub const ABSENT: &str = "–";
