//! Histograms of other programs: counts between bounds.

/// Responses between two times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Lower bound, microseconds.
    pub from_us: f64,
    /// Upper bound, microseconds.
    pub to_us: f64,
    /// Responses in it.
    pub count: u64,
}

impl Step {
    pub(super) fn is_valid(&self) -> bool {
        self.from_us.is_finite()
            && self.to_us.is_finite()
            && 0.0 <= self.from_us
            && self.from_us <= self.to_us
    }
}

/// Upper bound of the step that has a quantile of `total` requests; absent if it falls among requests without a response.
pub(super) fn quantile(steps: &[Step], total: u64, quantile: f64) -> Option<f64> {
    if total == 0 {
        return None;
    }
    at_rank(steps, crate::rank(total, quantile)).map(|step| step.to_us)
}

/// The step that has a rank; `None` beyond the last one.
#[must_use]
pub fn at_rank(steps: &[Step], rank: u64) -> Option<&Step> {
    let mut up_to = 0_u64;
    steps.iter().find(|step| {
        up_to = up_to.saturating_add(step.count);
        up_to >= rank
    })
}

/// Steps without the last `count` responses.
pub(super) fn without_last(mut steps: Vec<Step>, mut count: u64) -> Vec<Step> {
    while let Some(last) = steps.last_mut().filter(|_| count > 0) {
        let removed = last.count.min(count);
        last.count -= removed;
        count -= removed;
        if last.count == 0 {
            steps.pop();
        }
    }
    steps
}

/// Steps of cumulative counts: time and the number of responses up to it.
pub(super) fn from_cumulative(points: impl IntoIterator<Item = (f64, u64)>) -> Vec<Step> {
    let (mut from_us, mut before) = (0.0, 0);
    let mut steps = Vec::new();
    for (to_us, up_to) in points {
        if up_to > before {
            steps.push(Step { from_us, to_us, count: up_to - before });
            before = up_to;
        }
        from_us = to_us;
    }
    steps
}
