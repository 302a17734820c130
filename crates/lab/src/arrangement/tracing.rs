//! What was traced in a trial, held against the spans that came of it.

use super::started::Proxy;
use crate::envoy::admin::AdminError;
use crate::istio::trace_collector::TraceCollector;
use experiment::environment::in_one_line;
use experiment::schema::{PathProof, ProxyProof, TracedProxy, TracingProof};
use mesh::proof::Seen;
use mesh::spans::tracing::check_tracing;
use std::time::{Duration, Instant};

/// Envoy sends spans five at a time, and what is left over after as many seconds.
const SPANS_WITHIN: Duration = Duration::from_secs(10);

/// How often it is looked whether they have come.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What is to be traced, and where spans are sent.
#[derive(Debug)]
pub(crate) struct Tracing {
    /// The share of requests, 0 to 1.
    pub fraction: f64,
    /// The mesh's collector.
    pub collector: TraceCollector,
}

/// The spans that a proxy sends.
#[derive(Clone, Debug)]
pub(crate) struct SentSpans {
    /// Who they say that they are of.
    pub sender: String,
    /// How many a request has that was sent on once.
    pub of_each_request: u64,
}

impl Tracing {
    /// Waits until the collector has the spans of every request that the proxies traced, at most [`SPANS_WITHIN`], and adds
    /// to the proof of the path what it has by then. Nobody waits for spans once the trial `is_over` before its time.
    pub fn prove(&self, proxies: &[Proxy], path: &mut PathProof, is_over: impl Fn() -> bool) {
        let traced: Vec<(TracedProxy, &SentSpans)> =
            path.proxies.iter().zip(proxies).filter_map(|(proof, proxy)| traced(proof, proxy)).collect();
        if traced.is_empty() {
            return;
        }
        match self.settled(&traced, is_over) {
            Ok(proof) => {
                path.reasons.extend(check_tracing(&proof));
                path.tracing = Some(proof);
            }
            Err(error) => path.reasons.push(format!("spans cannot be counted: {}", in_one_line(&error))),
        }
    }

    fn settled(
        &self,
        traced: &[(TracedProxy, &SentSpans)],
        is_over: impl Fn() -> bool,
    ) -> Result<TracingProof, AdminError> {
        let give_up_at = Instant::now() + SPANS_WITHIN;
        loop {
            let received = self.collector.received()?.spans;
            let of = |spans: &SentSpans| received.get(&spans.sender).copied().unwrap_or(0);
            let is_whole = |(proxy, spans): &(TracedProxy, &SentSpans)| {
                of(spans) >= proxy.requests_traced * spans.of_each_request
            };
            if traced.iter().all(is_whole) || is_over() || Instant::now() >= give_up_at {
                let proxies = traced
                    .iter()
                    .map(|(proxy, spans)| TracedProxy { spans_received: of(spans), ..proxy.clone() });
                return Ok(TracingProof { fraction: self.fraction, proxies: proxies.collect() });
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// What a proxy that reads requests counted, with what it sends.
fn traced<'a>(proof: &ProxyProof, proxy: &'a Proxy) -> Option<(TracedProxy, &'a SentSpans)> {
    let (Seen::Requests(counters), Some(spans)) = (&proxy.evidence.seen, &proxy.spans) else {
        return None;
    };
    let traced = TracedProxy {
        name: proof.name.clone(),
        requests: proof.requests_received,
        requests_traced: proof.counters.get(&counters.traced).copied().unwrap_or(0),
        spans_received: 0,
    };
    Some((traced, spans))
}
