//! Draws from distributions.

use experiment::topology::distribution::Distribution;
use rand::RngExt as _;
use rand::rngs::SmallRng;
use std::f64::consts::TAU;
use std::time::Duration;

/// A draw from a distribution.
pub(crate) fn amount(distribution: &Distribution, random: &mut SmallRng) -> f64 {
    if let Some(amount) = distribution.fixed() {
        return amount;
    }
    // Box-Muller: two uniform draws make a normal one.
    let (uniform, angle): (f64, f64) = (random.random(), random.random());
    let normal = (-2.0 * (1.0 - uniform).ln()).sqrt() * (TAU * angle).cos();
    distribution.draw(uniform, normal)
}

/// A draw from a distribution of seconds.
pub(crate) fn time(seconds: &Distribution, random: &mut SmallRng) -> Duration {
    Duration::try_from_secs_f64(amount(seconds, random)).unwrap_or(Duration::MAX)
}
