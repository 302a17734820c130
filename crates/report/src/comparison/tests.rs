//! Outputs of a comparison.

use super::*;
use crate::terminal::Options;
use results::{
    COMPARISON_SCHEMA, ComparedArm, Estimate, Factors, InconclusiveReason, LoadPoint, Mode, OwnedCellKey,
};

fn estimate(estimate: f64, low: f64, high: f64) -> Estimate {
    Estimate { estimate, low: Some(low), high: Some(high), n: 12, alone: None }
}

fn figure(key: Metric, base: f64, ratio: Estimate, verdict: FigureVerdict) -> ComparedFigure {
    let load = LoadPoint {
        protocol: "http/1.1".to_owned(),
        rate: Some(1000.0),
        clients: None,
        connections: 4,
        requests_per_connection: None,
        payload_bytes: 1024,
        arrival: "uniform".to_owned(),
        surrounding_services: None,
    };
    let mean = |value: f64| Some(estimate(value, value * 0.99, value * 1.01));
    ComparedFigure {
        key,
        cell: OwnedCellKey { mode: Mode::Sidecar, factors: Factors::new(), load },
        base: mean(base),
        head: mean(base * ratio.estimate),
        difference: Some(ratio.map(|ratio| base * (ratio - 1.0))),
        ratio: Some(ratio),
        control_ratio: Some(estimate(1.001, 0.99, 1.012)),
        equivalence_ratio: Some(ratio),
        margin: 0.03,
        margin_source: MarginSource::Default,
        verdict,
        reason: None,
        error_rate: 0.005,
    }
}

fn comparison() -> Comparison {
    let drifted = ComparedFigure {
        reason: Some(InconclusiveReason::MachineDrifted),
        ..figure(Metric::ResponseTimeP99Us, 2130.0, estimate(1.12, 1.02, 1.23), FigureVerdict::Inconclusive)
    };
    let arm = |settings: &str| ComparedArm {
        settings: vec![settings.to_owned()],
        trials: 12,
        valid: 12,
        versions: Vec::new(),
    };
    Comparison {
        schema: COMPARISON_SCHEMA.to_owned(),
        name: "sidecar-cost".to_owned(),
        seed: 7,
        base: arm("components.envoy=/opt/envoy-1.35"),
        head: arm("components.envoy=/opt/envoy-1.36"),
        control: arm("components.envoy=/opt/envoy-1.35"),
        looks: 12,
        looks_planned: 12,
        ended: ComparisonEnd::Repeats,
        figures: vec![
            figure(
                Metric::ProxiesCpuCoresPer1000Rps,
                0.212,
                estimate(1.062, 1.041, 1.084),
                FigureVerdict::Worse,
            ),
            drifted,
            figure(Metric::ResponseTimeP50Us, 381.0, estimate(0.901, 0.88, 0.92), FigureVerdict::Better),
            figure(
                Metric::ProxiesMemoryAnonymousBytes,
                18.2e6,
                estimate(1.001, 0.999, 1.004),
                FigureVerdict::Equivalent,
            ),
        ],
        modes_not_compared: vec![Mode::None],
        environment_changes: Vec::new(),
        failures: Vec::new(),
        verdict: ComparisonVerdict::Worse,
    }
}

fn failed() -> Comparison {
    Comparison {
        looks: 2,
        ended: ComparisonEnd::Interrupted,
        figures: Vec::new(),
        failures: vec!["interrupted after 2 repeats".to_owned()],
        verdict: ComparisonVerdict::Failed,
        ..comparison()
    }
}

#[test]
fn terminal_opens_with_what_got_worse() {
    let options = Options { width: 120, colours: false };
    insta::assert_snapshot!("terminal", text(&comparison(), options));
    insta::assert_snapshot!("terminal_failed", text(&failed(), options));
    let coloured = text(&comparison(), Options { colours: true, ..options });
    assert!(coloured.contains("\u{1b}[31mWorse"), "{coloured}");
}

#[test]
fn pull_request_opens_with_what_got_worse() {
    insta::assert_snapshot!("markdown", markdown(&comparison()));
}

#[test]
fn junit_has_a_case_per_figure() {
    insta::assert_snapshot!("junit", crate::junit::comparison(&comparison(), false));
    let strict = crate::junit::comparison(&comparison(), true);
    assert!(strict.contains("failures=\"2\""), "{strict}");
    let failed = crate::junit::comparison(&failed(), false);
    assert!(failed.contains("errors=\"1\""), "{failed}");
}

#[test]
fn every_verdict_has_a_headline() {
    use ComparisonVerdict::{Better, Equivalent, Failed, Inconclusive};
    let of = |verdict| Description::new(&Comparison { verdict, ..comparison() }).headline;
    let headlines = [Better, Equivalent, Inconclusive, Failed].map(of);
    insta::assert_snapshot!("headlines", headlines.join("\n"));
}
