//! Requests and calls of a trace. The spans of a hop are one call: those of the application, of its sidecar, of a waypoint and of
//! the callee's sidecar.
//!
//! A server's span begins a request at its service, a client's span a call. A call's callee is the service of the server's span
//! below it, else what the client's span names. A server's span directly below another service's is a call without a client's
//! span: its times are those of another clock.

use super::span::{Kind, Span};
use crate::parties::{Callee, Name, Party, UNKNOWN};
use std::collections::{BTreeSet, HashMap};

/// Nanoseconds by which a span may lie outside of its parent: times are rounded, and taken one after the other.
const TOLERANCE: i64 = 50_000;

/// Workloads that have several names in traces.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Namespace by workload; `None` if there are several.
    namespaces: HashMap<Name, Option<Name>>,
    /// Names of sidecars by those of their applications.
    aliases: HashMap<Party, Party>,
}

impl Names {
    fn learn(&mut self, party: Party) {
        if party.namespace != UNKNOWN {
            let known = self.namespaces.entry(party.workload).or_insert(Some(party.namespace));
            *known = known.filter(|namespace| *namespace == party.namespace);
        }
    }

    /// The party with the name that all its spans share.
    pub(crate) fn party(&self, party: Party) -> Party {
        let party = self.aliases.get(&party).copied().unwrap_or(party);
        match self.namespaces.get(&party.workload) {
            Some(Some(namespace)) if party.namespace == UNKNOWN => Party { namespace: *namespace, ..party },
            _ => party,
        }
    }

    fn add_alias(&mut self, application: Party, sidecar: Party) {
        if application != sidecar && self.party(sidecar) != application {
            self.aliases.insert(application, sidecar);
        }
    }
}

/// A request at a service.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) span: Span,
    /// False if the service's own span is missing, and with it its times.
    pub(super) is_whole: bool,
    /// Call that caused it.
    pub(super) call: Option<usize>,
    pub(super) calls: Vec<usize>,
}

/// A call of a service.
#[derive(Debug)]
pub(super) struct Call {
    /// The client's span; the server's if there is none.
    pub(super) span: Span,
    pub(super) from: Party,
    pub(super) callee: Option<Callee>,
    /// Requests at the callee: several if a proxy tried again.
    pub(super) requests: Vec<usize>,
    /// False for times of another clock, which were moved into those of the caller.
    pub(super) has_place: bool,
    /// Nanoseconds by which the callee's span lies outside.
    pub(super) skew: i64,
}

/// A trace.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) requests: Vec<Request>,
    pub(super) calls: Vec<Call>,
    /// Messages, which nobody waits for.
    pub(super) messages: u64,
}

/// Surroundings of a span's children.
#[derive(Clone, Copy, Debug)]
struct Context {
    party: Party,
    is_sidecar: bool,
    request: Option<usize>,
    call: Option<usize>,
}

impl Graph {
    /// Requests and calls of spans; `None` if spans between them are missing.
    pub(super) fn new(spans: &[Span], names: &mut Names) -> Option<Self> {
        spans.iter().for_each(|span| names.learn(span.party));
        let is_message = |span: &&Span| span.kind == Kind::Consumer && span.parent != 0;
        let messages = spans.iter().filter(is_message).count() as u64;
        let mut graph = Self { messages, ..Self::default() };
        let mut contexts: Vec<Option<Context>> = vec![None; spans.len()];
        for (index, parent) in in_order(spans)? {
            let span = Span { party: names.party(spans[index].party), ..spans[index] };
            let within = parent.and_then(|parent| contexts[parent]);
            contexts[index] = Some(graph.add(span, within, names));
        }
        Some(graph)
    }

    fn add(&mut self, mut span: Span, within: Option<Context>, names: &mut Names) -> Context {
        let own = Context { party: span.party, is_sidecar: span.is_sidecar, request: None, call: None };
        let Some(mut context) = within else {
            return match span.kind {
                Kind::Client => Context { call: Some(self.call(span, None)), ..own },
                Kind::Server | Kind::Consumer | Kind::Unknown => self.serve(span, None, true),
                Kind::Internal | Kind::Producer => own,
            };
        };
        // An application and its sidecar may have different names.
        if context.is_sidecar && !span.is_proxy && context.call.is_none() {
            names.add_alias(span.party, context.party);
            span.party = context.party;
            context.is_sidecar = false;
        }
        let is_hop = span.kind == Kind::Client && context.call.is_some();
        if is_hop && span.is_sidecar && !context.is_sidecar {
            names.add_alias(context.party, span.party);
            context.party = span.party;
            if let Some(call) =
                context.call.map(|call| &mut self.calls[call]).filter(|_| context.request.is_none())
            {
                call.from = span.party;
            }
        }
        let is_same = context.party == span.party;
        match span.kind {
            Kind::Client if is_same => match context.call {
                Some(call) => self.join(call, &span),
                None => context.call = Some(self.call(span, context.request)),
            },
            Kind::Client => {
                // The service's own span is missing, or a gateway has one for both of its sides.
                let within = self.serve(span, Some(context), false);
                return Context { call: Some(self.call(span, within.request)), ..within };
            }
            Kind::Server | Kind::Consumer
                if is_same && context.call.is_none() && context.request.is_some() => {}
            Kind::Internal | Kind::Unknown | Kind::Producer if is_same => {}
            kind => {
                return self.serve(
                    span,
                    Some(context),
                    matches!(kind, Kind::Server | Kind::Consumer | Kind::Unknown),
                );
            }
        }
        Context { is_sidecar: span.is_sidecar, ..context }
    }

