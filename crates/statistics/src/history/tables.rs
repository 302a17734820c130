//! Bounds that a statistic of a random series exceeds in one of 100 cases, by length: drawn once per process, from a fixed seed.

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Random series per length.
const SERIES: usize = 199;
/// Series that may exceed the one in question: (1 + 1) / (199 + 1) is 1 %.
const MAX_GREATER: usize = 1;

/// Bounds of one statistic.
pub(super) struct Bounds {
    known: Mutex<BTreeMap<usize, f64>>,
    seed: u64,
    /// The statistic of a random series of this length.
    draw: fn(usize, &mut StdRng) -> f64,
}

impl Bounds {
    pub(super) const fn new(seed: u64, draw: fn(usize, &mut StdRng) -> f64) -> Self {
        Self { known: Mutex::new(BTreeMap::new()), seed, draw }
    }

    /// The bound for a series of this length, or of a slightly smaller one.
    pub(super) fn of(&self, length: usize) -> f64 {
        let length = table_length(length);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(length).or_insert_with(|| {
            let mut random = StdRng::seed_from_u64(self.seed);
            let mut drawn: Vec<f64> = (0..SERIES).map(|_| (self.draw)(length, &mut random)).collect();
            drawn.sort_by(|one, other| other.total_cmp(one));
            drawn[MAX_GREATER]
        })
    }
}

/// Eight lengths per doubling, so that a long history needs few tables. What is tabulated hardly depends on the length.
fn table_length(length: usize) -> usize {
    if length < 32 {
        return length;
    }
    let shift = length.ilog2() - 3;
    (length >> shift) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_few_and_close_to_the_length() {
        let lengths: std::collections::BTreeSet<usize> = (8..=1000).map(table_length).collect();
        assert!(lengths.len() <= 80, "{}", lengths.len());
        assert!((8..=1000).all(|length| (0..=length / 8).contains(&(length - table_length(length)))));
    }
}
