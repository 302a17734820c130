//! Fleets over the trials of a cell.

use crate::summarize;
use experiment::{Experiment, Plan, PlannedTrial};
use results::finding::{Convergence, Headline, Timed};
use results::*;
use std::collections::BTreeMap;
use std::time::Duration;

const TEXT: &str = "{name: f, mesh: istio, modes: [control-plane], repeats: 3, \
                    fleet: {proxies: [1000, 2000], services: 1000, pods: 2000}, \
                    published: {source: others, figures: [\
                    {figure: istiod-cpu, mode: control-plane, value: 2}, \
                    {figure: istiod-memory-per-proxy, mode: control-plane, value: 2MB}]}}";

/// Arrivals at 100 proxies, starting at this time, one per millisecond.
fn arrivals(from_ms: u64) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::new();
    (0..100).for_each(|proxy| histogram.record(Duration::from_millis(from_ms + proxy)));
    histogram
}

fn change(kind: &str, from_ms: u64, never: u64) -> FleetChange {
    FleetChange {
        kind: kind.to_owned(),
        expected: 100,
        reached: 100,
        convergence_us: arrivals(from_ms).summary_with(never),
        ..FleetChange::default()
    }
}

fn fleet(proxies: u64, repeat: usize, never: u64) -> FleetResult {
    let later = 100 * proxies / 1000 + repeat as u64;
    let mut all = arrivals(later);
    all.merge(&arrivals(2 * later));
    let istiod = ControlPlaneFigures {
        name: "istiod".to_owned(),
        cpu_s: Some(proxies as f64 / 100.0 + repeat as f64 * 0.01),
        memory_peak_bytes: Some(proxies * 1_000_000 + repeat as u64),
        chain: BTreeMap::from([(
            "push".to_owned(),
            ReportedHistogram { count: 4, sum: 0.1, ..ReportedHistogram::default() },
        )]),
        ..ControlPlaneFigures::default()
    };
    FleetResult {
        duration_s: 10.0,
        proxies: FleetProxies {
            wanted: proxies,
            converged: proxies - never,
            never,
            ..FleetProxies::default()
        },
        first_configuration_us: arrivals(1000).summary(),
        convergence_us: all.summary_with(never),
        changes: vec![
            change("endpoint-added", later, 0),
            change("service-entry", 2 * later, never),
            change("endpoint-added", later + 50, 0),
        ],
        bytes_received: proxies * 5_000,
        pushes: BTreeMap::from([(
            "cds".to_owned(),
            FleetPushes { count: proxies * 2, ..FleetPushes::default() },
        )]),
        control_plane: vec![istiod],
        ..FleetResult::default()
    }
}

/// Every trial of the plan, with this many proxies of the larger fleet never reached.
fn summary(never: u64) -> Summary {
    summary_of(|proxies, repeat| fleet(proxies, repeat, if proxies == 2000 { never } else { 0 }))
}

/// Every trial of the plan, with this result by the number of proxies and the repeat.
fn summary_of(fleet: impl Fn(u64, usize) -> FleetResult) -> Summary {
    let experiment = Experiment::parse(TEXT, "test").unwrap();
    let trials: Vec<TrialRecord> = Plan::new(&experiment, 1)
        .trials
        .iter()
        .map(|planned| {
            let proxies: u64 = planned.factors["fleet.proxies"].to_string().parse().unwrap();
            let verdict = Verdict::usable();
            let driver = DriverRecord {
                name: "fleet".to_owned(),
                fleet: Some(fleet(proxies, planned.repeat)),
                verdict: verdict.clone(),
                ..DriverRecord::default()
            };
            let json = serde_json::json!({
                "schema": TRIAL_SCHEMA, "index": planned.index, "repeat": planned.repeat, "mode": planned.mode(),
                "factors": planned.factors, "load": planned.load, "started_at": "2026-11-22T12:00:00Z",
                "outcome": "finished", "verdict": verdict, "result": null, "drivers": [driver], "components": [],
                "path": PathProof::default(), "machine": null
            });
            serde_json::from_value(json).unwrap()
        })
        .collect();
    summarize(&experiment, 1, trials.len(), &Host::default(), &trials)
}

