//! When requests are due.
//!
//! A [`Schedule`] hands out slots in order of time. The loop looks at the next slot and takes it when the slot is due
//! and a connection is free: slots that nobody could take in time wait in the schedule itself, so that a backlog of any
//! length takes no memory, and each keeps the instant at which it was due.

mod closed;
mod open;
mod profile;

pub(crate) use closed::ClosedLoop;
pub(crate) use open::OpenLoop;
pub(crate) use profile::RateProfile;
pub use profile::RateStage;

use crate::clock::Nanos;

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

    /// Takes the next slot.
    fn take(&mut self);

    /// A request has ended, one way or the other.
    fn request_ended(&mut self, at: Nanos);

    /// Gives up all slots due before `at`; returns how many they were.
    fn skip_until(&mut self, at: Nanos) -> u64;
}
