use super::*;
use results::{
    ControlPlaneFigures, FleetChange, FleetMesh, FleetOfIstiod, FleetProxies, FleetUsage, LatencyHistogram,
    ReportedHistogram,
};
use std::collections::BTreeMap;
use std::time::Duration;

const WIDTH: Options = Options { width: 120, colours: false };

fn times(milliseconds: &[u64], never: u64) -> HistogramSummary {
    let mut histogram = LatencyHistogram::new();
    milliseconds.iter().for_each(|time| histogram.record(Duration::from_millis(*time)));
    histogram.summary_with(never)
}

fn change(kind: &str, milliseconds: &[u64], never: u64) -> FleetChange {
    FleetChange {
        kind: kind.to_owned(),
        at: 3.0,
        expected: milliseconds.len() as u64 + never,
        reached: milliseconds.len() as u64,
        convergence_us: times(milliseconds, never),
        ..FleetChange::default()
    }
}

fn reported(count: u64, sum: f64) -> ReportedHistogram {
    ReportedHistogram { count, sum, buckets: Vec::new() }
}

fn istiod() -> ControlPlaneFigures {
    ControlPlaneFigures {
        name: "istiod".to_owned(),
        version: Some("1.31.1".to_owned()),
        cpu_s: Some(2.5),
        cpu_changing_s: Some(0.5),
        memory_bytes: Some(120_000_000),
        memory_peak_bytes: Some(180_000_000),
        goroutines: Some(420),
        chain: BTreeMap::from([
            ("debounce".to_owned(), reported(2, 0.24)),
            ("push_context".to_owned(), reported(2, 0.02)),
            ("queue".to_owned(), reported(8, 0.016)),
            ("push".to_owned(), reported(32, 0.024)),
        ]),
        triggers: BTreeMap::from([("endpoint".to_owned(), 8)]),
        ..ControlPlaneFigures::default()
    }
}

fn result() -> FleetResult {
    let pushes = FleetPushes {
        count: 12,
        bytes: 1_250_000,
        resources: 400,
        removed: 2,
        by_trigger: BTreeMap::from([("connect".to_owned(), 4), ("endpoint-added".to_owned(), 8)]),
        ..FleetPushes::default()
    };
    let changes = vec![
        change("endpoint-added", &[110, 120, 130, 140], 0),
        change("endpoint-added", &[150, 160, 170, 180], 0),
    ];
    FleetResult {
        duration_s: 10.0,
        istiod: vec!["10.77.0.2:15012".to_owned()],
        xds: "delta".to_owned(),
        security: "mutual-tls".to_owned(),
        proxies: FleetProxies { wanted: 4, connected: 4, converged: 4, never: 0, never_names: Vec::new() },
        kinds: BTreeMap::from([("sidecar".to_owned(), 4)]),
        mesh: Some(FleetMesh {
            topology: None,
            run_id: "3f9k2a".to_owned(),
            objects: BTreeMap::from([("Service".to_owned(), 100)]),
            written_s: 1.5,
            removed_s: Some(1.0),
        }),
        connect_us: times(&[2, 3, 4, 5], 0),
        first_configuration_us: times(&[20, 30, 40, 50], 0),
        convergence_us: times(&[110, 120, 130, 140, 150, 160, 170, 180], 0),
        changes,
        bytes_received: 1_250_000,
        pushes: BTreeMap::from([("eds".to_owned(), pushes)]),
        acknowledgements: 12,
        control_plane: vec![istiod()],
        fleet: FleetUsage {
            cpu_s: 1.0,
            memory_peak_bytes: 20_000_000,
            memory_settled_bytes: Some(240_000),
            lag_us: times(&[1, 1], 0),
            clock: "kernel".to_owned(),
            threads: 2,
            ..FleetUsage::default()
        },
        ..FleetResult::default()
    }
}

#[test]
fn converged_fleet_shows_changes_and_time_breakdown() {
    insta::assert_snapshot!(fleet_text(&result(), WIDTH).replace('\u{a0}', " "));
}

#[test]
fn routes_of_gateways_are_stated() {
    let mut result = result();
    result.kinds = BTreeMap::from([("gateway".to_owned(), 4)]);
    let routes = FleetPushes { count: 4, routes: 4000, ..FleetPushes::default() };
    result.pushes.insert("rds".to_owned(), routes);
    let text = fleet_text(&result, WIDTH).replace('\u{a0}', " ");
    assert!(text.contains("1.25 MB in all with 4000 routes, 312 kB per proxy"), "{text}");
}

#[test]
fn shortfalls_name_missing_proxies() {
    let mut result = result();
    result.proxies.converged = 2;
    result.proxies.never = 2;
    result.proxies.never_names = vec!["service-1-1.fleet-1".to_owned()];
    result.changes.push(change("service-entry", &[200, 210], 2));
    result.changes.push(FleetChange {
        kind: "istiod-restart".to_owned(),
        at: 7.0,
        failure: Some("only a lab can restart istiod".to_owned()),
        ..FleetChange::default()
    });
    result.convergence_us = times(&[110], 2);
    result.verdict.reasons = vec!["not-converged: 2 proxies".to_owned()];
    result.verdict.notes = vec!["other-processes: others took 0.50 cores (cc 0.50)".to_owned()];
    result.violations = BTreeMap::from([("wrong nonce".to_owned(), 1)]);
    result.control_plane = vec![ControlPlaneFigures {
        name: "istiod".to_owned(),
        failure: Some("connection refused".to_owned()),
        ..ControlPlaneFigures::default()
    }];
    let text = fleet_text(&result, WIDTH).replace('\u{a0}', " ");
    for part in [
        "NOT CONVERGED: 2 of 4 proxies missed their configuration or a change.",
        "NOT VALID: not-converged: 2 proxies",
        "note: other-processes: others took 0.50 cores (cc 0.50)",
        "Not converged: service-1-1.fleet-1 and 1 more.",
        "istiod-restart at 7 s failed: only a lab can restart istiod",
        "1 broken stream or violation of the protocol: wrong nonce.",
        "No figures of istiod: connection refused",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let row = text.lines().find(|line| line.trim_start().starts_with("service-entry")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[2..], ["210", "never", "never", "never", "2"]);
    assert!(!text.contains("Where the time went"));
}

#[test]
fn istiods_are_compared_with_ratios() {
    let mut result = result();
    result.istiod.push("10.77.0.3:15012".to_owned());
    let own = |istiod: &str, bytes| FleetOfIstiod {
        istiod: istiod.to_owned(),
        bytes_received: bytes,
        pushes: result.pushes.clone(),
        convergence_us: result.convergence_us.clone(),
        first_configuration_us: result.first_configuration_us.clone(),
        ..FleetOfIstiod::default()
    };
    let both = [own("10.77.0.2:15012", 1_000_000), own("10.77.0.3:15012", 1_500_000)];
    result.by_istiod = both.into();
    result.control_plane.push(ControlPlaneFigures {
        cpu_s: Some(5.0),
        version: Some("1.32.0".to_owned()),
        ..istiod()
    });
    let text = fleet_text(&result, WIDTH).replace('\u{a0}', " ");
    let row = |name: &str| {
        text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}: {text}"))
    };
    assert!(row("bytes received").ends_with("×1.50"), "{text}");
    assert!(row("istiod's CPU, s").ends_with("×2.00"), "{text}");
    assert!(row("pushes by trigger endpoint").ends_with("×1.00"), "{text}");
    assert!(row("Compared").contains("istiod 1.32.0"), "{text}");
    assert_eq!(text.matches("Where the time went at").count(), 2, "{text}");
}
