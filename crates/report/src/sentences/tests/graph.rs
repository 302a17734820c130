use super::*;

#[test]
fn drivers_calls_and_services_are_named_only_if_shown() {
    let (_, summary) = run(THREE_MODES, |_| {});
    let said = |kind: FindingKind, verdict: FindingVerdict| {
        let finding = Finding {
            against: Some(Mode::None),
            candidates: Some(5),
            verdict: Some(verdict),
            estimate: Some(Estimate { estimate: 0.5, low: Some(0.4), high: Some(0.6), n: 5 }),
            ..Finding::of_cell(kind, &summary.cells[5]).about("a").with_value(Metric::ResponseTimeP99Us, 2.0)
        };
        let mut alone = summary.clone();
        alone.findings = vec![finding];
        fill(&Experiment::parse(THREE_MODES, "test").unwrap(), &mut alone);
        alone.findings[0].text.clone()
    };
    let texts: Vec<String> =
        [FindingKind::SlowestDriver, FindingKind::GreatestAddedTime, FindingKind::GreatestAddedCpu]
            .into_iter()
            .flat_map(|kind| {
                let verdicts = [FindingVerdict::Shown, FindingVerdict::NotShown, FindingVerdict::CannotTell];
                verdicts.map(|verdict| said(kind, verdict))
            })
            .collect();
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn graph_is_not_described_as_pair() {
    let (experiment, mut summary) = run(THREE_MODES, |_| {});
    summary.cells[5].edges = vec![EdgeSummary::default()];
    fill(&experiment, &mut summary);
    let reported = reported(&summary);
    assert!(reported.contains("a sidecar in every pod adds") && !reported.contains("pair"), "{reported}");
}
