//! JSON of findings, as written before they were an enum.

use super::*;
use serde_json::Value as Json;

/// A finding of each kind and form.
const FINDINGS: &str = include_str!("findings.jsonl");

fn read(json: &Json) -> StatedFinding {
    serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{error}: {json}"))
}

#[test]
fn json_of_every_form_is_kept() {
    let mut kinds = std::collections::BTreeSet::new();
    for line in FINDINGS.lines() {
        let json: Json = serde_json::from_str(line).unwrap();
        let finding = read(&json);
        assert_ne!(finding.finding, Finding::Text, "{line}");
        assert_eq!(serde_json::to_value(&finding).unwrap(), json);
        kinds.insert(json["kind"].as_str().unwrap().to_owned());
    }
    assert_eq!(kinds.len(), 38, "{kinds:?}");
}

#[test]
fn forms_of_headline_are_told_apart() {
    let lines = FINDINGS.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    for json in lines.filter(|json| json["kind"] == "headline") {
        let Finding::Headline(headline) = read(&json).finding else { panic!("{json}") };
        let has = |field: &str| json.get(field).is_some();
        let is_right = match headline {
            Headline::Values(_) => has("from") && has("subject"),
            Headline::Corner(_) => has("from") && !has("subject"),
            Headline::Fleet(_) => has("candidates"),
            Headline::Added(_) => has("against") && has("value"),
            Headline::Loss(_) => has("against") && !has("value"),
            Headline::Effect(_) => has("subject") && has("verdict"),
            Headline::Capacity(_) => has("per_core"),
            Headline::Proxies(_) => json["subject"] == "proxies",
            Headline::Call(_) => has("subject") && !has("estimate"),
            Headline::Measured(_) => has("estimate") && has("load"),
            Headline::Cpu(_) => json["figure"] == "cpu_cores" && !has("estimate"),
            Headline::Unanswered(_) => has("figure") && !has("value"),
            Headline::Nothing(_) => !has("mode"),
        };
        assert!(is_right, "{headline:?}: {json}");
    }
}

#[test]
fn findings_of_later_versions_are_read() {
    let json = r#"{"kind": "of-a-later-version", "text": "T."}"#;
    let finding: StatedFinding = serde_json::from_str(json).unwrap();
    assert_eq!((finding.finding.kind(), finding.text.as_str()), (FindingKind::Text, "T."));
}
