//! Cells that factors cannot touch: measured once, compared with every combination, and in no effect of a factor.

use crate::simulator::{Design, Upgrade};
use crate::{Share, covers, summaries, with_factors, with_words};
use experiment::Experiment;
use results::{
    Cell, CornerDifference, FactorDifference, Factors, Finding, FindingVerdict, Host, MachineUsage, Metric,
    Mode, StatedFinding, Summary, TrialRecord,
};
use serde_json::Value as Json;
use statistics::{ObjectiveOutcome, objective_met, summarize};
use std::collections::BTreeSet;

/// Designs with factors of proxies, of the load, and of both kinds of loops.
fn designs() -> impl Iterator<Item = Design> {
    let crossed = Design {
        modes: "none, sidecar",
        words: "off, text, json",
        another_factor: true,
        load: "rate: [500, 1000]",
        repeats: 3,
        ..Design::default()
    };
    let connections = Design {
        modes: "none, sidecar, ambient",
        words: "off, text",
        load: "rate: 1000, connections: [2, 4]",
        repeats: 2,
        ..Design::default()
    };
    let upgrade = Upgrade { is_same_program: true, ..Upgrade::default() };
    let versions = Design { upgrade: Some(upgrade), another_factor: false, ..crossed };
    let all = [crossed, connections, versions, disjoint()].into_iter().chain(around_a_gateway());
    with_factors(2).into_iter().chain(with_words(0.2)).chain(all)
}

/// A closed loop with a factor that touches sidecars alone, and one that touches ztunnels alone.
fn disjoint() -> Design {
    Design {
        modes: "none, sidecar, ambient",
        load: "clients: [5, 20]",
        repeats: 3,
        more: ", istio: {sidecar-scope: [off, on], ztunnel: [shared, per-pod]}",
        ..Design::default()
    }
}

/// The direct path, first and last, beside factors that touch a gateway alone.
fn around_a_gateway() -> [Design; 2] {
    let base = Design { modes: "none, ingress", load: "rate: 1000", repeats: 3, ..Design::default() };
    [
        Design {
            more: ", ingress: {scenario: [direct, no-filters]}, gateway: {cpu: [500m, 1]}",
            ..base.clone()
        },
        Design {
            words: "off, text",
            more: ", ingress: {scenario: [no-filters, jwt, direct]}, gateway: {workers: [1, 2]}",
            ..base
        },
    ]
}

#[test]
fn nothing_is_compared_that_a_factor_cannot_touch() {
    for design in designs() {
        for (experiment, summary) in summaries(&design).take(3) {
            let mut comparisons = 0;
            let json = serde_json::to_value(&summary).expect("a summary is JSON");
            check(&experiment, &json, &mut comparisons);
            assert!(comparisons + summary.factor_effects.len() > 0, "{design:?}");
            for effect in &summary.factor_effects {
                assert!(experiment.touches_cells(effect.mode, &effect.factors, &effect.factor), "{effect:?}");
            }
            for FactorDifference { mode, factors, factor, .. } in &summary.factor_differences {
                assert!(
                    experiment.touches_cells(*mode, factors, factor),
                    "{factor} of {mode} at {factors:?}"
                );
            }
            for cell in &summary.cells {
                let touches = |key: &String| experiment.touches_cells(cell.mode, &cell.factors, key);
                assert!(cell.factors.keys().all(touches), "{} at {:?}", cell.mode, cell.factors);
            }
            for StatedFinding { finding, .. } in &summary.findings {
                let json = serde_json::to_value(finding).expect("a finding is JSON");
                if json["kind"] == "factor-effect" || json["kind"] == "factor-difference" {
                    let key = json["subject"].as_str().expect("a factor");
                    assert!(experiment.touches(mode_of(&json, "mode").expect("a mode"), key), "{json}");
                }
            }
        }
    }
}

fn mode_of(json: &Json, field: &str) -> Option<Mode> {
    Mode::ALL.into_iter().find(|mode| json[field] == mode.name())
}