fn cells(summary: &Summary) -> Vec<&FleetSummary> {
    summary.cells.iter().map(|cell| cell.fleet.as_ref().expect("it has a fleet")).collect()
}

#[test]
fn fleet_figures_have_estimates_over_trials() {
    let summary = summary(0);
    let [small, large] = cells(&summary)[..] else { panic!("two cells") };
    assert_eq!((small.proxies, large.proxies), (1000, 2000));
    assert_eq!(summary.cells[1].valid, 3);
    let last = large.convergence_us.last.unwrap();
    assert!((last.estimate - 501_000.0).abs() < 2_000.0 && last.n == 3, "{last:?}");
    assert!(last.low.is_some_and(|low| low < last.estimate));
    let kinds: Vec<(&str, usize)> =
        large.changes.iter().map(|change| (change.kind.as_str(), change.changes)).collect();
    assert_eq!(kinds, [("endpoint-added", 6), ("service-entry", 3)]);
    // For two changes of one kind, the last arrival is that of the slower change.
    let added = large.changes[0].convergence_us.last.unwrap().estimate;
    assert!((added - 350_000.0).abs() < 2_000.0, "{added}");
    assert_eq!(large.estimates.get(Metric::BytesPerProxy).unwrap().estimate, 5_000.0);
    assert_eq!(large.pushes["cds"].count.unwrap().estimate, 4_000.0);
    assert!((large.estimates.get(Metric::IstiodCpuCores).unwrap().estimate - 2.001).abs() < 1e-6);
    assert!((large.istiod_chain_ms["push"].estimate - 25.0).abs() < 1e-9);
}

/// A restart of istiod has no arrivals of changes: the time until proxies are complete again stands for it.
#[test]
fn restart_alone_is_not_a_change_that_never_came() {
    let restart = |proxies, repeat| FleetResult {
        convergence_us: HistogramSummary::default(),
        changes: vec![change("istiod-restart", 500, 0)],
        ..fleet(proxies, repeat, 0)
    };
    let summary = summary_of(restart);
    let headline = headline(&summary);
    assert_eq!(headline.event.as_deref(), Some("istiod-restart"));
    let Timed::Measured(p99) = headline.timed else { panic!("it is measured: {headline:?}") };
    let p99_us = p99.value;
    assert!((p99_us - 598_000.0).abs() < 3_000.0, "{p99_us}");
}

fn headline(summary: &Summary) -> &Convergence {
    match &summary.findings[0].finding {
        Finding::Headline(Headline::Fleet(headline)) => &headline.content,
        other => panic!("{other:?}"),
    }
}

#[test]
fn factor_has_effects_on_convergence_and_control_plane() {
    let summary = summary(0);
    let effect = |figure| {
        let mut effects = summary.factor_effects.iter();
        effects.find(|effect| effect.figure == figure).unwrap_or_else(|| panic!("{figure:?}"))
    };
    let memory = effect(Metric::IstiodMemoryBytes);
    assert!((memory.per_unit.estimate - 1_000_000.0).abs() < 1.0, "{memory:?}");
    assert_eq!(memory.verdict, FindingVerdict::Shown);
    let last = effect(Metric::ConvergenceLastUs);
    assert!((last.per_unit.estimate - 200.0).abs() < 5.0, "200 ms per 1000 proxies: {last:?}");
    let of_factor = summary.findings.iter().filter_map(|stated| match &stated.finding {
        Finding::FactorEffect(effect) => Some(effect.measured.figure),
        _ => None,
    });
    let figures: Vec<Metric> = of_factor.collect();
    assert_eq!(figures, [Metric::ConvergenceP99Us, Metric::IstiodCpuS, Metric::IstiodMemoryBytes]);
    assert_eq!(headline(&summary).proxies, 2000);
}

