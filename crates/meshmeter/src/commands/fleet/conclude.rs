//! The result: what the fleet measured, the control plane's figures, the mesh, and reasons against the
//! figures.

use super::changes::{CHURN, Changed};
use super::state::FleetRunner;
use crate::failure::Failure;
use experiment::settings::fleet::ChangeKind;
use results::{
    ControlPlaneFigures, FLEET_SCHEMA, FleetChange, FleetMesh, FleetProxies, FleetResult, FleetVerdict,
    HistogramSummary, LatencyHistogram,
};

const INTERRUPTED: &str = "interrupted";

/// The whole result: the fleet's, with the control plane's own figures and the changes that could not be
/// made.
pub fn measured(result: FleetResult, figures: Vec<ControlPlaneFigures>, changed: Changed) -> FleetResult {
    let Changed { impossible, witnesses, phases, undo: _ } = changed;
    let mut result = FleetResult { control_plane: figures, witnesses, phases, ..result };
    result.changes.extend(impossible);
    result.changes = merged(std::mem::take(&mut result.changes));
    result.changes.sort_by(|one, other| one.at.total_cmp(&other.at));
    for change in result.changes.iter_mut().filter(|change| concerns_nobody(change)) {
        change.failure = Some("no proxy of this fleet receives it".to_owned());
    }
    let failed = result.changes.iter().filter(|change| change.failure.is_some());
    let failed: Vec<String> = failed
        .map(|change| {
            format!("change-failed: {}: {}", change.kind, change.failure.as_deref().unwrap_or_default())
        })
        .collect();
    result.verdict.reasons.extend(failed);
    result.verdict.valid = result.verdict.reasons.is_empty();
    result
}

/// True for a change of the mesh that no proxy was expected to receive: it measures nothing.
fn concerns_nobody(change: &FleetChange) -> bool {
    let is_of_mesh = || ChangeKind::ALL.iter().any(|kind| kind.name() == change.kind && kind.is_of_mesh());
    change.expected == 0 && change.failure.is_none() && (change.kind == CHURN || is_of_mesh())
}

/// Adds up the parts of a change, one per kind of proxy, and merges churn, which makes thousands of changes,
/// into one entry.
fn merged(changes: Vec<FleetChange>) -> Vec<FleetChange> {
    let mut sums: Vec<Sum> = Vec::new();
    for change in changes {
        let known = sums.iter_mut().rev().find(|sum| sum.takes(&change));
        match known {
            Some(sum) => sum.add(&change),
            None => sums.push(Sum::new(change)),
        }
    }
    sums.into_iter().map(Sum::finish).collect()
}

/// Entries that are shown as one.
struct Sum {
    change: FleetChange,
    times: LatencyHistogram,
    /// Write of the last change, seconds since the start.
    last_at: f64,
}

impl Sum {
    fn new(change: FleetChange) -> Self {
        let times = LatencyHistogram::decode(&change.convergence_us.histogram).unwrap_or_default();
        Self { last_at: change.at, change: FleetChange { made: 1, ..change }, times }
    }

    fn takes(&self, other: &FleetChange) -> bool {
        let own = &self.change;
        own.kind == other.kind
            && own.istiod == other.istiod
            && own.failure == other.failure
            && (own.kind == CHURN || own.at == other.at)
    }

    fn add(&mut self, other: &FleetChange) {
        let own = &mut self.change;
        if self.last_at != other.at {
            self.last_at = other.at;
            own.made += 1;
            own.objects += other.objects;
            own.written_s += other.written_s;
        }
        own.expected += other.expected;
        own.reached += other.reached;
        own.convergence_us.censored += other.convergence_us.censored;
        self.times.merge(&LatencyHistogram::decode(&other.convergence_us.histogram).unwrap_or_default());
    }

    fn finish(self) -> FleetChange {
        let convergence_us = self.times.summary_with(self.change.convergence_us.censored);
        FleetChange { convergence_us, ..self.change }
    }
}

/// The result of a run that was interrupted before its fleet began.
pub fn interrupted(runner: &FleetRunner<'_>, started_at: &str, mesh: Option<FleetMesh>) -> FleetResult {
    let settings = runner.settings;
    FleetResult {
        schema: FLEET_SCHEMA.to_owned(),
        started_at: started_at.to_owned(),
        istiod: runner.targets.iter().map(|target| target.address.clone()).collect(),
        xds: settings.xds.name().to_owned(),
        security: settings.security.name().to_owned(),
        proxies: FleetProxies { wanted: settings.proxies as u64, ..FleetProxies::default() },
        mesh,
        verdict: FleetVerdict { reasons: vec![INTERRUPTED.to_owned()], ..FleetVerdict::default() },
        connect_us: HistogramSummary::default(),
        ..FleetResult::default()
    }
}

pub fn with_removal(result: FleetResult, removed_s: Option<f64>) -> FleetResult {
    let mesh = result.mesh.map(|mesh| FleetMesh { removed_s, ..mesh });
    FleetResult { mesh, ..result }
}

