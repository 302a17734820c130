//! Scripts of services: calls per request, own time, errors of their own, sizes.
//!
//! Traces have the order of calls, and calls per request by endpoint; the metrics' rates stay.
//!
//! Metrics have no order. Calls are in sequence if together they fit into the service's own duration, and in parallel otherwise.
//! The mean own time is the mean duration less that of the calls. For its mean it varies as much as the duration does, apart from
//! calls that are made sometimes: a difference of variances would be noise, since buckets are wide and calls often have most of
//! the variance.

use crate::fit::{Fit, fit, from_moments, mean_of_longest, variance};
use crate::histogram::Histogram;
use crate::mesh::{Edge, Mesh, NEAREST_TO_CALLEE};
use crate::telemetry::Reporter;
use crate::traces::{Order, Traced, TracedEndpoint, TracedService};
use experiment::Protocol;
use experiment::topology::distribution::Distribution;
use experiment::topology::file::MAX_BODY_BYTES;
use experiment::topology::script::{CallStep, DEFAULT_ENDPOINT, Endpoint, Step};
use std::collections::BTreeMap;

/// Calls per request above which a service makes calls on its own.
const MAX_CALLS_PER_REQUEST: f64 = 32.0;
/// Most retries that a script makes of a call.
const MAX_RETRIES: u32 = 10;
/// Distance from a whole number of calls per request that counts as none: the noise of scrapes.
const WHOLE: f64 = 0.005;
/// Number of requests from which traces, whose times are exact, have the own time instead of histograms.
const MIN_OWN_TIMES: f64 = 30.0;
/// Shortest own time that a script has, seconds.
const MIN_OWN_S: f64 = 1e-6;
/// Longest own time, seconds.
const MAX_OWN_S: f64 = 3600.0;

/// Script of a service, with the figures it is made of.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// One, or those of traces.
    pub(crate) endpoints: Vec<Endpoint>,
    /// Fit of the service's duration, and its reporter.
    pub(crate) duration: Option<(Fit, Reporter)>,
    /// Mean seconds of all calls of a request.
    pub(crate) calls_s: f64,
    /// Own time; absent if no proxy reports a duration.
    pub(crate) own: Option<Distribution>,
    /// True if traces have the own time.
    pub(crate) is_own_traced: bool,
    pub(crate) is_parallel: bool,
    /// True if the calls take longer than the request: they outlive it, or another service's time was reported.
    pub(crate) outlasts: bool,
    pub(crate) response: Option<Fit>,
}

/// A call of a script.
#[derive(Clone, Debug)]
pub(crate) struct ScriptCall {
    /// Index of the edge.
    pub(crate) edge: usize,
    pub(crate) per_request: f64,
    pub(crate) retries: u32,
    /// Endpoint of the callee that gets the call if no trace has it.
    pub(crate) endpoint: String,
    pub(crate) request: Option<Fit>,
}

/// Requests per second to each node, and its edges.
pub(crate) struct Flows {
    pub(crate) arriving: Vec<f64>,
    pub(crate) into: Vec<Vec<usize>>,
    pub(crate) out_of: Vec<Vec<usize>>,
}

impl Flows {
    pub(crate) fn new(mesh: &Mesh) -> Self {
        let nodes = mesh.nodes.len();
        let mut flows = Self {
            arriving: vec![0.0; nodes],
            into: vec![Vec::new(); nodes],
            out_of: vec![Vec::new(); nodes],
        };
        for (index, edge) in mesh.edges.iter().enumerate() {
            flows.arriving[edge.to] += edge.rate;
            flows.into[edge.to].push(index);
            if let Some(from) = edge.from {
                flows.out_of[from].push(index);
            }
        }
        flows
    }

    /// Calls of an edge per request to its caller; `None` if they do not belong to requests.
    pub(crate) fn per_request(&self, edge: &Edge) -> Option<f64> {
        let arriving = self.arriving[edge.from?];
        let per_request = edge.rate / arriving;
        (arriving > 0.0 && per_request <= MAX_CALLS_PER_REQUEST).then_some(near_whole(per_request))
    }
}

