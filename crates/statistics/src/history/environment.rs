//! Environments of finished runs: what two runs must share so that a difference between them speaks of what was measured.

use results::HistoryRun;
use std::collections::BTreeMap;

/// Differences between the environments of two runs, in sentences; empty if they may be compared.
pub(super) fn differences(one: &HistoryRun, other: &HistoryRun) -> Vec<String> {
    let mut all = Vec::new();
    let mut fact = |name: &str, one: &str, other: &str| {
        if one != other {
            all.push(format!("{name}: {one} → {other}"));
        }
    };
    fact("measured by", &one.source, &other.source);
    fact(if one.has_modes() || other.has_modes() { "study" } else { "target" }, &one.name, &other.name);
    all.extend(changed(&one.environment, &other.environment));
    let only = |own: &[String], others: &[String]| -> Vec<String> {
        own.iter().filter(|line| !others.contains(line)).map(|line| format!("`{line}`")).collect()
    };
    let (before, after) = (only(&one.settings, &other.settings), only(&other.settings, &one.settings));
    if one.name == other.name && !(before.is_empty() && after.is_empty()) {
        let list = |lines: &[String]| if lines.is_empty() { "–".to_owned() } else { lines.join(", ") };
        all.push(format!("settings: {} → {}", list(&before), list(&after)));
    }
    all
}

/// True if two runs may be compared without a word.
pub(super) fn is_same(one: &HistoryRun, other: &HistoryRun) -> bool {
    (&one.source, &one.name, &one.environment, &one.settings)
        == (&other.source, &other.name, &other.environment, &other.settings)
}

/// Programs that differ between two runs, in sentences.
pub(super) fn changed_programs(one: &HistoryRun, other: &HistoryRun) -> Vec<String> {
    changed(&one.programs, &other.programs)
}

fn changed(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
    let value = |facts: &BTreeMap<String, String>, name: &str| {
        facts.get(name).cloned().unwrap_or_else(|| "unknown".to_owned())
    };
    names
        .filter(|name| one.get(*name) != other.get(*name))
        .map(|name| format!("{name}: {} → {}", value(one, name), value(other, name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(facts: &[(&str, &str)], settings: &[&str]) -> HistoryRun {
        let owned = |text: &&str| (*text).to_owned();
        HistoryRun {
            source: "run".to_owned(),
            name: "sidecar-cost".to_owned(),
            environment: facts.iter().map(|(name, value)| (owned(name), owned(value))).collect(),
            settings: settings.iter().map(owned).collect(),
            ..HistoryRun::default()
        }
    }

    #[test]
    fn differences_name_facts_and_settings() {
        let one = run(&[("kernel", "6.1"), ("CPUs", "4")], &["workers: 1", "rate: 1000"]);
        let other =
            run(&[("kernel", "6.8"), ("CPUs", "4"), ("clock source", "tsc")], &["workers: 2", "rate: 1000"]);
        assert_eq!(
            differences(&one, &other),
            ["kernel: 6.1 → 6.8", "clock source: unknown → tsc", "settings: `workers: 1` → `workers: 2`"]
        );
        assert!(!is_same(&one, &other) && is_same(&one, &one) && differences(&one, &one).is_empty());
        let load = HistoryRun { source: "fortio".to_owned(), name: "http://a/".to_owned(), ..run(&[], &[]) };
        let said = differences(&one, &load);
        assert_eq!(said[..2], ["measured by: run → fortio", "study: sidecar-cost → http://a/"]);
        let said = differences(&load, &one);
        assert_eq!(said[..2], ["measured by: fortio → run", "study: http://a/ → sidecar-cost"], "mirrored");
    }
}
