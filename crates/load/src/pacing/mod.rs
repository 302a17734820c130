//! Waking on time at an acceptable CPU cost.
//!
//! Read `pacer.rs` first: for one thread it decides between sleeping and spinning, as a state machine without
//! a clock of its own. `spare.rs` watches whether the machine has a CPU to spare for spinning.

mod pacer;
mod spare;

pub(crate) use pacer::{Pacer, Spent, Wait};
pub(crate) use spare::{SpareCpu, SpareWatch};
