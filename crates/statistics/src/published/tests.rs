use super::*;
use results::FactorValue;
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn figure_agrees_if_interval_is_within_margin() {
    let relative =
        |relation| ReferenceValue::Relative(RelativeQuantity::Throughput, Mode::EgressBypass, relation);
    let p99 = ReferenceValue::Added(Metric::ResponseTimeP99Us, Duration::from_micros(235));
    for (published, low, high, expected) in [
        (relative(Relation::Alike), -0.04, 0.03, Some(true)),
        (relative(Relation::Alike), -0.05, -0.01, Some(true)),
        (relative(Relation::Alike), -0.3, 0.02, None),
        (relative(Relation::Alike), -0.3, -0.12, Some(false)),
        (relative(Relation::Change(-0.1)), -0.15, -0.02, Some(true)),
        (relative(Relation::Change(-0.1)), -0.15, 0.02, None),
        (relative(Relation::Change(-0.1)), -0.3, -0.22, Some(false)),
        (relative(Relation::Change(-0.5)), -0.65, -0.4, Some(true)),
        (relative(Relation::Higher), 0.01, 3.0, Some(true)),
        (relative(Relation::Higher), -0.2, 3.0, None),
        (relative(Relation::Lower), 0.01, 3.0, Some(false)),
        (p99, 200.0, 270.0, Some(true)),
        // The more noise, the less agreement.
        (p99, 100.0, 400.0, None),
        (p99, 300.0, 400.0, Some(false)),
    ] {
        let measured = Estimate { estimate: low, low: Some(low), high: Some(high), n: 3, alone: None };
        let margin = margin(published, None).unwrap();
        assert_eq!(agrees(published, margin, &measured), expected, "{published:?} and {low} to {high}");
    }
    let measured = Estimate { estimate: 300.0, low: Some(290.0), high: Some(310.0), n: 3, alone: None };
    assert_eq!(agrees(p99, margin(p99, Some(0.5)).unwrap(), &measured), Some(true), "within half");
    let single = Estimate::single(-0.1);
    assert_eq!(agrees(relative(Relation::Change(-0.1)), 0.1, &single), None);
}

#[test]
fn inverted_change_keeps_interval() {
    let halved = Estimate { estimate: -0.5, low: Some(-0.6), high: Some(-0.2), n: 3, alone: None };
    let doubled = inverted(&halved);
    assert!((doubled.estimate - 1.0).abs() < 1e-12, "{doubled:?}");
    assert!((doubled.low.unwrap() - 0.25).abs() < 1e-12 && (doubled.high.unwrap() - 1.5).abs() < 1e-12);
}

/// A cell with one proxy and these memory figures.
fn cell(memory: &Value) -> Cell {
    let zero = json!({"estimate": 0.0, "low": null, "high": null, "n": 1});
    let mut proxy = json!({
        "name": "client-proxy", "role": "proxy", "cpu_cores": zero, "cpu_cores_per_1000_rps": zero,
    });
    for (kind, bytes) in memory.as_object().unwrap() {
        proxy[kind] = json!({"estimate": bytes, "low": null, "high": null, "n": 1});
    }
    serde_json::from_value(json!({
        "mode": "sidecar",
        "load": {"protocol": "http/1.1", "connections": 4, "payload_bytes": 1024, "arrival": "uniform"},
        "trials": 1, "valid": 1, "verdict": "valid", "response_time_us": null, "added_us": null,
        "rate_completed": null, "errors": 0.0, "components": [proxy],
        "path": {"proven": true, "proxies": ["client-proxy"]},
    }))
    .unwrap()
}

#[test]
fn missing_proxy_features_are_listed_with_other_differences() {
    let of = |setups: [Option<(ProxyBuild, bool)>; 2]| {
        let cells = setups.map(|setup| Cell {
            proxies: setup.map(|(build, telemetry)| ProxySetup { build, telemetry }),
            ..cell(&json!({}))
        });
        with_further("here: one machine", proxies(&cells))
    };
    let (upstream, on, off) =
        ((ProxyBuild::Upstream, false), (ProxyBuild::Istio, true), (ProxyBuild::Istio, false));
    let cases = [[None, None], [None, Some(on)], [None, Some(off)], [Some(on), Some(off)]];
    assert_eq!(
        cases.map(of),
        [
            "here: one machine",
            "here: one machine",
            "here: one machine; here Istio's telemetry is off",
            "here: one machine; here Istio's telemetry is off in some of the cells",
        ]
    );
    let stands_in = "here: one machine; here upstream Envoy stands in for Istio's proxy";
    assert_eq!(of([None, Some(upstream)]), format!("{stands_in}, without its telemetry filters"));
    assert!(of([Some(on), Some(upstream)]).starts_with(&format!("{stands_in} in some of the cells")));
    assert_eq!(with_further("", Some("a")), "a");
}

