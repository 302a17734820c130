//! Waking on time at a bearable cost.
//!
//! Read `pacer.rs` first: it decides, for one thread, between sleeping and spinning; a state machine without a clock of its
//! own. `spare.rs` watches whether the machine has a CPU to spare for spinning.

mod pacer;
mod spare;

pub(crate) use pacer::{Pacer, Spent, Wait};
pub(crate) use spare::{SpareCpu, SpareWatch};
