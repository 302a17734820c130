//! Checks of what was learned: missing ends, reporters that disagree, resets, circles, flow conservation.

use crate::drivers::{Driven, Reason};
use crate::kiali::EDGES;
use crate::mesh::{Edge, Mesh};
use crate::provenance::{Finding, shown};
use crate::scripts::{Flows, Script, ScriptCall};
use crate::telemetry::{Reporter, Telemetry};
use crate::traces::{Traced, Traces};
use results::units::shortened;

/// Fraction of a service's requests without a known caller that is worth a finding.
const MISSING: f64 = 0.01;
/// Relative difference between two reporters of a rate that is worth a finding, beside the noise of counts.
const DISAGREEMENT: f64 = 0.05;
/// Relative difference between measured and learned requests of a service.
const FLOW: f64 = 0.02;
/// Maximum findings of a kind; the number of others is a finding too.
const MAX_OF_KIND: usize = 50;
/// A warning may have names.
const HIDDEN_WARNING: &str = "Prometheus says something of its answers, which may be partial; its words may have names and are left out";
/// Rounds after which requests have died out.
const MAX_ROUNDS: usize = 2_000;

/// Warnings of the answers, which may be partial: before all other findings.
pub const WARNINGS: &str = "warnings";
/// Kinds of findings; docs/learn.md explains each.
const KINDS: [&str; 34] = [
    WARNINGS,
    "circle",
    "clock-skew",
    "damaged-files",
    "disagreement",
    "endpoints",
    "flow",
    "foreign-rows",
    "idle-workloads",
    "ignored-objects",
    "incomplete-traces",
    "left-out",
    "messages",
    "missing-callers",
    "missing-destinations",
    "missing-metric",
    "missing-object",
    "missing-sizes",
    "missing-times",
    "names",
    "order",
    "outlasting-calls",
    "own-calls",
    "protocols",
    "reset",
    "retries",
    "scale",
    "unidentified-callers",
    "unmatched-traces",
    "unmeasured-calls",
    "untraced-calls",
    "unusable-rows",
    "unusable-spans",
    "waypoint",
];

/// Findings, at most a number of each kind.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
}

impl Findings {
    pub(crate) fn add(&mut self, kind: &str, subject: impl Into<String>, text: impl Into<String>) {
        debug_assert!(KINDS.contains(&kind), "{kind} is in no table");
        self.list.push(Finding { kind: kind.to_owned(), subject: subject.into(), text: text.into() });
    }

    /// Findings in order, the rest of each kind as a number.
    pub(crate) fn done(self) -> Vec<Finding> {
        let mut kept: Vec<Finding> = Vec::new();
        let mut counts: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
        for finding in self.list {
            let count = counts.entry(finding.kind.clone()).or_default();
            *count += 1;
            if *count <= MAX_OF_KIND {
                kept.push(finding);
            }
        }
        for (kind, count) in counts.into_iter().filter(|(_, count)| *count > MAX_OF_KIND) {
            let text = format!("{} more findings of the kind {kind}", count - MAX_OF_KIND);
            kept.push(Finding { kind, subject: String::new(), text });
        }
        kept
    }
}

fn percent(fraction: f64) -> String {
    format!("{} %", shown((fraction * 1000.0).round() / 10.0))
}

/// Rows, or edges of a graph, that cannot be used.
pub(crate) fn unusable(telemetry: &Telemetry) -> Vec<String> {
    let (one, many) = match telemetry.rows.contains_key(EDGES) {
        true => ("edge of the graph has", "edges of the graph have"),
        false => ("row of the answers has", "rows of the answers have"),
    };
    let counted = |count: u64| format!("{count} {}", if count == 1 { one } else { many });
    let rows = Some(telemetry.unusable_rows).filter(|rows| *rows > 0);
    let values = rows.map(|rows| format!("{} values that are not usable numbers", counted(rows)));
    let protocols = telemetry.unknown_protocols.iter().map(|(name, count)| match name.as_str() {
        "" => format!("{} an unknown protocol, and no part in the topology", counted(*count)),
        name => format!("{} the unknown protocol `{name}`, and no part in the topology", counted(*count)),
    });
    values.into_iter().chain(protocols).collect()
}

/// Findings about the telemetry as a whole.
pub(crate) fn of_telemetry(telemetry: &Telemetry, mesh: &Mesh, findings: &mut Findings) {
    for warning in &telemetry.warnings {
        let text = format!("Prometheus says of its answers, which may be partial: {warning}");
        findings.add(WARNINGS, "", if telemetry.is_anonymised() { HIDDEN_WARNING.to_owned() } else { text });
    }
    if telemetry.foreign_rows > 0 {
        let text = format!("{} rows of the answers are of metrics that are not read", telemetry.foreign_rows);
        findings.add("foreign-rows", "", text);
    }
    for text in unusable(telemetry) {
        findings.add("unusable-rows", "", text);
    }
    if mesh.lost_rate > 0.0 {
        let text = format!("{} requests/s go to destinations that no proxy names", shown(mesh.lost_rate));
        findings.add("missing-destinations", "", text);
    }
    for waypoint in &mesh.waypoints {
        let text =
            format!("{waypoint} is a waypoint: it reports the requests, so its connections are left out");
        findings.add("waypoint", waypoint, text);
    }
    let has_metrics = telemetry.traces.is_none() || !telemetry.rows.is_empty();
    for metric in telemetry.dialect.metrics().expected {
        if has_metrics && !telemetry.rows.contains_key(metric) {
            findings.add("missing-metric", *metric, format!("there is no row of {metric}"));
        }
    }
    for (kind, text) in telemetry.dialect.limits() {
        findings.add(kind, "", *text);
    }
    for (dialect, rate) in &telemetry.left_out {
        let text = format!(
            "metrics of {} with {} requests/s are left out: those of {} may be of the same calls",
            dialect.name(),
            shown(*rate),
            telemetry.dialect.name()
        );
        findings.add("left-out", "", text);
    }
}

