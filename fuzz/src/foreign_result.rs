//! Invariants of any result of another load generator: an error, or times that ascend and a histogram that adds up. Included
//! by the fuzz target and by the test that replays the corpus.

use results::Figure;
use results::foreign::read;

/// # Panics
/// Panics if an invariant is violated.
pub fn check(input: &[u8]) {
    let Ok(result) = read(input) else { return };
    assert!(!result.limits.is_empty(), "every dialect has limits");
    assert!(!result.times_us.is_empty() || !result.steps.is_empty());
    assert!(result.times_us.values().all(|time| time.is_finite() && *time > 0.0), "{:?}", result.times_us);
    let percentiles = Figure::TIMES.into_iter().filter(|figure| figure.percentile().is_some());
    let times: Vec<f64> = percentiles.filter_map(|figure| result.times_us.get(&figure).copied()).collect();
    assert!(times.windows(2).all(|pair| pair[1] >= pair[0] * 0.999), "{:?}", result.times_us);
    assert!(result.steps.is_sorted_by(|one, next| one.to_us <= next.to_us));
    assert!(result.steps.iter().all(|step| step.from_us <= step.to_us));
    assert!(result.steps.iter().map(|step| step.count).try_fold(0_u64, u64::checked_add).is_some());
    assert!(result.answered != Some(0));
}