/// Every object with a mode names only factors that can touch it, or the mode that it is compared with.
fn check(experiment: &Experiment, json: &Json, comparisons: &mut usize) {
    if let Some(mode) = mode_of(json, "mode") {
        let other = ["than", "against"].into_iter().find_map(|field| mode_of(json, field));
        *comparisons += usize::from(other.is_some() || json.get("from").is_some());
        // Conditions of a comparison of several modes hold for all of them.
        let is_of_all = ["order", "headline", "cpu-per-request"].iter().any(|kind| json["kind"] == *kind);
        for field in ["factors", "from", "to"] {
            let Some(factors) = json[field].as_object().filter(|_| !is_of_all) else { continue };
            for key in factors.keys() {
                let touches = |mode| experiment.touches(mode, key);
                assert!(touches(mode) || other.is_some_and(touches), "{key} in {json}");
            }
        }
    }
    match json {
        Json::Array(items) => items.iter().for_each(|item| check(experiment, item, comparisons)),
        Json::Object(fields) => fields.values().for_each(|field| check(experiment, field, comparisons)),
        _ => {}
    }
}

#[test]
fn every_combination_is_compared_with_the_one_cell_of_none() {
    for design in designs().filter(|design| design.modes.starts_with("none") && !design.of_load) {
        let (experiment, summary) = summaries(&design).next().expect("a study");
        let of_mode = |mode| summary.cells.iter().filter(move |cell| cell.mode == mode);
        let levels: BTreeSet<String> =
            of_mode(Mode::None).map(|cell| format!("{:?}", cell.conditions())).collect();
        assert_eq!(of_mode(Mode::None).count(), levels.len(), "{design:?}");
        assert!(of_mode(Mode::None).all(|cell| cell.valid == experiment.repeats));
        for cell in summary.cells.iter().filter(|cell| cell.mode != Mode::None) {
            let added = cell.added_us.and_then(|added| added.p50).expect("compared with none");
            let none = of_mode(Mode::None).find(|none| none.conditions().covers(cell.conditions()));
            let none = none.and_then(|none| none.response_time_us?.p50).expect("a median of none");
            let own = cell.response_time_us.and_then(|times| times.p50).expect("a median");
            assert!((own.estimate - none.estimate - added.estimate).abs() < 0.01, "{design:?}");
        }
    }
}

#[test]
fn direct_path_is_compared_with_every_gateway() {
    let expected = [(1 + 1 + 2, 2), (1 + 1 + 2 * 2 * 2, 4 + 4)];
    for (design, (cells, differences)) in around_a_gateway().into_iter().zip(expected) {
        let (_, summary) = summaries(&design).next().expect("a study");
        assert_eq!(summary.cells.len(), cells, "{design:?}");
        let of_scenarios = summary.factor_differences.iter().filter(|one| one.factor == "ingress.scenario");
        let medians: Vec<&FactorDifference> =
            of_scenarios.filter(|one| one.figure == Metric::ResponseTimeP50Us).collect();
        assert_eq!(medians.len(), differences, "{medians:?}");
        for median in medians {
            let ends = [&median.from, &median.to].map(|end| {
                let is_end = |cell: &&Cell| {
                    let mut factors = cell.factors.clone();
                    let is_of_scenario = factors.remove("ingress.scenario").as_ref() == Some(end);
                    is_of_scenario
                        && factors.iter().all(|(key, value)| median.factors.get(key) == Some(value))
                };
                let cell = summary.cells.iter().find(is_end).expect("a cell");
                cell.response_time_us.and_then(|times| times.p50).expect("a median").estimate
            });
            assert!((ends[1] - ends[0] - median.estimate.estimate).abs() < 0.01, "{median:?}");
        }
    }
}

