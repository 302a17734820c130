//! Backoff between connection attempts: exponential with full jitter, like Envoy's.

use crate::spec::BackoffSpec;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use std::time::Duration;

/// Backoff state of one proxy.
pub(crate) struct Backoff {
    spec: BackoffSpec,
    failures: u32,
    random: u64,
}

impl Backoff {
    pub(crate) fn new(spec: BackoffSpec, seed: u64) -> Self {
        Self { spec, failures: 0, random: seed }
    }

    /// The next wait: random up to a bound that doubles with each failure.
    pub(crate) fn next(&mut self) -> Duration {
        let doubled = self.spec.base.saturating_mul(1 << self.failures.min(16));
        self.failures += 1;
        let bound = doubled.min(self.spec.max);
        let mut random = ChaCha8Rng::seed_from_u64(self.random);
        self.random = random.random();
        bound.mul_f64(random.random::<f64>())
    }

    /// To be called after a response: the next bound is the initial one.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_bound_and_restart_after_reset() {
        let spec = BackoffSpec::default();
        let mut all = Vec::new();
        for seed in 0..200 {
            let mut backoff = Backoff::new(spec, seed);
            let waits: Vec<_> = (0..9).map(|_| backoff.next()).collect();
            for (failures, wait) in waits.iter().enumerate() {
                assert!(
                    *wait <= spec.base.saturating_mul(1 << failures).min(spec.max),
                    "{failures}: {wait:?}"
                );
            }
            backoff.reset();
            assert!(backoff.next() <= spec.base);
            all.push(waits);
        }
        let longest = all.iter().map(|waits| waits[8]).max().unwrap();
        assert!(longest > spec.max.mul_f64(0.9), "full jitter reaches the bound: {longest:?}");
        assert_ne!(all[0], all[1], "the seed decides");
    }
}
