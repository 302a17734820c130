//! Number formatting, the same in the terminal and in HTML: 3 significant digits, a unit with each number, an
//! en dash in ranges.
//!
//! Times of one table or chart share one [`TimeUnit`], so that they can be compared at a glance. Figures that
//! are not finite are shown as [`ABSENT`].
//!
//! `number.rs` is the basis. Times, sizes and intervals have one file each, `quantity.rs` has rates, shares
//! and CPU, and `words.rs` has text about programs and published figures.

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
pub(crate) use words::cut;
pub use words::{agreement, named_program, shortened_digest, unbroken, version};

/// Shown in place of a missing figure.
pub const ABSENT: &str = "–";