#[test]
fn memory_is_of_published_or_nearest_kind_and_names_it() {
    let all = json!({
        "memory_working_set_bytes": 30e6, "memory_anonymous_bytes": 29e6, "memory_resident_bytes": 110e6,
    });
    let without_group = json!({"memory_anonymous_bytes": 29e6, "memory_resident_bytes": 110e6});
    let (working_set, anonymous) = (Metric::MemoryWorkingSetBytes, Metric::MemoryAnonymousBytes);
    let cases = [
        (&all, working_set, Some("client-proxy 30 MB, anonymous 29 MB, resident 110 MB")),
        (&all, anonymous, Some("client-proxy 29 MB, working set 30 MB, resident 110 MB")),
        (&all, Metric::MemoryResidentBytes, Some("client-proxy 110 MB, working set 30 MB, anonymous 29 MB")),
        (&without_group, working_set, Some("client-proxy anonymous 29 MB, resident 110 MB")),
    ];
    for (memory, kind, expected) in cases {
        let value = ReferenceValue::Memory(kind, 60_000_000);
        let figure = ReferenceFigure {
            mode: Mode::Sidecar,
            rate: None,
            clients: None,
            prompt_bytes: None,
            component: None,
            gateway_cpu_cores: None,
            value,
        };
        let measured = super::memory(&figure, &cell(memory), kind).map(|measured| measured.text);
        assert_eq!(measured.as_deref(), expected, "{kind:?} of {memory}");
    }
}

#[test]
fn throughput_uses_cell_with_limit_and_cores_of_gateway() {
    let text = "{name: x, mesh: istio, modes: ingress, load: {clients: 50}, gateway: {cpu: [500m, 1]}}";
    let experiment = Experiment::parse(text, "test").unwrap();
    let cells = [("500m", 2000.0), ("1", 3900.0)];
    let cells: Vec<Cell> = cells
        .iter()
        .map(|(limit, rate)| {
            let mut cell = cell(&json!({}));
            cell.mode = Mode::Ingress;
            cell.load.clients = Some(50);
            cell.factors.insert(GATEWAY_CPU.to_owned(), FactorValue::from_typed(limit));
            cell.rate_completed = Some(Estimate::single(*rate));
            cell.components[0].cpu_cores_per_1000_rps = Estimate::single(0.25);
            cell
        })
        .collect();
    let figure = |value, gateway_cpu_cores| ReferenceFigure {
        mode: Mode::Ingress,
        rate: None,
        clients: None,
        prompt_bytes: None,
        gateway_cpu_cores,
        component: None,
        value,
    };
    let is_of = |figure: &ReferenceFigure| {
        let wanted = Wanted { figure, experiment: &experiment };
        cells.iter().map(|cell| wanted.is_of(cell)).collect::<Vec<_>>()
    };
    let throughput = |cores| figure(ReferenceValue::Throughput(4000.0), cores);
    assert_eq!(is_of(&throughput(Some(1.0))), [false, true]);
    assert_eq!(is_of(&throughput(Some(8.0))), [false, false]);
    assert_eq!(is_of(&throughput(None)), [true, true]);
    assert_eq!(per_core(&cells[0].components[0].cpu_cores_per_1000_rps).estimate, 4000.0);
    let what = what(&figure(ReferenceValue::ThroughputPerCpu(4000.0), Some(1.0)));
    assert_eq!(what, "ingress: requests per second per core of each proxy, gateway.cpu 1");
}

#[test]
fn agreement_rests_on_the_interval_of_the_figure_by_itself() {
    let experiment =
        Experiment::parse("{name: x, modes: [none, sidecar], load: {clients: 8}}", "test").unwrap();
    let widened = |estimate: f64, [low, high]: [f64; 2], alone: [f64; 2]| json!({"estimate": estimate, "low": low, "high": high, "n": 3, "alone": alone});
    let mut cell = serde_json::to_value(cell(&json!({}))).unwrap();
    cell["added_us"] = json!({"p50": null, "p90": null, "verdicts": {}, "p99": widened(240.0, [-90.0, 600.0], [200.0, 280.0])});
    let comparison = json!({
        "load": cell["load"], "mode": "sidecar", "than": "none",
        "response_time_us": {"p50": null, "p90": null, "p99": null, "verdicts": {}},
        "throughput": widened(-0.1, [-0.4, 0.2], [-0.15, -0.05]),
    });
    let summary: Summary = serde_json::from_value(json!({
        "schema": "", "name": "x", "seed": 1, "trials_planned": 6, "trials_recorded": 6, "host": results::Host::default(),
        "cells": [cell], "comparisons": [comparison], "findings": [], "published": [],
    }))
    .unwrap();
    let figure = |value| ReferenceFigure {
        mode: Mode::Sidecar,
        rate: None,
        clients: None,
        prompt_bytes: None,
        component: None,
        gateway_cpu_cores: None,
        value,
    };
    let added = ReferenceValue::Added(Metric::ResponseTimeP99Us, Duration::from_micros(235));
    let less = ReferenceValue::Relative(RelativeQuantity::Throughput, Mode::None, Relation::Change(-0.1));
    for (value, text) in [(added, "0.24 ms (0.20–0.28)"), (less, "−10 % (−15 to −5)")] {
        let measured = measured(&figure(value), &experiment, &summary).unwrap();
        let agrees = agrees(value, margin(value, None).unwrap(), &measured.estimate.unwrap());
        assert_eq!((agrees, measured.text.as_str()), (Some(true), text));
    }
}

#[test]
fn ratio_needs_values_of_one_sign() {
    assert_eq!([ratio(-3.3, 5.0), ratio(1.0, 0.0), ratio(2.0, 4.0)], [None, None, Some(0.5)]);
}