#[test]
fn proxies_never_reached_rank_above_all_others() {
    let summary = summary(5);
    let [small, large] = cells(&summary)[..] else { panic!("two cells") };
    assert!(small.convergence_us.last.is_some() && small.never == 0);
    // 5 of 205 arrivals are missing: the 99th percentile falls among them, the 90th does not.
    let times = &large.convergence_us;
    assert!(times.p90.is_some() && times.p99.is_none() && times.last.is_none(), "{times:?}");
    assert_eq!((large.never, times.never), (5, 15));
    let missing = summary.findings.iter().filter_map(|stated| match &stated.finding {
        Finding::NotConverged(missing) => Some((missing.trials.n, missing.trials.of)),
        _ => None,
    });
    assert_eq!(missing.collect::<Vec<_>>(), [(5, 2000)]);
}

#[test]
fn published_figures_are_compared_with_largest_fleet() {
    let summary = summary(0);
    let [cpu, memory] = &summary.published[..] else { panic!("{:?}", summary.published) };
    assert!((cpu.ratio.unwrap() - 1.0).abs() < 0.01 && cpu.agrees == Some(true), "{cpu:?}");
    assert!(cpu.measured.as_ref().unwrap().ends_with("with 2000 proxies"));
    assert_eq!(
        (memory.what.as_str(), memory.agrees),
        ("control-plane: memory of istiod per proxy", Some(false))
    );
}

/// Two istiods of equal anonymous memory, the second of which has mapped more of its program's file.
fn istiods_compared(with_anonymous: bool) -> Summary {
    let text = "{name: f, mesh: istio, modes: [control-plane], repeats: 5, components: {istio: [1.29.4, 1.30.1]}, \
                fleet: {proxies: 1000, services: 1000, pods: 2000}}";
    let experiment = Experiment::parse(text, "test").unwrap();
    let plan = Plan::new(&experiment, 1);
    let trial = |planned: &PlannedTrial| {
        let mut result = fleet(1000, planned.repeat, 0);
        if planned.factors["components.istio"].to_string() == "1.30.1" {
            result.control_plane[0].memory_peak_bytes = Some(1_060_000_000 + planned.repeat as u64);
        }
        let driver = DriverRecord {
            name: "fleet".to_owned(),
            fleet: Some(result),
            verdict: Verdict::usable(),
            ..DriverRecord::default()
        };
        let istiod = ComponentUsage {
            memory_anonymous_bytes: with_anonymous.then_some(800_000_000 + planned.repeat as u64),
            ..ComponentUsage::new("istiod", Role::ControlPlane, 10.0)
        };
        let json = serde_json::json!({
            "schema": TRIAL_SCHEMA, "index": planned.index, "repeat": planned.repeat, "mode": planned.mode(),
            "factors": planned.factors, "load": planned.load, "started_at": "2026-11-22T12:00:00Z",
            "outcome": "finished", "verdict": Verdict::usable(), "result": null, "drivers": [driver],
            "components": [istiod], "path": PathProof::default(), "machine": null
        });
        serde_json::from_value(json).unwrap()
    };
    let trials: Vec<TrialRecord> = plan.trials.iter().map(trial).collect();
    summarize(&experiment, 1, trials.len(), &Host::default(), &trials)
}

#[test]
fn istiods_are_compared_by_anonymous_memory_where_it_was_read() {
    let of_memory = |summary: &Summary| -> Vec<(Metric, FindingVerdict)> {
        let memory =
            summary.factor_differences.iter().filter(|one| one.figure.spoiled_by() == Figure::Memory);
        memory.map(|difference| (difference.figure, difference.verdict)).collect()
    };
    let anonymous = of_memory(&istiods_compared(true));
    assert!(
        matches!(anonymous[..], [(Metric::IstiodMemoryAnonymousBytes, verdict)] if verdict != FindingVerdict::Shown),
        "{anonymous:?}"
    );
    let resident = istiods_compared(false);
    assert_eq!(of_memory(&resident), [(Metric::IstiodMemoryBytes, FindingVerdict::Shown)]);
    let stated = resident.findings.iter().any(|stated| match &stated.finding {
        Finding::Headline(Headline::Values(one)) => {
            one.difference.measured.figure == Metric::IstiodMemoryBytes
        }
        _ => false,
    });
    assert!(stated, "{:?}", resident.findings);
}
