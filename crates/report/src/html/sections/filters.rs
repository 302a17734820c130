//! Filters of the gateway: what each checked, and which probes it rejected before the load.

use super::context::Context;
use crate::format;
use experiment::environment::Scenario;
use results::{FilterProbe, TrialRecord};
use serde::Serialize;
use statistics::is_excluded;

/// One filter in one cell, over the valid trials.
#[derive(Debug, Serialize)]
pub struct FilterRow {
    load: String,
    mode: &'static str,
    filter: String,
    checks: String,
    requests: String,
    probes: String,
}

pub fn rows(context: &Context) -> Vec<FilterRow> {
    let mut rows = Vec::new();
    for at in context.conditions.all() {
        for cell in context.modes.iter().map(|mode| at.cell(*mode)) {
            let trials = context.trials.of(cell).iter().copied().filter(|trial| !is_excluded(trial));
            let trials: Vec<&TrialRecord> = trials.collect();
            let Some(first) = trials.first() else { continue };
            for (position, filter) in first.path.filters.iter().enumerate() {
                let each = trials.iter().filter_map(|trial| trial.path.filters.get(position));
                let checks: Option<u64> = each.clone().map(|proof| proof.checks).sum();
                let requests: u64 = each.map(|proof| proof.requests).sum();
                rows.push(FilterRow {
                    load: context.conditions.label(at),
                    mode: cell.mode.name(),
                    filter: filter.name.clone(),
                    checks: checks.map_or_else(|| format::ABSENT.to_owned(), format::count),
                    requests: format::count(requests),
                    probes: filter.probes.iter().map(probe).collect::<Vec<_>>().join("; "),
                });
            }
        }
    }
    rows
}

/// Example: `an attack by script: 403`.
fn probe(probe: &FilterProbe) -> String {
    let statuses: Vec<String> = probe.statuses.iter().map(u16::to_string).collect();
    format!("{}: {}", probe.what, statuses.join(", "))
}

/// How parts of these filters differ from those that others measured.
pub fn notes(context: &Context, rows: &[FilterRow]) -> Vec<&'static str> {
    let has = |scenario: Scenario| rows.iter().any(|row| row.filter == scenario.name());
    let has_redis = context.run.host.versions.iter().any(|version| version.name == "redis-server");
    let mut notes = Vec::new();
    if has(Scenario::Waf) {
        notes.push(
            "The web application firewall is Coraza with the OWASP core rule set in a process of its own, which the gateway \
             asks by ext_proc. It is not a Wasm filter in the gateway: that module is built with TinyGo, which is in no \
             package registry.",
        );
    }
    if has(Scenario::GlobalRateLimit) && !has_redis {
        notes.push(
            "The rate limit service counts in an in-memory store that speaks Redis’s protocol (miniredis), not in Redis: \
             that store takes more CPU.",
        );
    }
    notes
}
