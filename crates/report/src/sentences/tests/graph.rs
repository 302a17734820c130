use super::*;
use results::finding::{Greatest, GreatestAdded, OfCell, Value};

#[test]
fn drivers_calls_and_services_are_named_only_if_shown() {
    let (_, summary) = run(THREE_MODES, |_| {});
    let said = |finding: fn(OfCell<Greatest>) -> Finding, verdict: FindingVerdict| {
        let greatest = Greatest {
            subject: "a".to_owned(),
            candidates: 5,
            value: Value { figure: Metric::ResponseTimeP99Us, value: 2.0 },
            difference: Estimate { estimate: 0.5, low: Some(0.4), high: Some(0.6), n: 5, alone: None },
            verdict,
        };
        let mut alone = summary.clone();
        alone.findings = vec![finding(OfCell::new(&summary.cells[5], greatest)).into()];
        fill(&Experiment::parse(THREE_MODES, "test").unwrap(), &mut alone);
        sentences(&alone).join("\n")
    };
    fn added(OfCell { place, trials, content: greatest }: OfCell<Greatest>) -> OfCell<GreatestAdded> {
        OfCell { place, trials, content: GreatestAdded { greatest, against: Mode::None } }
    }
    let findings: [fn(OfCell<Greatest>) -> Finding; 3] = [
        Finding::SlowestDriver,
        |greatest| Finding::GreatestAddedTime(added(greatest)),
        |greatest| Finding::GreatestAddedCpu(added(greatest)),
    ];
    let verdicts = [FindingVerdict::Shown, FindingVerdict::NotShown, FindingVerdict::CannotTell];
    let of_verdicts = |finding| verdicts.map(|verdict| said(finding, verdict));
    let texts: Vec<String> = findings.into_iter().flat_map(of_verdicts).collect();
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

#[test]
fn pods_outside_the_mesh_have_no_sidecar_and_no_mtls() {
    let said = |client_in_mesh: &str| {
        let text = format!(
            "{{name: t, modes: [none, sidecar], topology: {{shape: tiered, client-in-mesh: {client_in_mesh}}}, \
             load: {{rate: [500, 1000], duration: 2500ms}}, repeats: 5}}"
        );
        let (experiment, mut summary) = run(&text, |_| {});
        summary.cells[3].edges = vec![EdgeSummary::default()];
        fill(&experiment, &mut summary);
        reported(&summary)
    };
    let (inside, outside) = (said("true"), said("false"));
    assert!(inside.contains("a sidecar in every pod adds"), "{inside}");
    assert!(inside.contains("Path of sidecar: every proxy carried its requests over mTLS."), "{inside}");
    assert!(outside.contains("a sidecar in every pod of the mesh adds"), "{outside}");
    let path = "Path of sidecar: every proxy carried its requests, over mTLS between pods of the mesh.";
    assert!(outside.contains(path), "{outside}");
}
