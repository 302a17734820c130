//! Proof of tracing: the fraction of requests that the proxies chose to trace, and a span of each.
//! All proxies sample by request id, in steps of a ten-thousandth, and so trace the same requests. Services
//! pass the id on with the trace context, so a driver's request is traced on all edges that it causes calls
//! on, or on none. The count must match the fraction within the limits of chance, and its spans must have
//! arrived: a mesh that did not trace would look cheaper.

use super::{COUNTERS_PATH, Received, SentSpans};
use crate::admin::{Admin, AdminError};
use crate::proof::delta::{delta, max_allowance};
use crate::proof::edge::{Edge, EdgeProxy, Sent};
use crate::proof::evidence::Seen;
use experiment::environment::error_chain;
use results::{PathProof, TracedProxy, TracingProof};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Envoy sends spans in batches of five, and the remainder after five seconds.
const SPANS_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum deviation from the fraction in standard deviations: exceeded by chance once in some hundred
/// million trials.
const MAX_DEVIATIONS: f64 = 6.0;

/// Describes what is wrong with the tracing of a proxy, if anything. A few spans may be missing, as may a few
/// requests. `driven`: requests of a driver; further requests at a proxy belong to the same traces.
fn check(fraction: f64, proxy: &TracedProxy, driven: u64) -> Option<String> {
    let TracedProxy { name, requests, requests_traced: traced, spans_received: spans } = proxy;
    let mean = *requests as f64 * fraction;
    let requests_per_trace = (*requests as f64 / driven.max(1) as f64).max(1.0);
    let bound = MAX_DEVIATIONS * (mean * (1.0 - fraction) * requests_per_trace).sqrt();
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

#[derive(Debug)]
pub struct Tracing {
    /// Fraction of requests to trace, 0 to 1.
    pub fraction: f64,
    pub collector: Admin,
}

impl Tracing {
    /// Waits until the collector has the spans of every request that the proxies traced, at most
    /// [`SPANS_TIMEOUT`], and adds the spans received by then to the proof. The wait ends early if `is_over`
    /// reports that the trial ended prematurely.
    pub fn prove(&self, edges: &[Edge<'_>], path: &mut PathProof, is_over: impl Fn() -> bool) {
        let traced = traced(edges);
        if traced.is_empty() {
            return;
        }
        let driven = edges.iter().filter_map(|edge| match &edge.sent {
            Sent::Load(load) => Some(load.requests),
            Sent::Calls { .. } => None,
        });
        let driven = driven.min().unwrap_or(0);
        match self.settled(&traced, is_over) {
            Ok(proof) => {
                let wrong = proof.proxies.iter().filter_map(|proxy| check(proof.fraction, proxy, driven));
                path.reasons.extend(wrong);
                path.proven = path.reasons.is_empty();
                path.tracing = Some(proof);
            }
            Err(error) => {
                path.proven = false;
                path.reasons.push(format!("spans cannot be counted: {}", error_chain(&error)));
            }
        }
    }

    fn settled(
        &self,
        traced: &[(TracedProxy, &SentSpans)],
        is_over: impl Fn() -> bool,
    ) -> Result<TracingProof, AdminError> {
        let give_up_at = Instant::now() + SPANS_TIMEOUT;
        loop {
            let Received { spans: received, .. } = self.collector.get_json(COUNTERS_PATH)?;
            let from = |spans: &SentSpans| received.get(&spans.sender).copied().unwrap_or(0);
            let is_whole = |(proxy, spans): &(TracedProxy, &SentSpans)| {
                from(spans) >= proxy.requests_traced * spans.spans_per_request
            };
            if traced.iter().all(is_whole) || is_over() || Instant::now() >= give_up_at {
                let proxies = traced
                    .iter()
                    .map(|(proxy, spans)| TracedProxy { spans_received: from(spans), ..proxy.clone() });
                return Ok(TracingProof { fraction: self.fraction, proxies: proxies.collect() });
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Counts of the proxies that read requests, by the sender of their spans. Replicas are combined, and so are
/// the positions of one proxy on several edges.
fn traced<'a>(edges: &[Edge<'a>]) -> Vec<(TracedProxy, &'a SentSpans)> {
    let mut traced: Vec<(TracedProxy, &SentSpans)> = Vec::new();
    let mut counted = BTreeSet::new();
    for EdgeProxy { name, evidence, spans, replicas, .. } in edges.iter().flat_map(|edge| &edge.proxies) {
        let (Seen::Requests(counters), Some(spans)) = (&evidence.seen, spans) else { continue };
        let known = traced.iter().position(|(_, known)| known.sender == spans.sender);
        let known = known.unwrap_or_else(|| {
            traced.push((TracedProxy { name: (*name).to_owned(), ..TracedProxy::default() }, spans));
            traced.len() - 1
        });
        for replica in replicas.iter().filter(|replica| counted.insert((&replica.name, &counters.requests))) {
            let proxy = &mut traced[known].0;
            proxy.requests += delta(&replica.before, &replica.after, &counters.requests);
            proxy.requests_traced += delta(&replica.before, &replica.after, &counters.traced);
        }
    }
    traced
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envoy::hop::{Hop, Layer};
    use crate::proof::edge::Replica;
    use experiment::Protocol;
    use experiment::environment::SentLoad;

    #[test]
    fn replicas_and_positions_of_one_sender_are_combined() {
        let layer = Layer::for_protocol(Protocol::Http1);
        let inbound = Hop::inbound(layer, 8080).evidence(true);
        let outbound = Hop::outbound(layer, 8080, "outbound|8080||c".to_owned()).evidence(true);
        let counted = |prefix: &str, requests, traced| {
            let name = |what: &str| format!("http.{prefix}_0.0.0.0_8080.{what}");
            [(name("downstream_rq_total"), requests), (name("tracing.random_sampling"), traced)]
        };
        let replica = |name: &str| Replica {
            name: name.to_owned(),
            before: Default::default(),
            after: Ok([counted("inbound", 50, 5), counted("outbound", 70, 7)]
                .into_iter()
                .flatten()
                .collect()),
        };
        let replicas = [replica("b-1"), replica("b-2")];
        let spans = SentSpans { sender: "b.mesh-1".to_owned(), spans_per_request: 1 };
        let edge = |from, to, evidence| Edge {
            from,
            to,
            sent: Sent::Load(SentLoad::default()),
            service: Vec::new(),
            proxies: vec![EdgeProxy {
                name: "b",
                side: None,
                evidence,
                spans: Some(&spans),
                replicas: replicas.iter().collect(),
            }],
        };
        // Both callers' requests arrive at one listener.
        let edges = [edge("a1", "b", &inbound), edge("a2", "b", &inbound), edge("b", "c", &outbound)];
        let expected =
            TracedProxy { name: "b".to_owned(), requests: 240, requests_traced: 24, spans_received: 0 };
        assert_eq!(traced(&edges), [(expected, &spans)]);
    }

    fn judged(fraction: f64, requests: u64, requests_traced: u64, spans_received: u64) -> Vec<String> {
        let name = "client-proxy".to_owned();
        let proxy = TracedProxy { name, requests, requests_traced, spans_received };
        check(fraction, &proxy, requests).into_iter().collect()
    }

    #[test]
    fn tracing_of_all_or_none_is_exact() {
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
    fn traced_fraction_may_deviate_by_chance_only() {
        // The standard deviation of 10 000 requests at 25 % is 43.3.
        for (traced, is_near) in [(2500, true), (2241, true), (2239, false), (2759, true), (2761, false)] {
            assert_eq!(judged(0.25, 10_000, traced, traced).is_empty(), is_near, "{traced}");
        }
        assert!(judged(0.0001, 100, 0, 0).is_empty());
    }

    /// 10 000 requests of 2500 traces: all requests of a trace are sampled together.
    #[test]
    fn requests_of_one_trace_are_sampled_together() {
        let wrong = |requests_traced: u64, driven: u64| {
            let (requests, spans_received) = (10_000, requests_traced);
            let proxy = TracedProxy { name: String::new(), requests, requests_traced, spans_received };
            check(0.25, &proxy, driven).is_some()
        };
        assert!(wrong(3000, 10_000) && !wrong(3000, 2500) && wrong(3025, 2500));
    }

    #[test]
    fn missing_spans_of_traced_requests_are_reported() {
        assert_eq!(
            judged(1.0, 400, 400, 0),
            ["0 spans of client-proxy arrived, though it traced 400 requests"]
        );
        assert!(judged(1.0, 10_000, 10_000, 9_900).is_empty());
        assert_eq!(judged(1.0, 10_000, 10_000, 9_899).len(), 1);
        // Spans of a gateway have child spans.
        assert!(judged(1.0, 400, 400, 800).is_empty());
    }
}