#[test]
fn modes_with_disjoint_factors_share_the_findings_of_a_closed_loop() {
    let (experiment, mut trials) = disjoint().study(1);
    let busy = MachineUsage { window_s: 10.0, cpus: 2, busy_cores: 2.0, ..MachineUsage::default() };
    for trial in trials.iter_mut().filter(|trial| trial.load.clients == Some(20)) {
        trial.machine = Some(busy.clone());
    }
    let summary = summarize(&experiment, 1, trials.len(), &Host::default(), &trials);
    let findings = || summary.findings.iter().map(|stated| &stated.finding);
    let costs = findings().filter_map(|finding| match finding {
        Finding::CpuPerRequest(cost) => Some((cost.place.mode, cost.place.factors.len())),
        _ => None,
    });
    let costs: BTreeSet<(Mode, usize)> = costs.filter(|(mode, _)| *mode != Mode::None).collect();
    assert_eq!(costs, BTreeSet::from([(Mode::Sidecar, 2), (Mode::Ambient, 2)]));
    let full = findings().filter_map(|finding| match finding {
        Finding::FullMachine(full) => Some((full.factors.len(), full.load.clients, full.n)),
        _ => None,
    });
    assert_eq!(
        full.collect::<Vec<_>>(),
        [(2, Some(20), 3 * experiment.repeats); 4],
        "each with all three modes"
    );
}

/// Two factors of the proxies, of which one adds 20 % per value.
fn corners(repeats: usize) -> Design {
    Design {
        effect_of_word: 0.2,
        effect: 0.2,
        words: "off, text, json",
        repeats,
        ..with_factors(2)[4].clone()
    }
}

#[test]
fn far_corner_is_found_and_its_intervals_contain_the_truth_in_93_of_100() {
    for repeats in [2, 3, 5] {
        let design = corners(repeats);
        let (mut covered, mut found) = (Share::default(), Share::default());
        for (study, (experiment, summary)) in summaries(&design).enumerate() {
            let medians =
                summary.corner_differences.iter().filter(|one| one.figure == Metric::ResponseTimeP50Us);
            let medians: Vec<&CornerDifference> = medians.collect();
            let [corner] = medians[..] else { panic!("{medians:?}") };
            let ends = [&corner.from, &corner.to].map(|end| design.word(end).expect("a value").to_string());
            assert_eq!((corner.mode, ends), (Mode::Sidecar, ["off".to_owned(), "json".to_owned()]));
            let place = experiment.modes.iter().position(|mode| *mode == corner.mode).expect("a known mode");
            let [from, to] =
                [&corner.from, &corner.to].map(|end| design.of_word(design.word(end).expect("a value")));
            let truth = design.truth(place, &corner.load)[0] * (to - from);
            covered.add(study as u64, covers(&corner.estimate, truth).expect("an interval"));
            found.add(study as u64, corner.verdict == FindingVerdict::Shown);
            let is_corner =
                |stated: &&StatedFinding| stated.finding.kind() == results::FindingKind::FactorCorner;
            assert!(summary.findings.iter().any(|stated| is_corner(&stated)));
        }
        println!("{repeats} repeats: {:.3} covered, {:.3} found", covered.of(), found.of());
        covered.assert_at_least(0.93, &format!("covered with {repeats} repeats"));
        found
            .assert_at_least(if repeats == 2 { 0.7 } else { 0.95 }, &format!("found with {repeats} repeats"));
    }
}

/// Trials with `none` recorded once per combination of the factors, as some runs have them.
fn recorded_apart(experiment: &Experiment, trials: Vec<TrialRecord>) -> Vec<TrialRecord> {
    let combinations: Vec<Factors> = experiment.each_combination().map(|(factors, _)| factors).collect();
    let apart = |trial: TrialRecord| match trial.mode {
        Mode::None => combinations
            .iter()
            .map(|factors| TrialRecord { factors: factors.clone(), ..trial.clone() })
            .collect(),
        _ => vec![trial],
    };
    let apart = trials.into_iter().flat_map(apart).enumerate();
    apart.map(|(index, trial)| TrialRecord { index, ..trial }).collect()
}

#[test]
fn runs_that_measured_none_per_combination_are_read_as_before() {
    let design = with_factors(2)[4].clone();
    let (experiment, trials) = design.study(1);
    let trials = recorded_apart(&experiment, trials);
    let summary: Summary = summarize(&experiment, 1, trials.len(), &Host::default(), &trials);
    assert_eq!((summary.cells.len(), summary.comparisons.len()), (8, 4));
    assert!(summary.cells.iter().all(|cell| cell.valid == 2 && cell.factors.len() == 2));
    assert!(!matches!(objective_met(&experiment, &summary), ObjectiveOutcome::CutShort { .. }));
    assert!(summary.factor_differences.iter().all(|difference| difference.mode == Mode::Sidecar));
}