/// Findings about calls: reporters and resets.
pub(crate) fn of_edge(subject: &str, edge: &Edge, findings: &mut Findings) {
    if edge.resets >= 0.5 {
        let text = format!(
            "{subject}: counters were reset {} times; that is taken into account",
            shown(edge.resets)
        );
        findings.add("reset", subject, text);
    }
    let reported: Vec<(Reporter, f64)> = Reporter::ALL
        .into_iter()
        .filter_map(|reporter| Some((reporter, edge.rates[reporter as usize]?)))
        .collect();
    let Some((_, own)) = reported.iter().find(|(reporter, _)| *reporter == edge.reporter) else { return };
    let noise = 4.0 * edge.count.max(1.0).sqrt() / edge.count.max(1.0);
    for (reporter, rate) in &reported {
        let difference = (rate / own - 1.0).abs();
        if difference > DISAGREEMENT.max(noise) {
            let (used, other) = (edge.reporter.name(), reporter.name());
            let text = format!(
                "{subject}: the {used} reports {}/s and the {other} {}/s, {} apart; the first is used",
                shown(*own),
                shown(*rate),
                percent(difference)
            );
            findings.add("disagreement", subject, text);
        }
    }
}

/// Findings about a service.
pub(crate) fn of_service(
    name: &str,
    node: usize,
    mesh: &Mesh,
    flows: &Flows,
    script: &Script,
    findings: &mut Findings,
) {
    let arriving = flows.arriving[node];
    let into = || flows.into[node].iter().map(|edge| &mesh.edges[*edge]);
    let unknown: f64 = into().filter(|edge| edge.from.is_none()).map(|edge| edge.rate).sum();
    if unknown > MISSING * arriving {
        let text =
            format!("{} of the requests to `{name}` have no known caller", percent(unknown / arriving));
        findings.add("missing-callers", name, text);
    }
    if let Some(known) = mesh.recognised.get(&node) {
        let text = format!(
            "{}/s of the requests to `{name}` whose caller its proxy does not identify are those that callers' proxies report: \
             counted once",
            shown(*known)
        );
        findings.add("unidentified-callers", name, text);
    }
    let kinds = [into().any(|edge| edge.is_tcp), into().any(|edge| !edge.is_tcp)];
    if kinds == [true, true] {
        let text = format!(
            "`{name}` gets requests and connections of other protocols: connections are learned as requests"
        );
        findings.add("protocols", name, text);
    }
    if script.outlasts {
        let text = format!("calls of `{name}` take longer than its requests: they may outlive them");
        findings.add("outlasting-calls", name, text);
    }
    if script.own.is_none() && into().any(|edge| !edge.is_tcp) {
        findings.add("missing-times", name, format!("no proxy reports how long requests to `{name}` take"));
    }
}

/// Parts of traces that are left out, by kind of finding.
pub(crate) fn left_out(traces: &Traces) -> Vec<(&'static str, String)> {
    let parts = [
        ("incomplete-traces", traces.incomplete, "traces lack spans between theirs and are left out"),
        (
            "incomplete-traces",
            traces.late_spans,
            "spans came long after the others of their traces and are left out",
        ),
        ("incomplete-traces", traces.too_large, "traces have more than 10000 spans and are left out"),
        (
            "unusable-spans",
            traces.unusable_spans,
            "spans have no time, no identity or no service, or end before they start, and are left out",
        ),
        (
            "damaged-files",
            traces.damaged_files,
            "files of traces are damaged or empty: what comes after the damage is left out",
        ),
        ("missing-destinations", traces.tally.lost, "calls of traces name no callee and are left out"),
    ];
    let parts = parts.into_iter().filter(|(_, count, _)| *count > 0);
    parts.map(|(kind, count, text)| (kind, format!("{count} {text}"))).collect()
}

