use super::*;
use results::finding::Headline;

#[test]
fn usual_run_states_answer_first() {
    let (experiment, summary) = run(THREE_MODES, |_| {});
    insta::assert_snapshot!(reported(&summary));
    assert!(objective_met(&experiment, &summary).is_good());
    let order: Vec<_> = summary.cells.iter().map(|cell| (cell.load.rate.unwrap(), cell.mode)).collect();
    assert_eq!(order[0], (500.0, Mode::None));
    assert_eq!(order[5], (1000.0, Mode::Sidecar));
    let json = serde_json::to_string(&summary).unwrap();
    let again = serde_json::from_str::<Summary>(&json).unwrap().findings;
    let reported = |findings: &[StatedFinding]| -> Vec<_> {
        let verdict = |stated| serde_json::to_value(stated).unwrap()["verdict"].clone();
        findings.iter().map(|stated| (stated.finding.kind(), verdict(stated), stated.text.clone())).collect()
    };
    assert_eq!(reported(&again), reported(&summary.findings));
    insta::assert_snapshot!(serde_json::to_string_pretty(&summary.published).unwrap());
}

#[test]
fn estimates_match_trials() {
    let (_, summary) = run(THREE_MODES, |_| {});
    let cell = &summary.cells[5];
    let p50 = cell.response_time_us.unwrap().p50.unwrap();
    assert!((p50.estimate - 440.0).abs() < 5.0, "{p50:?}");
    assert!(p50.low.unwrap() < 440.0 && p50.high.unwrap() > 440.0);
    let added = cell.added_us.unwrap().p50.unwrap();
    assert!((added.estimate - 378.0).abs() < 5.0, "{added:?}");
    let proxy = cell.components.iter().find(|component| component.name == "client-proxy").unwrap();
    assert!((proxy.cpu_cores.estimate - 0.21).abs() < 0.01, "{proxy:?}");
    assert!((proxy.cpu_cores_per_1000_rps.estimate - proxy.cpu_cores.estimate).abs() < 1e-9);
    assert_eq!(proxy.estimate(Metric::MemoryBytes).unwrap().estimate, 41_200_000.0);
    assert_eq!(proxy.estimate(Metric::NetworkBytesReceivedS).unwrap().estimate, 1_200_000.0);
    assert_eq!(cell.path.mtls, Some(true));
    let with_gateway = &summary.cells[4];
    assert_eq!(with_gateway.path.mtls, None, "a gateway claims no mutual TLS");
    let gateway = with_gateway.components.iter().find(|component| component.name == "gateway").unwrap();
    let total = with_gateway.totals.iter().find(|total| total.role == Role::Proxy).unwrap();
    let cpu = (gateway.cpu_cores, gateway.cpu_cores_per_1000_rps);
    assert_eq!(cpu, (total.cpu_cores, total.cpu_cores_per_1000_rps), "it is all proxies");
}

#[test]
fn missing_difference_is_stated() {
    let (_, summary) = run(THREE_MODES, |trial| {
        let us = 60.0 + ((trial.index * 7) % 11) as f64;
        trial.result.as_mut().unwrap().response_time_us = histogram(2500, us, None).summary();
    });
    assert!(summary.findings[0].text.contains(", not shown"), "{}", summary.findings[0].text);
    assert!(!reported(&summary).contains("adds"), "{}", reported(&summary));
}

/// The interval that decides stands beside it, and the sentence says why it is wide.
#[test]
fn difference_that_is_not_shown_among_all_says_why() {
    let (experiment, mut summary) = run(THREE_MODES, |_| {});
    summary.tests = 12;
    for stated in &mut summary.findings {
        let added = match &mut stated.finding {
            Finding::Headline(Headline::Added(added)) | Finding::AddedLatency(added) => {
                &mut added.content.added
            }
            _ => continue,
        };
        added.verdict = FindingVerdict::NotShown;
        let Estimate { low, high, .. } = added.difference;
        added.difference = Estimate {
            low: Some(-9.0),
            alone: low.zip(high).map(|(low, high)| [low, high]),
            ..added.difference
        };
    }
    fill(&experiment, &mut summary);
    let reported = reported(&summary);
    let expected = "Not shown: with 12 comparisons in this run, chance is not excluded.";
    assert!(reported.contains(", not shown") && reported.contains(expected), "{reported}");
}

#[test]
fn differences_are_paired_by_repeat_or_unpaired_without_common_repeats() {
    // A machine that slows down by half from repeat to repeat: differences within a repeat still agree.
    let slowing = |trial: &mut TrialRecord| {
        let slow = 1.5_f64.powi(i32::try_from(trial.repeat).unwrap());
        let us = if trial.mode == Mode::None { 100.0 * slow } else { 100.0 * slow + 50.0 };
        trial.result.as_mut().unwrap().response_time_us = histogram(2500, us, None).summary();
    };
    let (_, paired) = run(THREE_MODES, slowing);
    let added = paired.cells[5].added_us.unwrap().p50.unwrap();
    assert!(added.excludes_zero() && (added.estimate - 50.0).abs() < 2.0, "{added:?}");

    // Mode none is valid in the first repeats only, the sidecar in the others.
    let (_, unpaired) = run(THREE_MODES, |trial| {
        if (trial.mode == Mode::None) == (trial.repeat >= 2) {
            invalidate(trial, "steal: 0.3 cores", false);
        }
    });
    let added = unpaired.cells[5].added_us.unwrap().p50.unwrap();
    assert!((added.estimate - 378.0).abs() < 20.0 && added.low.is_some(), "{added:?}");
    assert_eq!(unpaired.cells[3].verdict, "steal");
}

#[test]
fn order_is_stated_only_if_intervals_show_it() {
    let text = "{name: t, mesh: istio, modes: [none, sidecar, ambient, ambient-waypoint], \
                load: {rate: [500, 1000], duration: 2500ms}, repeats: 3}";
    let (_, summary) = run(text, |trial| {
        let noise = [0.0, 10.0, -8.0][trial.repeat];
        let median_us = match (trial.mode, trial.load.rate) {
            (Mode::None, _) => 60.0,
            // At the lower rate it cannot be distinguished from no mesh.
            (Mode::Ambient, Some(500.0)) => 62.0 + noise,
            (Mode::Ambient, _) => 110.0 + noise,
            (Mode::Sidecar, _) => 480.0 + noise,
            _ => 475.0 - noise,
        };
        trial.result.as_mut().unwrap().response_time_us = histogram(2000, median_us, None).summary();
    });
    let order =
        sentences(&summary).into_iter().find(|finding| finding.starts_with("Median at 1000/s:")).unwrap();
    insta::assert_snapshot!(order);
}

#[test]
fn planned_cells_match_summary_cells() {
    let (experiment, summary) = run(THREE_MODES, |_| {});
    let planned = experiment::plan::cells(&experiment);
    assert_eq!(planned.len(), summary.cells.len());
    for one in planned {
        assert_eq!(summary.cells.iter().filter(|cell| cell.key() == one.key()).count(), 1);
    }
}
