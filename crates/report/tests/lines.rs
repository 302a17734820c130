//! Lines of findings are short, whatever the run and however long its names.

mod fixture;

use fixture::designs::DESIGNS;
use report::RunData;
use report::sentences::MAX_LINE;
use results::{BACKGROUND_SERVICES, Finding, StatedFinding, TrialRecord};
use serde_json::Value as Json;
use std::collections::{BTreeSet, HashSet};

/// Longest name that Kubernetes allows for a service.
const LONGEST_NAME: usize = 63;

/// Runs of every kind that the fixtures simulate.
fn runs() -> Vec<(&'static str, Vec<TrialRecord>)> {
    let access_log: &[&str] = &["off", "text", "json"];
    vec![
        ("usual", fixture::usual_trials()),
        ("reruns", fixture::retaken_trials()),
        ("closed loops", fixture::closed_trials()),
        ("gateway", fixture::gateway_trials()),
        ("sizes", fixture::sized_trials()),
        ("tenants", fixture::tenant_trials(5)),
        ("one graph", fixture::tiered::tiered_trials(1)),
        ("graphs", fixture::tiered::tiered_trials(3)),
        ("word factor", fixture::factor_trials(&[("proxy.access-log", access_log)])),
        ("number factor", fixture::factor_trials(&[("proxy.cpu", &["250m", "1"])])),
        (
            "two factors",
            fixture::factor_trials(&[("proxy.cpu", &["250m", "1"]), ("load.connections", &["2", "16"])]),
        ),
        ("mesh sizes", fixture::factor_trials(&[(BACKGROUND_SERVICES, &["0", "200"])])),
        ("many cells", fixture::many_trials()),
        ("nothing valid", fixture::invalid_trials()),
        ("stalled", fixture::stalled_trials()),
        ("saturated", fixture::saturated_trials()),
    ]
}

/// Names of services, components and drivers of the trials, without their namespaces.
fn names(trials: &[TrialRecord]) -> BTreeSet<String> {
    let components = trials.iter().flat_map(|trial| &trial.components).map(|component| &component.name);
    let services = trials.iter().flat_map(|trial| &trial.services).map(|service| &service.name);
    let drivers = trials.iter().flat_map(|trial| &trial.drivers).map(|driver| &driver.name);
    let qualified = components.chain(services).chain(drivers);
    qualified.map(|name| name.rsplit('/').next().unwrap_or_default().to_owned()).collect()
}

fn long(name: &str) -> String {
    let padding = "service-with-a-name-as-long-as-kubernetes-lets-it-be-and-no-longer-";
    format!("{}{name}", &padding[..LONGEST_NAME - name.len()])
}

/// The trials with each of these names as long as a name can be.
fn with_long_names(trials: &[TrialRecord]) -> Vec<TrialRecord> {
    fn rename(json: &mut Json, names: &BTreeSet<String>) {
        let renamed = |text: &str| {
            let (namespace, name) =
                text.rsplit_once('/').map_or(("", text), |(of, _)| text.split_at(of.len() + 1));
            names.contains(name).then(|| format!("{namespace}{}", long(name)))
        };
        match json {
            Json::String(text) => {
                if let Some(new) = renamed(text) {
                    *text = new;
                }
            }
            Json::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
            Json::Object(map) => {
                let fields = std::mem::take(map).into_iter().map(|(key, mut value)| {
                    // Modes and roles have names of components, too.
                    if !["mode", "role"].contains(&key.as_str()) {
                        rename(&mut value, names);
                    }
                    (key, value)
                });
                *map = fields.collect();
            }
            _ => {}
        }
    }
    let names = names(trials);
    let renamed = trials.iter().map(|trial| {
        let mut json = serde_json::to_value(trial).expect("trials are JSON");
        rename(&mut json, &names);
        serde_json::from_value(json).expect("a trial")
    });
    renamed.collect()
}

