//! Exact bounds of a share that was counted (C. J. Clopper and E. S. Pearson, Biometrika 26 (1934), 404-413).

use results::CountedShare;
use statrs::function::beta::beta_reg;

/// Probability beyond each end of a two-sided 95 % interval.
const EACH_SIDE: f64 = 0.025;

/// A share of `of` cases with its two-sided 95 % interval; `None` without a case.
#[must_use]
pub fn counted_share(count: u64, of: u64) -> Option<CountedShare> {
    let count = count.min(of);
    (of > 0).then(|| CountedShare {
        count,
        of,
        share: count as f64 / of as f64,
        low: 1.0 - clopper_pearson_high(of - count, of, 1.0 - EACH_SIDE),
        high: clopper_pearson_high(count, of, 1.0 - EACH_SIDE),
    })
}

/// Upper bound of a share at this one-sided confidence.
pub(crate) fn clopper_pearson_high(count: u64, of: u64, confidence: f64) -> f64 {
    if count >= of {
        return 1.0;
    }
    let (mut low, mut high) = (count as f64 / of as f64, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        let chance = beta_reg(count as f64 + 1.0, (of - count) as f64, middle);
        if chance < confidence { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_match_published_ones() {
        // As `binom.test` of R prints them.
        let expected = [
            (0, 20, 0.0, 0.168_433),
            (1, 20, 0.001_265, 0.248_733),
            (9, 10, 0.554_984, 0.997_471),
            (20, 20, 0.831_567, 1.0),
        ];
        for (count, of, low, high) in expected {
            let found = counted_share(count, of).unwrap();
            assert!((found.low - low).abs() < 1e-5 && (found.high - high).abs() < 1e-5, "{found:?}");
        }
        assert_eq!(counted_share(0, 0), None);
    }
}
