//! When requests are due.
//!
//! A [`Schedule`] yields slots in order of time. The loop takes the next slot when it is due and a connection
//! is free. Slots that cannot be taken in time wait in the schedule itself. So a backlog of any length takes
//! no memory, and each slot keeps the instant at which it was due.

mod bursts;
mod clients;
mod closed;
mod open;
mod profile;
mod replay;

pub use bursts::Bursts;
pub use clients::ClientStage;
pub use closed::ThinkTime;
pub(crate) use closed::{ClosedLoop, ClosedLoopSettings};
pub(crate) use open::OpenLoop;
pub use open::duration_of;
pub(crate) use profile::RateProfile;
pub use profile::RateStage;
pub use replay::Replay;
pub(crate) use replay::ReplaySchedule;

use crate::clock::Nanos;
use rand::RngExt as _;
use rand::rngs::ChaCha8Rng;

/// Distribution of requests at a given rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Arrival {
    /// At even intervals.
    #[default]
    Uniform,
    /// Like independent users: exponentially distributed intervals.
    Poisson,
    /// As Poisson, at a rate that is higher in bursts.
    Bursts(Bursts),
}

/// Slots at which requests are due, in order of time.
pub(crate) trait Schedule {
    /// When the next slot is due; `None` if none is known, for now or forever.
    fn next_due(&self) -> Option<Nanos>;

    /// True if requests are due regardless of earlier ones. False in a closed loop, which never has more
    /// requests in flight than clients.
    fn is_open(&self) -> bool;

    /// Takes the next slot.
    fn take(&mut self);

    /// A request has completed or failed.
    fn request_ended(&mut self, at: Nanos);

    /// Drops all slots due before `at`; returns their number.
    fn skip_until(&mut self, at: Nanos) -> u64;

    /// For a fixed number of requests, once all have been started: when the last request of this thread
    /// ended. The run is then over early, as soon as none is in flight.
    fn used_up_since(&self) -> Option<Nanos>;
}

/// Draws an exponential variate by inversion.
fn exponential(random: &mut ChaCha8Rng, mean: f64) -> f64 {
    let uniform: f64 = random.random();
    // 1 − u lies in (0, 1], whose logarithm is finite.
    -mean * (1.0 - uniform).ln()
}