/// Calls of a node, without those that drivers make.
pub(crate) fn calls_of(
    mesh: &Mesh,
    (flows, traced): (&Flows, &Traced),
    node: usize,
    is_driven: &dyn Fn(usize) -> bool,
) -> Vec<ScriptCall> {
    let out = flows.out_of[node].iter().copied().filter(|edge| !is_driven(*edge));
    out.filter_map(|edge| {
        let per_request = flows.per_request(&mesh.edges[edge])?;
        let retries = traced.edges.get(&edge).map_or(0, |traced| traced.most_retries.min(MAX_RETRIES));
        let endpoint = traced.busiest(mesh.edges[edge].to);
        let request = fit(&mesh.edges[edge].request_bytes);
        Some(ScriptCall { edge, per_request, retries, endpoint, request })
    })
    .collect()
}

/// Script of a node that serves requests.
pub(crate) fn script(
    mesh: &Mesh,
    (flows, traced): (&Flows, &Traced),
    node: usize,
    calls: &[ScriptCall],
) -> Script {
    let into = || flows.into[node].iter().map(|edge| &mesh.edges[*edge]);
    let (mut duration, mut response) = (Histogram::default(), Histogram::default());
    into().for_each(|edge| response.merge(&edge.response_bytes));
    // Times of one kind of reporter.
    let timed = into().filter(|edge| edge.at_callee.values() > 0.0);
    let best = NEAREST_TO_CALLEE.into_iter().find(|one| timed.clone().any(|edge| edge.time_reporter == *one));
    timed.filter(|edge| Some(edge.time_reporter) == best).for_each(|edge| duration.merge(&edge.at_callee));
    let mut script = Script { response: fit(&response), ..Script::default() };
    let times = CallTimes::new(mesh, calls);
    script.calls_s = times.sequential_s;
    if let Some(duration) = fit(&duration) {
        script.add_time(&duration, &times);
        script.duration = Some((duration, best.unwrap_or(Reporter::Destination)));
    }
    let protocol = mesh.nodes[node].protocol;
    let endpoint = |path: &str, steps: Vec<Step>| Endpoint {
        path: path.to_owned(),
        steps,
        response_bytes: response_bytes(protocol, script.response.as_ref()),
        error_fraction: own_errors(mesh, flows, node, calls),
    };
    script.endpoints = match traced.services.get(&node) {
        Some(service) => {
            let is_only_source = script.duration.is_none() || into().all(|edge| edge.is_traced);
            let own_of = |own: &Histogram| {
                let is_enough = own.values() >= MIN_OWN_TIMES || is_only_source;
                fit(own).filter(|_| is_enough).map(|fit| at_most(&fit.distribution, MAX_OWN_S))
            };
            let own = own_of(&service.own);
            let of_endpoint = |one: &TracedEndpoint| {
                let own = own_of(&one.own).or(own).or(script.own);
                endpoint(&one.path, traced_steps(mesh, calls, (service, one), own))
            };
            let endpoints = service.endpoints.iter().map(of_endpoint).collect();
            script.is_own_traced = own.is_some();
            script.own = own.or(script.own);
            (script.is_parallel, script.outlasts) = (false, false);
            endpoints
        }
        None => vec![endpoint(DEFAULT_ENDPOINT, steps(mesh, calls, script.own, script.is_parallel))],
    };
    script
}

/// Time that a service spends in calls.
struct CallTimes {
    /// Mean seconds, one call after the other.
    sequential_s: f64,
    /// Variance from calls that are made sometimes.
    chance_variance: f64,
    /// Mean seconds of the longest call, all at once.
    longest_s: f64,
}

impl CallTimes {
    fn new(mesh: &Mesh, calls: &[ScriptCall]) -> Self {
        let mut times = Self { sequential_s: 0.0, chance_variance: 0.0, longest_s: 0.0 };
        let mut at_once = Vec::new();
        for call in calls {
            let Some(time) = fit(&mesh.edges[call.edge].at_caller) else { continue };
            let mean = time.distribution.mean();
            let (whole, part) = (call.per_request.trunc(), call.per_request.fract());
            times.sequential_s += call.per_request * mean;
            times.chance_variance += part * (1.0 - part) * mean * mean;
            at_once.extend((0..whole as usize).map(|_| (time.distribution, 1.0)));
            at_once.extend((part > 0.0).then_some((time.distribution, part)));
        }
        times.longest_s = mean_of_longest(&at_once);
        times
    }
}

