use super::*;

#[test]
fn opening_has_headline_and_four_findings() {
    let (_, summary) = run(THREE_MODES, |trial| {
        if trial.mode == Mode::Sidecar && trial.load.rate == Some(500.0) && trial.repeat < 2 {
            invalidate(trial, "saturated: 212 of 500 requests/s were answered", true);
        }
    });
    let (headline, beside) = opening(&summary);
    assert_eq!(headline, summary.findings.first());
    assert_eq!(beside.len(), 4);
    assert!(beside.iter().any(|one| one.text.contains("is saturated in 2 of 5 trials")), "{beside:?}");
    let others = others(&summary);
    assert!(others.iter().all(|one| !beside.contains(one) && Some(*one) != headline));
    assert_eq!(1 + beside.len() + others.len(), sentences(&summary).len());
}
