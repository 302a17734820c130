//! Sizes of responses, without keeping each.

use results::SizeSummary;

/// Count, sum and extremes of sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    count: u64,
    pub(crate) sum: u64,
    least: u64,
    most: u64,
    squares: f64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { count: 0, sum: 0, least: u64::MAX, most: 0, squares: 0.0 }
    }
}

impl Sizes {
    pub(super) fn record(&mut self, size: u64) {
        self.merge(&Self { count: 1, sum: size, least: size, most: size, squares: (size as f64).powi(2) });
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        self.squares += other.squares;
    }

    /// In the form of the result schema.
    pub(crate) fn summary(&self) -> SizeSummary {
        if self.count == 0 {
            return SizeSummary::default();
        }
        let count = self.count as f64;
        let mean = self.sum as f64 / count;
        // Rounding may yield slightly less than zero if all sizes are equal.
        let variance = (self.squares / count - mean * mean).max(0.0);
        SizeSummary { count: self.count, min: self.least, mean, stddev: variance.sqrt(), max: self.most }
    }
}
