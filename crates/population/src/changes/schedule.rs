//! Times at which pods are replaced.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use results::units::Churn;
use std::time::Duration;

/// Endless times since the start of the churn, one per replaced pod: independent of each other, at a mean rate.
#[derive(Debug)]
pub struct ChurnSchedule {
    pods_per_s: f64,
    random: ChaCha8Rng,
    at_s: f64,
}

impl ChurnSchedule {
    /// Absent without churn.
    pub fn new(churn: Churn, pods: usize, seed: u64) -> Option<Self> {
        let pods_per_s = churn.pods_per_s(pods);
        let random = ChaCha8Rng::seed_from_u64(seed);
        (pods_per_s > 0.0).then_some(Self { pods_per_s, random, at_s: 0.0 })
    }
}

impl Iterator for ChurnSchedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let uniform: f64 = self.random.random();
        self.at_s += -(1.0 - uniform).ln() / self.pods_per_s;
        Duration::try_from_secs_f64(self.at_s).ok()
    }
}
