//! Share of requests that failed or had an error status, over all trials: an invalid trial's errors are errors too.

use crate::interval::mean_and_error;
use crate::proportion::clopper_pearson_high;
use noise::student;
use results::RequestCounts;

/// Quantile of one-sided bounds.
const CONFIDENCE: f64 = 0.95;

/// A share of errors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ErrorShare {
    pub(super) fraction: f64,
    /// Upper end of its one-sided 95 % confidence interval; absent if nothing was sent.
    pub(super) high: Option<f64>,
}

impl ErrorShare {
    /// Over the trials with these counts.
    pub(super) fn new<'a>(counts: impl Iterator<Item = &'a RequestCounts>) -> Self {
        let counts: Vec<&RequestCounts> = counts.collect();
        let sent: u64 = counts.iter().map(|requests| requests.sent).sum();
        let wrong: u64 = counts.iter().map(|requests| wrong(requests)).sum();
        if sent == 0 {
            let any = counts.iter().any(|requests| !requests.errors.is_empty());
            return Self { fraction: f64::from(u8::from(any)), high: None };
        }
        let fraction = wrong as f64 / sent as f64;
        let high =
            clopper_pearson_high(wrong.min(sent), sent, CONFIDENCE).max(fraction + between_trials(&counts));
        Self { fraction, high: Some(high.min(1.0)) }
    }
}

fn wrong(requests: &RequestCounts) -> u64 {
    requests.failed + requests.error_statuses()
}

/// By how much the share may be greater going by how trials differ: errors come in bursts.
fn between_trials(counts: &[&RequestCounts]) -> f64 {
    let sent = counts.iter().filter(|requests| requests.sent > 0);
    let shares: Vec<f64> = sent.map(|requests| wrong(requests) as f64 / requests.sent as f64).collect();
    let error = mean_and_error(&shares).and_then(|(_, error)| error).unwrap_or_default();
    if error > 0.0 { error * student::quantile(shares.len() as f64 - 1.0, CONFIDENCE) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::ExpectedStatuses;

    fn share(trials: &[(u64, u64)]) -> ErrorShare {
        let counts: Vec<RequestCounts> = trials
            .iter()
            .map(|(failed, sent)| RequestCounts { failed: *failed, sent: *sent, ..RequestCounts::default() })
            .collect();
        ErrorShare::new(counts.iter())
    }

    fn is_near(high: Option<f64>, expected: f64) -> bool {
        high.is_some_and(|high| (high / expected - 1.0).abs() < 0.01)
    }

    #[test]
    fn no_error_in_few_requests_leaves_a_share_possible() {
        // The rule of three.
        assert!(is_near(share(&[(0, 500)]).high, 0.00597), "{:?}", share(&[(0, 500)]));
        assert!(is_near(share(&[(0, 20_000), (0, 20_000)]).high, 7.489e-5));
        // Tables of Clopper and Pearson: 2 of 100, one-sided.
        assert!(is_near(share(&[(2, 100)]).high, 0.0616), "{:?}", share(&[(2, 100)]));
        assert_eq!(share(&[(5, 5)]).high, Some(1.0));
        assert_eq!(share(&[(0, 0)]), ErrorShare::default());
    }

    #[test]
    fn unexpected_statuses_are_errors_and_expected_ones_are_not() {
        let statuses = [("302", 20), ("404", 30)].map(|(code, count)| (code.to_owned(), count));
        let untold = RequestCounts { sent: 100, status: statuses.into(), ..RequestCounts::default() };
        let told = |pattern: &str| {
            let mut counts = untold.clone();
            counts.expect(&ExpectedStatuses::try_from(vec!["2xx".to_owned(), pattern.to_owned()]).unwrap());
            counts
        };
        let fractions = [untold.clone(), told("3xx"), told("404"), told("200")]
            .map(|counts| ErrorShare::new([&counts].into_iter()).fraction);
        assert_eq!(fractions, [0.3, 0.3, 0.2, 0.5]);
    }

    #[test]
    fn errors_of_one_trial_of_several_widen_the_bound() {
        let (even, burst) = (share(&[(10, 10_000); 3]), share(&[(30, 10_000), (0, 10_000), (0, 10_000)]));
        assert_eq!(even.fraction, burst.fraction);
        assert!(is_near(even.high, 0.00136) && is_near(burst.high, 0.00392), "{even:?} {burst:?}");
    }
}