    fn call(&mut self, span: Span, request: Option<usize>) -> usize {
        let call = Call {
            span,
            from: span.party,
            callee: span.peer,
            requests: Vec::new(),
            has_place: true,
            skew: 0,
        };
        self.calls.push(call);
        let index = self.calls.len() - 1;
        if let Some(request) = request {
            self.requests[request].calls.push(index);
        }
        index
    }

    /// Adds a client's span of the same call: that of a proxy.
    fn join(&mut self, call: usize, span: &Span) {
        let call = &mut self.calls[call];
        call.callee = call.callee.or(span.peer);
        call.span.is_error |= span.is_error;
        call.span.is_grpc |= span.is_grpc;
        call.span.request_bytes = call.span.request_bytes.max(span.request_bytes);
        call.span.response_bytes = call.span.response_bytes.max(span.response_bytes);
    }

    /// Begins a request.
    fn serve(&mut self, span: Span, within: Option<Context>, is_whole: bool) -> Context {
        let call =
            within.map(|context| context.call.unwrap_or_else(|| self.call_without_client(span, context)));
        let request = self.requests.len();
        self.requests.push(Request { span, is_whole, call, calls: Vec::new() });
        if let Some(call) = call.map(|call| &mut self.calls[call]) {
            call.requests.push(request);
            let outside = (call.span.start - span.start).max(span.end - call.span.end);
            if call.has_place && outside > TOLERANCE {
                call.skew = call.skew.max(outside);
            }
        }
        Context { party: span.party, is_sidecar: span.is_sidecar, request: Some(request), call: None }
    }

    /// A call that only its callee recorded: its times are moved into those of the caller's request.
    fn call_without_client(&mut self, span: Span, context: Context) -> usize {
        let mut placed = Span { party: context.party, peer: None, ..span };
        let parent = context.request.map(|request| self.requests[request].span);
        let moved = parent.map_or(0, |parent| moved_into((span.start, span.end), (parent.start, parent.end)));
        (placed.start, placed.end) = (span.start + moved, span.end + moved);
        let call = self.call(placed, context.request);
        let moved = moved.abs();
        self.calls[call].has_place = moved <= TOLERANCE;
        self.calls[call].skew = if moved > TOLERANCE { moved } else { 0 };
        call
    }
}

/// Distance by which a child moves to be within its parent; to its start if it is longer.
fn moved_into((start, end): (i64, i64), (from, to): (i64, i64)) -> i64 {
    let latest = (to - (end - start)).max(from);
    start.clamp(from, latest) - start
}

/// Spans with their parents, every parent before its children, children by start. `None` if there is not one beginning from which
/// all are reached. A beginning may have a parent that recorded no span: a caller outside.
fn in_order(spans: &[Span]) -> Option<Vec<(usize, Option<usize>)>> {
    // The client and the server of a call may share an identity (Zipkin's B3).
    let mut by_id: HashMap<u64, [Option<usize>; 2]> = HashMap::new();
    let mut distinct = 0;
    for (index, span) in spans.iter().enumerate() {
        let known = &mut by_id.entry(span.id).or_default()[usize::from(span.kind.is_served())];
        // A span that is there twice counts once.
        distinct += usize::from(known.is_none());
        known.get_or_insert(index);
    }
    let (mut children, mut beginnings) = (vec![Vec::new(); spans.len()], Vec::new());
    let (mut missing, mut has_root) = (BTreeSet::new(), false);
    for (index, span) in spans.iter().enumerate() {
        let is_served = span.kind.is_served();
        let same = by_id[&span.id];
        if same[usize::from(is_served)] != Some(index) {
            continue;
        }
        let parent = match (same[0].filter(|_| is_served), by_id.get(&span.parent)) {
            // Nobody waits for what receives a message.
            _ if span.kind == Kind::Consumer => None,
            (Some(client), _) => Some(client),
            (None, Some([other, server])) => server.or(*other),
            (None, None) if span.parent == 0 => {
                has_root = true;
                None
            }
            (None, None) => {
                missing.insert(span.parent);
                None
            }
        };
        match parent {
            Some(parent) => children[parent].push(index),
            None => beginnings.push(index),
        }
    }
    if missing.len() + usize::from(has_root) > 1 {
        return None;
    }
    for own in &mut children {
        own.sort_by_key(|child| std::cmp::Reverse(spans[*child].start));
    }
    let mut order = Vec::with_capacity(distinct);
    let mut waiting: Vec<(usize, Option<usize>)> =
        beginnings.into_iter().map(|index| (index, None)).collect();
    while let Some((index, parent)) = waiting.pop() {
        order.push((index, parent));
        waiting.extend(children[index].iter().map(|child| (*child, Some(index))));
    }
    // Spans that are each other's parents are never reached.
    (order.len() == distinct).then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_outside_its_parent_moves_just_into_it() {
        assert_eq!(moved_into((5, 8), (0, 10)), 0);
        assert_eq!(moved_into((-5, -2), (0, 10)), 5);
        assert_eq!(moved_into((9, 12), (0, 10)), -2);
        assert_eq!(moved_into((100, 130), (0, 10)), -100);
    }
}