/// The failure of a fleet that received nothing although it was not interrupted.
pub fn nothing_received(result: &FleetResult) -> Option<Failure> {
    if result.bytes_received > 0 || result.verdict.reasons.iter().any(|reason| reason == INTERRUPTED) {
        return None;
    }
    let istiods = result.istiod.join(" and ");
    let kind = result.violations.iter().max_by_key(|(_, count)| **count).map(|(kind, _)| kind.as_str());
    let kind = kind.unwrap_or("no response");
    let detail =
        result.events.iter().find(|event| event.kind == kind).map(|event| format!(" ({})", event.detail));
    let failure = Failure::broken(format!(
        "no proxy got a configuration from {istiods}: {kind}{}",
        detail.unwrap_or_default()
    ));
    Some(failure.with_some_hint(hint(kind)))
}

fn hint(kind: &str) -> Option<&'static str> {
    match kind {
        "connection-refused" | "connect-timeout" => {
            Some("is istiod there? its port for proxies is 15012, in plaintext 15010")
        }
        "tls-failed" | "certificate-expired" => Some(
            "whose certificate is it? name its authority with --istiod-ca FILE and its name with --istiod-name NAME",
        ),
        "certificate-refused" | "grpc-unauthenticated" | "grpc-permission-denied" => {
            Some("does istiod watch the API of this kubeconfig, and is --cluster-id its own?")
        }
        "grpc-unimplemented" | "http-status" | "http2-violation" | "http2-flood" | "grpc-violation" => {
            Some("what listens there is not an istiod")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::FleetEvent;
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn change(kind: &str, milliseconds: u64, never: u64) -> FleetChange {
        let mut histogram = LatencyHistogram::new();
        histogram.record(Duration::from_millis(milliseconds));
        FleetChange {
            kind: kind.to_owned(),
            at: milliseconds as f64,
            objects: 2,
            expected: 1 + never,
            reached: 1,
            convergence_us: histogram.summary_with(never),
            ..FleetChange::default()
        }
    }

    #[test]
    fn churn_is_one_entry_and_other_changes_stay() {
        let changes = vec![change(CHURN, 10, 0), change("service-entry", 5, 0), change(CHURN, 20, 1)];
        let result =
            measured(FleetResult { changes, ..FleetResult::default() }, Vec::new(), Changed::default());
        assert_eq!(result.changes.len(), 2);
        let churn = &result.changes[1];
        assert_eq!((churn.made, churn.objects, churn.expected, churn.reached), (2, 4, 3, 2));
        assert_eq!((churn.convergence_us.count, churn.convergence_us.censored), (2, 1));
        assert_eq!(churn.at, 10.0);
    }

    #[test]
    fn parts_of_one_change_are_one_entry() {
        let one = change("service-entry", 5, 1);
        let other = FleetChange { at: one.at, ..change("service-entry", 9, 0) };
        let result = measured(
            FleetResult { changes: vec![one, other], ..FleetResult::default() },
            Vec::new(),
            Changed::default(),
        );
        assert_eq!(result.changes.len(), 1);
        let change = &result.changes[0];
        assert_eq!((change.made, change.objects, change.expected, change.reached), (1, 2, 3, 2));
    }

    #[test]
    fn failed_change_is_a_reason_against_the_figures() {
        let failed = FleetChange { failure: Some("refused".to_owned()), ..change("root-policy", 1, 0) };
        let result = measured(
            FleetResult::default(),
            Vec::new(),
            Changed { impossible: vec![failed], ..Changed::default() },
        );
        assert_eq!(result.verdict.reasons, ["change-failed: root-policy: refused"]);
        assert!(!result.verdict.valid);
    }

    #[test]
    fn change_expected_by_no_proxy_is_reason_against_figures() {
        let untold = |kind: &str| FleetChange { kind: kind.to_owned(), ..FleetChange::default() };
        let changes = vec![untold("endpoint-added"), untold("istiod-added")];
        let result =
            measured(FleetResult { changes, ..FleetResult::default() }, Vec::new(), Changed::default());
        assert_eq!(
            result.verdict.reasons,
            ["change-failed: endpoint-added: no proxy of this fleet receives it"]
        );
    }

    #[test]
    fn fleet_that_received_nothing_reports_most_common_reason() {
        let event = FleetEvent {
            kind: "tls-failed".to_owned(),
            detail: "first at a.b: UnknownIssuer".to_owned(),
            at: 1.0,
        };
        let result = FleetResult {
            istiod: vec!["a:15012".to_owned()],
            violations: BTreeMap::from([("tls-failed".to_owned(), 7), ("connection-lost".to_owned(), 1)]),
            events: vec![event],
            ..FleetResult::default()
        };
        let failure = format!("{:?}", nothing_received(&result).unwrap());
        assert!(
            failure.contains(
                "no proxy got a configuration from a:15012: tls-failed (first at a.b: UnknownIssuer)"
            )
        );
        assert!(failure.contains("--istiod-ca"));
        let stopped = FleetVerdict { reasons: vec![INTERRUPTED.to_owned()], ..FleetVerdict::default() };
        assert!(nothing_received(&FleetResult { verdict: stopped, ..result }).is_none());
    }
}