impl Script {
    fn add_time(&mut self, duration: &Fit, times: &CallTimes) {
        // Times of both ends are rounded and scraped apart.
        const SLACK: f64 = 1.02;
        let mean = duration.distribution.mean();
        self.own = Some(if times.sequential_s <= 0.0 {
            at_most(&duration.distribution, MAX_OWN_S)
        } else if times.sequential_s <= mean * SLACK {
            let own_s = (mean - times.sequential_s).clamp(0.0, MAX_OWN_S);
            let of_times = (variance(&duration.distribution) - times.chance_variance).max(0.0);
            let own = from_moments(own_s, of_times * (own_s / mean).powi(2));
            at_most(&own, MAX_OWN_S)
        } else {
            self.is_parallel = true;
            self.outlasts = times.longest_s > mean * SLACK;
            Distribution::Fixed((mean - times.longest_s).clamp(0.0, MAX_OWN_S))
        });
    }
}

fn steps(mesh: &Mesh, calls: &[ScriptCall], own: Option<Distribution>, is_parallel: bool) -> Vec<Step> {
    let calls: Vec<Step> =
        calls.iter().flat_map(|call| call_steps(mesh, call, call.per_request, &call.endpoint)).collect();
    let calls = if is_parallel && calls.len() > 1 { vec![Step::Parallel(calls)] } else { calls };
    sleep(own).into_iter().chain(calls).collect()
}

fn sleep(own: Option<Distribution>) -> Option<Step> {
    own.filter(|own| own.mean() >= MIN_OWN_S).map(Step::Sleep)
}

/// Steps of a call that is made so many times per request.
fn call_steps(mesh: &Mesh, call: &ScriptCall, per_request: f64, path: &str) -> Vec<Step> {
    let edge = &mesh.edges[call.edge];
    let is_tcp = mesh.nodes[edge.to].protocol == Protocol::Tcp;
    let step = |probability: f64| {
        Step::Call(CallStep {
            endpoint: path.to_owned(),
            request_bytes: match &call.request {
                Some(fit) if !is_tcp => at_most(&whole_bytes(&fit.distribution), MAX_BODY_BYTES as f64),
                _ => Distribution::Fixed(0.0),
            },
            probability,
            retries: call.retries,
            ..CallStep::new(edge.to)
        })
    };
    let whole = (0..per_request.trunc() as usize).map(|_| 1.0);
    let part = Some(rounded(per_request.fract())).filter(|part| *part > 0.0);
    whole.chain(part).map(step).collect()
}

/// Steps of an endpoint that is in traces: their order and probabilities, at the calls' rates. Calls that are in no trace follow.
fn traced_steps(
    mesh: &Mesh,
    calls: &[ScriptCall],
    (service, endpoint): (&TracedService, &TracedEndpoint),
    own: Option<Distribution>,
) -> Vec<Step> {
    let mut left: BTreeMap<(&[usize], &str), f64> = BTreeMap::new();
    let of_slots = endpoint.slots.iter().map(|slot| {
        let made: Vec<&ScriptCall> = calls.iter().filter(|call| slot.edges.contains(&call.edge)).collect();
        let per_request: f64 = made.iter().map(|call| call.per_request).sum();
        let left = left.entry((slot.edges.as_slice(), slot.path.as_str())).or_default();
        let traced = service.per_request(&slot.edges);
        let factor = if traced > 0.0 { per_request / traced } else { 1.0 };
        let wanted = (slot.probability * factor + *left).min(MAX_CALLS_PER_REQUEST);
        // The rate has retries as calls of their own, the script has not.
        let now = near_whole(if slot.is_last { wanted } else { wanted.min(1.0) });
        *left = (wanted - now).max(0.0);
        let share = |call: &ScriptCall| now * call.per_request / per_request;
        made.iter().flat_map(|call| call_steps(mesh, call, share(call), &slot.path)).collect::<Vec<_>>()
    });
    let mut of_slots: Vec<Vec<Step>> = of_slots.collect();
    let traced = ordered(&endpoint.order, &mut of_slots);
    let others = calls.iter().filter(|call| !service.covers(call.edge));
    let others = others.flat_map(|call| call_steps(mesh, call, call.per_request, &call.endpoint));
    sleep(own).into_iter().chain(traced).chain(others).collect()
}

