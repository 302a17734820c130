//! When requests are due.
//!
//! A [`Schedule`] hands out slots in order of time. The loop looks at the next slot and takes it when the slot is due
//! and a connection is free: slots that nobody could take in time wait in the schedule itself, so that a backlog of any
//! length takes no memory, and each keeps the instant at which it was due.

mod closed;
mod open;
mod profile;

pub use closed::ThinkTime;
pub(crate) use closed::{ClosedLoop, ClosedLoopSettings};
pub(crate) use open::OpenLoop;
pub use open::duration_of;
pub(crate) use profile::RateProfile;
pub use profile::RateStage;

use crate::clock::Nanos;
use rand::RngExt as _;
use rand::rngs::ChaCha8Rng;

/// How requests are spread at a given rate.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Arrival {
    /// At even distances.
    #[default]
    Uniform,
    /// As independent users would come: exponential distances.
    Poisson,
}

/// Slots at which requests are due, in order of time.
pub(crate) trait Schedule {
    /// When the next slot is due; absent where none is known, for now or for ever.
    fn next_due(&self) -> Option<Nanos>;

    /// Whether requests are due whatever became of those before. Else, in a closed loop, no more are begun than there are clients.
    fn is_open(&self) -> bool;

    /// Takes the next slot.
    fn take(&mut self);

    /// A request has ended, one way or the other.
    fn request_ended(&mut self, at: Nanos);

    /// Gives up all slots due before `at`; returns how many they were.
    fn skip_until(&mut self, at: Nanos) -> u64;

    /// Where a fixed number of requests is wanted and all have been begun: when the last request of this thread ended. Once
    /// none is on its way the run is over, before its time.
    fn used_up_since(&self) -> Option<Nanos>;
}

/// An exponential variate by inversion.
fn exponential(random: &mut ChaCha8Rng, mean: f64) -> f64 {
    let uniform: f64 = random.random();
    // 1 − u lies in (0, 1], whose logarithm is finite.
    -mean * (1.0 - uniform).ln()
}
