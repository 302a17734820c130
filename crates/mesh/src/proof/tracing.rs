//! Proof of tracing: the share of requests that the proxies chose to trace, and a span of each.
//!
//! A proxy draws by the request's id, to a ten-thousandth, and the next one on the path draws by the same id: all trace the same
//! requests. Its own count of them must be as near to the share as chance allows, and whatever it counts must have arrived as
//! spans: a mesh that was to trace and did not would look cheaper than one that does.

use super::delta::max_allowance;
use experiment::schema::{TracedProxy, TracingProof};

/// How far chance may lead from the share, in standard deviations: further once in some hundred million trials.
const MAX_DEVIATIONS: f64 = 6.0;

/// What is wrong with the tracing of a trial, in words; nothing where all is well. Few spans may be missing, as few requests
/// may be.
#[must_use]
pub fn check_tracing(proof: &TracingProof) -> Vec<String> {
    proof.proxies.iter().filter_map(|proxy| check(proof.fraction, proxy)).collect()
}

fn check(fraction: f64, proxy: &TracedProxy) -> Option<String> {
    let TracedProxy { name, requests, requests_traced: traced, spans_received: spans } = proxy;
    let mean = *requests as f64 * fraction;
    let bound = MAX_DEVIATIONS * (mean * (1.0 - fraction)).sqrt();
    if (*traced as f64 - mean).abs() > bound + f64::EPSILON * mean {
        return Some(format!(
            "{name} traced {traced} of {requests} requests, which is not {} %",
            fraction * 100.0
        ));
    }
    if fraction == 0.0 && *spans > 0 {
        return Some(format!("{name} sent {spans} spans, though nothing was to be traced"));
    }
    (*spans + max_allowance(*traced) < *traced)
        .then(|| format!("{spans} spans of {name} arrived, though it traced {traced} requests"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(fraction: f64, requests: u64, requests_traced: u64, spans_received: u64) -> Vec<String> {
        let name = "client-proxy".to_owned();
        let proxy = TracedProxy { name, requests, requests_traced, spans_received };
        check_tracing(&TracingProof { fraction, proxies: vec![proxy] })
    }

    #[test]
    fn all_or_none_is_meant_exactly() {
        assert!(judged(1.0, 1000, 1000, 1000).is_empty());
        assert_eq!(
            judged(1.0, 1000, 999, 999),
            ["client-proxy traced 999 of 1000 requests, which is not 100 %"]
        );
        assert!(judged(0.0, 1000, 0, 0).is_empty());
        assert_eq!(judged(0.0, 1000, 1, 0), ["client-proxy traced 1 of 1000 requests, which is not 0 %"]);
        assert_eq!(judged(0.0, 1000, 0, 7), ["client-proxy sent 7 spans, though nothing was to be traced"]);
    }

    #[test]
    fn a_share_is_as_near_as_chance_has_it() {
        // The standard deviation of 10 000 requests at 25 % is 43.3.
        for (traced, is_near) in [(2500, true), (2241, true), (2239, false), (2759, true), (2761, false)] {
            assert_eq!(judged(0.25, 10_000, traced, traced).is_empty(), is_near, "{traced}");
        }
        assert!(judged(0.0001, 100, 0, 0).is_empty());
    }

    #[test]
    fn what_was_traced_must_arrive() {
        assert_eq!(
            judged(1.0, 400, 400, 0),
            ["0 spans of client-proxy arrived, though it traced 400 requests"]
        );
        assert!(judged(1.0, 10_000, 10_000, 9_900).is_empty());
        assert_eq!(judged(1.0, 10_000, 10_000, 9_899).len(), 1);
        // A gateway's have children.
        assert!(judged(1.0, 400, 400, 800).is_empty());
    }
}