/// Findings about traces.
pub(crate) fn of_traces(
    telemetry: &Telemetry,
    mesh: &Mesh,
    (traced, calls): (&Traced, &[Vec<ScriptCall>]),
    name: &dyn Fn(usize) -> String,
    findings: &mut Findings,
) {
    let Some(traces) = telemetry.traces.as_deref() else { return };
    for (kind, text) in left_out(traces) {
        findings.add(kind, "", text);
    }
    let messages = traces.tally.messages;
    if messages > 0 {
        let text = format!(
            "{messages} messages are received without anybody waiting: their receivers get them of drivers"
        );
        findings.add("messages", "", text);
    }
    for service in &traced.unmatched {
        findings.add(
            "unmatched-traces",
            service,
            format!("`{}` of the traces is in no metric", shortened(service)),
        );
    }
    for (from, to) in &traced.unmeasured {
        let (from, to) = (name(*from), name(*to));
        let text = format!(
            "calls from {from} to {to} are in traces and in no metric that is kept: they are left out"
        );
        findings.add("unmeasured-calls", format!("{from} → {to}"), text);
    }
    let others = |node: &usize| traced.services.get(node).map_or(0, |service| service.others);
    for node in traced.services.keys().filter(|node| others(node) > 0) {
        let text =
            format!("{} endpoints of `{}` with few requests are one, /other", others(node), name(*node));
        findings.add("endpoints", name(*node), text);
    }
    for (index, own) in &traced.edges {
        let edge = &mesh.edges[*index];
        let Some(from) = edge.from else { continue };
        let subject = format!("{} → {}", name(from), name(edge.to));
        if own.skewed > 0 {
            let text = format!(
                "{subject}: {} of {} traced calls have the callee's span outside of the caller's, by up to {} s: the clocks \
                 differ, and order is that of the callers' clocks",
                own.skewed,
                own.calls,
                shown(own.largest_skew_s)
            );
            findings.add("clock-skew", subject.clone(), text);
        }
        if own.retries > 0 {
            let text = format!(
                "{subject}: {} of {} traced calls repeat a failed one: they are retries in the script",
                own.retries, own.calls
            );
            findings.add("retries", subject, text);
        }
    }
    for (node, service) in &traced.services {
        let untraced = calls[*node].iter().filter(|call| !service.covers(call.edge));
        for to in untraced.map(|call| mesh.edges[call.edge].to) {
            let (from, to) = (name(*node), name(to));
            let text = format!("calls from {from} to {to} are in no trace: they follow the others");
            findings.add("untraced-calls", format!("{from} → {to}"), text);
        }
    }
    if telemetry.pairs.is_empty() && mesh.edges.iter().all(|edge| edge.response_bytes.values() <= 0.0) {
        findings.add("missing-sizes", "", "the spans have no sizes: requests and responses have no body");
    }
}

/// Findings about calls that drivers make although a service sends them.
pub(crate) fn of_drivers(
    mesh: &Mesh,
    driven: &Driven,
    name: &dyn Fn(usize) -> String,
    findings: &mut Findings,
) {
    for (index, reason) in driven {
        let edge = &mesh.edges[*index];
        let Some(from) = edge.from else { continue };
        let (from, to) = (name(from), name(edge.to));
        let text = match reason {
            Reason::OnItsOwn => {
                format!(
                    "{from} sends {}/s to {to}, more than belongs to its requests: a driver does",
                    shown(edge.rate)
                )
            }
            Reason::Circle => format!("calls from {from} to {to} close a circle: a driver makes them"),
            Reason::Outside | Reason::Sender => continue,
        };
        let kind = if *reason == Reason::Circle { "circle" } else { "own-calls" };
        findings.add(kind, format!("{from} → {to}"), text);
    }
}

/// Flow conservation: requests that the learned scripts send to each service, against the measured ones.
pub(crate) fn of_flow(
    mesh: &Mesh,
    flows: &Flows,
    calls: &[Vec<ScriptCall>],
    drivers: &[usize],
    name: &dyn Fn(usize) -> String,
    findings: &mut Findings,
) {
    let learned = learned_arrivals(mesh, calls, drivers);
    for (node, measured) in flows.arriving.iter().enumerate() {
        if (learned[node] - measured).abs() > FLOW * measured {
            let name = name(node);
            let text = format!(
                "`{name}` gets {}/s in the learned topology and {}/s in the mesh",
                shown(learned[node]),
                shown(*measured)
            );
            findings.add("flow", name, text);
        }
    }
}

/// Requests per second to each node that drivers and scripts cause.
fn learned_arrivals(mesh: &Mesh, calls: &[Vec<ScriptCall>], drivers: &[usize]) -> Vec<f64> {
    let mut total = vec![0.0; mesh.nodes.len()];
    let mut arriving = total.clone();
    for edge in drivers.iter().map(|edge| &mesh.edges[*edge]) {
        arriving[edge.to] += edge.rate;
    }
    for _ in 0..MAX_ROUNDS {
        let mut next = vec![0.0; total.len()];
        let mut left = 0.0;
        for (node, requests) in arriving.iter().enumerate().filter(|(_, requests)| **requests > 0.0) {
            total[node] += requests;
            for call in &calls[node] {
                next[mesh.edges[call.edge].to] += requests * call.per_request;
                left += requests * call.per_request;
            }
        }
        if left < 1e-9 {
            break;
        }
        arriving = next;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_finding_is_documented() {
        let page = include_str!("../../../docs/learn.md");
        for kind in KINDS {
            assert!(page.contains(&format!("`{kind}`")), "docs/learn.md has no `{kind}`");
        }
    }
}
