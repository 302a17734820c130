//! Outputs of a comparison.

use super::*;
use crate::terminal::Options;
use results::{
    BetweenRuns, COMPARISON_SCHEMA, COMPARISON_SELF_TEST_SCHEMA, ComparedArm, ComparisonCourse,
    ComparisonSelfTest, CountedShare, Factors, FinishedRuns, HistoryUse, InconclusiveReason, InjectedEffect,
    LoadPoint, Mode, Modes, OwnedCellKey, SelfTestSeries,
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
        stream: None,
        arrival: "uniform".to_owned(),
        surrounding_services: None,
    };
    let mean = |value: f64| Some(estimate(value, value * 0.99, value * 1.01));
    ComparedFigure {
        key,
        cell: OwnedCellKey { mode: Mode::Sidecar, factors: Factors::new(), load },
        base: mean(base),
        head: mean(base * ratio.estimate),
        control: mean(base * 1.001),
        difference: Some(ratio.map(|ratio| base * (ratio - 1.0))),
        ratio: Some(ratio),
        control_ratio: Some(estimate(1.001, 0.99, 1.012)),
        equivalence_ratio: Some(ratio),
        margin: 0.03,
        margin_source: MarginSource::Default,
        verdict,
        reason: None,
        error_rate: 0.005,
        between_runs: None,
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
        course: ComparisonCourse::default(),
        verdict: ComparisonVerdict::Worse,
        finished: None,
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

fn self_test(alarms: CountedShare) -> ComparisonSelfTest {
    let series = |injected: InjectedEffect, added_us: f64, worse: u64, share: CountedShare| SelfTestSeries {
        injected,
        added_us,
        relative: 0.05,
        figure: injected.figure(),
        comparisons: share.of,
        worse,
        better: share.count - worse,
        equivalent: 3,
        inconclusive: share.of - share.count - 3,
        failed: 0,
        share: Some(share),
    };
    let found = CountedShare { count: 8, of: 11, share: 8.0 / 11.0, low: 0.39, high: 0.94 };
    ComparisonSelfTest {
        schema: COMPARISON_SELF_TEST_SCHEMA.to_owned(),
        seed: 7,
        budget_s: 3600.0,
        elapsed_s: 3540.0,
        repeats: 12,
        effect: 0.05,
        alarm_rate: 0.03,
        interrupted: false,
        series: vec![
            series(InjectedEffect::Nothing, 0.0, 0, alarms),
            series(InjectedEffect::ServerCpuTime, 31.4, 8, found),
        ],
    }
}

/// Two figures judged by a history, one of them bimodal.
fn by_history() -> Comparison {
    let between = |bimodal| BetweenRuns {
        runs: 12,
        deviation: Some(0.013),
        since: Some("commit-8".to_owned()),
        bimodal,
        superiority: Some(0.75),
        ..BetweenRuns::default()
    };
    let modes = Modes { lower: 380.0, lower_runs: 7, upper: 450.0, upper_runs: 5 };
    let mut comparison = comparison();
    let figures = &mut comparison.figures;
    figures.truncate(2);
    figures[0].between_runs = Some(between(None));
    figures[1] = ComparedFigure {
        reason: Some(InconclusiveReason::Bimodal),
        between_runs: Some(between(Some(modes))),
        ..figure(Metric::ResponseTimeP50Us, 410.0, estimate(1.1, 0.8, 1.5), FigureVerdict::Inconclusive)
    };
    Comparison {
        base: ComparedArm::default(),
        head: ComparedArm { settings: vec!["runs/today (abc1234)".to_owned()], ..ComparedArm::default() },
        ended: ComparisonEnd::Recorded,
        environment_changes: vec!["since the last run of the history: envoy: 1.35 → 1.36".to_owned()],
        finished: Some(FinishedRuns {
            across_environments: false,
            not_compared: vec!["sidecar at 2000 requests/s is not in runs/today".to_owned()],
            limits: Vec::new(),
            history: Some(HistoryUse {
                file: "h.jsonl".to_owned(),
                runs: 20,
                used: 18,
                skipped_lines: vec![3],
            }),
        }),
        ..comparison
    }
}

#[test]
fn self_test_has_a_row_per_change_with_exact_intervals() {
    let options = Options { width: 120, colours: false };
    let quiet = CountedShare { count: 1, of: 12, share: 1.0 / 12.0, low: 0.002, high: 0.385 };
    insta::assert_snapshot!("self_test", self_test_text(&self_test(quiet), options));
    let noisy = CountedShare { count: 6, of: 12, share: 0.5, low: 0.21, high: 0.79 };
    let text = self_test_text(&self_test(noisy), options);
    assert!(text.contains("More false alarms than 3 % are shown"), "{text}");
}

#[test]
fn page_of_finished_runs_has_their_environment_and_no_looks_or_control() {
    let page = crate::html::render_comparison(&by_history(), &[]);
    assert!(page.contains("envoy: 1.35 → 1.36") && page.contains("from base to head"), "{page}");
    assert!(page.contains("against base, with"), "{page}");
    for text in ["at any look", "base and control"] {
        assert!(!page.contains(text), "{text}");
    }
}

#[test]
fn finished_runs_are_described_with_their_history_and_without_one() {
    let options = Options { width: 120, colours: false };
    insta::assert_snapshot!("by_history", text(&by_history(), options));
    let mut without = by_history();
    without.verdict = ComparisonVerdict::Inconclusive;
    without.figures.truncate(1);
    without.figures[0].verdict = FigureVerdict::Inconclusive;
    without.figures[0].reason = Some(InconclusiveReason::RunVariationUnknown);
    without.figures[0].between_runs = Some(BetweenRuns { without_mode: true, ..BetweenRuns::default() });
    if let Some(finished) = &mut without.finished {
        finished.history = None;
        finished.limits = vec!["wrk: no histogram: no figure has an interval".to_owned()];
    }
    without.base.settings = vec!["wrk.txt".to_owned()];
    insta::assert_snapshot!("without_history", markdown(&without));
    insta::assert_snapshot!("junit_of_finished_runs", crate::junit::comparison(&without, false));
}