/// Steps in the order of their calls. Branches without a step are dropped.
fn ordered(order: &Order, of_slots: &mut [Vec<Step>]) -> Vec<Step> {
    let orders = match order {
        Order::Call(slot) => return std::mem::take(&mut of_slots[*slot]),
        Order::Sequence(orders) => return orders.iter().flat_map(|order| ordered(order, of_slots)).collect(),
        Order::Parallel(orders) => orders,
    };
    let mut branches: Vec<Vec<Step>> = orders.iter().map(|order| ordered(order, of_slots)).collect();
    branches.retain(|branch| !branch.is_empty());
    if branches.len() < 2 {
        return branches.pop().unwrap_or_default();
    }
    let branch = |mut steps: Vec<Step>| match steps.len() {
        1 => steps.remove(0),
        _ => Step::Sequence(steps),
    };
    vec![Step::Parallel(branches.into_iter().map(branch).collect())]
}

/// The whole number that is near, if there is one: the rest is noise.
fn near_whole(calls: f64) -> f64 {
    let whole = calls.round();
    if whole >= 1.0 && (calls - whole).abs() <= WHOLE * whole { whole } else { calls }
}

/// Six digits: more are noise and make files long.
fn rounded(fraction: f64) -> f64 {
    (fraction * 1e6).round() / 1e6
}

fn response_bytes(protocol: Protocol, response: Option<&Fit>) -> Distribution {
    let bytes = response.map_or(Distribution::Fixed(0.0), |fit| whole_bytes(&fit.distribution));
    match protocol {
        Protocol::Tcp => Distribution::Fixed(bytes.mean().round().clamp(1.0, MAX_BODY_BYTES as f64)),
        _ => at_most(&bytes, MAX_BODY_BYTES as f64),
    }
}

/// Distribution with parameters of whole bytes, as files have them; fixed if its median is less than one byte.
fn whole_bytes(distribution: &Distribution) -> Distribution {
    match *distribution {
        Distribution::Fixed(bytes) => Distribution::Fixed(bytes.round()),
        Distribution::Uniform { low, high } => Distribution::Uniform { low: low.round(), high: high.round() },
        Distribution::Exponential { mean } => Distribution::Exponential { mean: mean.round() },
        Distribution::LogNormal { median, .. } if median < 1.0 => {
            Distribution::Fixed(distribution.mean().round())
        }
        Distribution::LogNormal { median, p99 } => {
            Distribution::LogNormal { median: median.round(), p99: p99.round() }
        }
    }
}

/// Distribution whose parameters are at most `max`.
fn at_most(distribution: &Distribution, max: f64) -> Distribution {
    match *distribution {
        Distribution::Fixed(amount) => Distribution::Fixed(amount.min(max)),
        Distribution::Uniform { low, high } => {
            Distribution::Uniform { low: low.min(max), high: high.min(max) }
        }
        Distribution::Exponential { mean } => Distribution::Exponential { mean: mean.min(max) },
        // Amounts of seconds below what files can write are fixed.
        Distribution::LogNormal { median, .. } if median < 1e-8 => {
            Distribution::Fixed(distribution.mean().min(max))
        }
        Distribution::LogNormal { median, p99 } => {
            Distribution::LogNormal { median: median.min(max), p99: p99.min(max) }
        }
    }
}

/// Fraction of requests that fail by themselves: a failed call fails the request too.
fn own_errors(mesh: &Mesh, flows: &Flows, node: usize, calls: &[ScriptCall]) -> f64 {
    let arriving = flows.arriving[node];
    let failed: f64 =
        flows.into[node].iter().map(|edge| &mesh.edges[*edge]).map(|edge| edge.rate * edge.errors).sum();
    if arriving <= 0.0 || failed <= 0.0 {
        return 0.0;
    }
    let calls_succeed: f64 = calls
        .iter()
        .map(|call| {
            // A call fails if its retries do.
            let failed = mesh.edges[call.edge].errors.powi(1 + call.retries as i32);
            (1.0 - failed).powf(call.per_request)
        })
        .product();
    let succeeds = 1.0 - failed / arriving;
    let own = if calls_succeed > 0.0 { 1.0 - succeeds / calls_succeed } else { 0.0 };
    rounded(own.clamp(0.0, 1.0))
}