/// A line that is cut leaves out what it is about.
fn check_uncut(name: &str, run: &RunData) {
    let texts = run.summary.findings.iter().map(|stated| stated.text.as_str());
    let cut: BTreeSet<&str> = texts.filter(|text| text.ends_with('…')).collect();
    assert!(cut.is_empty(), "{name}: {cut:#?}");
}

fn check(name: &str, run: &RunData, kinds: &mut HashSet<results::FindingKind>) {
    for StatedFinding { finding, text, detail } in &run.summary.findings {
        assert!(text.chars().count() <= MAX_LINE, "{name}: {} characters: {text}", text.chars().count());
        assert!(!text.is_empty() && text.ends_with(['.', '…']), "{name}: {finding:?}: {text:?}");
        assert!(detail.is_empty() || detail.ends_with('.'), "{name}: {text} | {detail}");
        assert!(!detail.contains(text.as_str()) || text.contains('…'), "{name}: twice: {text}");
        kinds.insert(finding.kind());
    }
}

/// The answer of a run is in the line of its headline: with the estimate of its first finding, which has an interval where there
/// is one, and its verdict.
fn check_headline(name: &str, run: &RunData) {
    let StatedFinding { finding, text, .. } = &run.summary.findings[0];
    let json = serde_json::to_value(finding).expect("a finding is JSON");
    if json["verdict"] == "cannot-tell" && json.get("estimate").is_none() {
        return assert!(text.ends_with('.'), "{name}: {text}");
    }
    let interval = |text: &str| text.contains('(') && (text.contains('–') || text.contains(" to "));
    let has_interval = json["estimate"]["low"].is_number();
    assert!(!text.ends_with('…'), "{name}: {text}");
    // Of versions, every figure is compared.
    let is_of_many = text.contains(": no difference is shown, of ");
    assert!(is_of_many || !has_interval || interval(text), "{name}: {text}");
    assert!(is_of_many || json["verdict"] != "not-shown" || text.contains("not shown"), "{name}: {text}");
}

#[test]
fn line_of_the_headline_has_the_answer() {
    for design in DESIGNS {
        for seed in 0..3 {
            let run = design.run(seed);
            check_headline(design.text, &run);
            check_uncut(design.text, &run);
        }
    }
    for (name, trials) in runs() {
        // Differences that chance may explain, of services with long names.
        let noisy = trials.iter().map(|trial| {
            let mut trial = trial.clone();
            let times = trial.result.iter_mut().map(|result| &mut result.response_time_us);
            times.for_each(|times| times.p99 = times.p99.map(|us| us * [1.0, 3.0, 0.4][trial.repeat % 3]));
            trial
        });
        let noisy: Vec<TrialRecord> = noisy.collect();
        for trials in [trials.clone(), with_long_names(&trials), noisy.clone(), with_long_names(&noisy)] {
            check_headline(name, &fixture::run(trials));
        }
    }
}

#[test]
fn lines_of_findings_are_short() {
    let mut kinds = HashSet::new();
    for (name, trials) in runs() {
        let run = fixture::run(trials);
        check(name, &run, &mut kinds);
        check_uncut(name, &run);
    }
    check("fleets", &fixture::fleets::fleet_run("proxies", &["100", "2000"]), &mut kinds);
    assert!(kinds.len() > 20, "{kinds:?}");
}

#[test]
fn long_names_are_whole_in_the_detail() {
    let mut cut = 0;
    for (name, trials) in runs() {
        let run = fixture::run(with_long_names(&trials));
        check(name, &run, &mut HashSet::new());
        for stated in &run.summary.findings {
            let subject = match &stated.finding {
                Finding::SlowestDriver(one) => &one.content.subject,
                Finding::GreatestAddedTime(one) => &one.content.greatest.subject,
                _ => continue,
            };
            assert!(subject.contains("service-with-a-name"), "{subject}");
            let is_whole = stated.text.contains(subject.as_str()) || stated.detail.contains(subject.as_str());
            assert!(is_whole, "{name}: {} | {}", stated.text, stated.detail);
            cut += usize::from(stated.text.contains('…'));
        }
    }
    assert!(cut > 3, "{cut} names are cut");
}
