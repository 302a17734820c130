//! Random numbers of simulated runs.

use rand::RngExt;

/// A standard normal variate (G. E. P. Box and M. E. Muller, 1958).
pub fn normal(random: &mut impl RngExt) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}
