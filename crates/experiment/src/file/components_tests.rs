//! Tests of the section `components`.

use super::{Files, NoFiles, Override};
use crate::definition::Experiment;
use crate::plan::Plan;
use crate::settings::components::ComponentsSettings;
use results::FactorValue;
use std::path::PathBuf;

const STUDY: &str = "name: s\nmesh: istio\nmodes: [sidecar, ambient]\nload: {rate: 1000}\n";

/// Directory with programs whose names start with `proxy`.
struct Folder;

impl Files for Folder {
    fn text(&self, path: &str) -> Result<String, String> {
        Err(format!("{path} is not there"))
    }

    fn locate(&self, path: &str) -> Result<PathBuf, String> {
        let name = path.strip_prefix("/study/").unwrap_or(path);
        if name.starts_with("proxy") {
            Ok(format!("/study/{name}").into())
        } else {
            Err(format!("{path} is not there"))
        }
    }
}

fn read(text: &str) -> Experiment {
    Experiment::parse_with(text, "experiment.yaml", &[], &Folder)
        .unwrap_or_else(|error| panic!("{}", error.render(false)))
}

fn refused(components: &str) -> String {
    refused_study(&format!("{STUDY}components: {components}\n"))
}

fn refused_study(text: &str) -> String {
    Experiment::parse_with(text, "experiment.yaml", &[], &Folder).unwrap_err().render(false)
}

#[test]
fn components_are_read_and_written_as_resolved() {
    let components = "components: {istio: 1.30.1, envoy: proxy-a, ztunnel: proxy-z, istiod: /study/proxy-i, pilot-agent: proxy-p}\n";
    let study = read(&format!("{STUDY}{components}"));
    assert_eq!(study.components.istio.as_deref(), Some("1.30.1"));
    let programs: Vec<String> =
        study.components.programs().map(|(key, path)| format!("{key} {}", path.display())).collect();
    let expected = [
        "envoy /study/proxy-a",
        "ztunnel /study/proxy-z",
        "istiod /study/proxy-i",
        "pilot-agent /study/proxy-p",
    ];
    assert_eq!(programs, expected);
    let written = study.to_yaml();
    assert!(written.contains("components:\n  istio: \"1.30.1\"\n  envoy: /study/proxy-a\n"), "{written}");
    assert_eq!(Experiment::parse(&written, "again").unwrap(), study);
    assert!(!read(STUDY).to_yaml().contains("components"));
}

#[test]
fn lists_are_factors_whose_values_are_text() {
    let text = format!("{STUDY}components: {{istio: [pinned, 1.30.1], envoy: [proxy-a, /study/proxy-b]}}\n");
    let study = read(&text);
    let values = |key: &str| study.factor(key).unwrap().values.clone();
    let texts = |texts: [&str; 2]| texts.map(|text| FactorValue::Text(text.into())).to_vec();
    assert_eq!(values("components.istio"), texts(["pinned", "1.30.1"]));
    assert_eq!(values("components.envoy"), texts(["/study/proxy-a", "/study/proxy-b"]));
    let last = &study.combinations[3];
    assert_eq!(last.experiment.components.envoy.as_deref(), Some("/study/proxy-b".as_ref()));
    assert_eq!(last.factors["components.envoy"], FactorValue::Text("/study/proxy-b".into()));
    assert_eq!(Experiment::parse(&study.to_yaml(), "again").unwrap(), study);
}

#[test]
fn versions_are_set_by_the_command_line() {
    let set = |assignment: &str| {
        Experiment::parse_with(STUDY, "experiment.yaml", &[Override::set(assignment)], &NoFiles)
    };
    let study = set("components.istio=[1.29.4,1.30.1]").unwrap();
    assert_eq!(study.factor("components.istio").unwrap().values.len(), 2);
    assert_eq!(set("components.istio=1.30.1").unwrap().components.istio.as_deref(), Some("1.30.1"));
    assert_eq!(set("components.istio=null").unwrap().components, ComponentsSettings::default());
}

#[test]
fn invalid_versions_are_rejected_with_hint() {
    insta::assert_snapshot!(refused("{istio: 1.30}"));
    insta::assert_snapshot!(refused("{istio: v1.30.1}"));
    for (version, words) in [
        ("''", "is not a version"),
        ("latest", "is not a version"),
        ("../1", "is not a version"),
        ("\"1.30.1\\e[2J\"", "is not a version"),
        ("2", "is not a whole version"),
        ("1.30.1.2", "is not a whole version"),
        ("[1.30.1, 1.30.1]", "has the same value twice"),
        ("[]", "is empty"),
        ("{a: b}", "is not a single value"),
        ("", "has no value"),
    ] {
        let error = refused(&format!("{{istio: {version}}}"));
        assert!(error.contains(words) && !error.contains('\x1b'), "{version}: {error}");
    }
    for version in ["1.30.1", "1.30.1-distroless", "1.31.0-rc.0", "1.30-alpha.0f2c", "pinned"] {
        read(&format!("{STUDY}components: {{istio: {version}}}\n"));
    }
}

#[test]
fn missing_programs_are_rejected_at_their_place() {
    insta::assert_snapshot!(refused("{envoy: [proxy-a, absent]}"));
    for (path, words) in [
        ("''", "the path is empty"),
        ("\"proxy\\u0007\"", "control character"),
        ("[proxy-a, /study/proxy-a]", "has the same value twice"),
    ] {
        let error = refused(&format!("{{envoy: {path}}}"));
        assert!(error.contains(words), "{path}: {error}");
    }
    assert!(refused("{proxy: proxy-a}").contains("is not a key of `components`"));
}

#[test]
fn unused_components_are_rejected() {
    let sidecar = "name: s\nmesh: istio\nmodes: sidecar\nload: {rate: 1000}\n";
    let ambient = "name: s\nmesh: istio\nmodes: ambient\nload: {rate: 1000}\n";
    let envoy = "name: s\nmodes: sidecar\nload: {rate: 1000}\n";
    let fleet = "name: s\nmesh: istio\nmodes: control-plane\nfleet: {}\n";
    for (study, components) in [
        (sidecar, "ztunnel: proxy-z"),
        (ambient, "envoy: proxy-a"),
        (ambient, "pilot-agent: proxy-a"),
        (envoy, "istio: 1.30.1"),
        (envoy, "istiod: proxy-i"),
        (fleet, "envoy: proxy-a"),
        (fleet, "ztunnel: proxy-a"),
    ] {
        let error = refused_study(&format!("{study}components: {{{components}}}\n"));
        assert!(error.contains("has no effect here"), "{components}: {error}");
    }
    read(&format!("{envoy}components: {{envoy: proxy-a}}\n"));
    read(&format!("{fleet}components: {{istio: [1.29.4, 1.30.1]}}\n"));
    let witnessed = fleet.replace("fleet: {}", "fleet: {witnesses: 1}");
    read(&format!("{witnessed}components: {{envoy: proxy-a}}\n"));
}

#[test]
fn versions_of_the_control_plane_vary_slowest_within_each_repeat() {
    let text = format!(
        "{STUDY}repeats: 40\ncomponents: {{istio: [1.29.4, 1.30.1], envoy: [proxy-a, proxy-b]}}\n\
                        istio: {{background-services: {{services: [0, 10]}}}}\n"
    );
    let plan = Plan::new(&read(&text), 7);
    let mut first = std::collections::BTreeMap::new();
    for repeat in plan.repeats() {
        let versions: Vec<&str> =
            repeat.iter().map(|trial| trial.spec.components.istio.as_deref().unwrap()).collect();
        assert_eq!(versions.windows(2).filter(|pair| pair[0] != pair[1]).count(), 1, "{versions:?}");
        *first.entry(versions[0].to_owned()).or_insert(0) += 1;
        let proxies =
            repeat.windows(2).filter(|pair| pair[0].spec.components.envoy != pair[1].spec.components.envoy);
        assert!(proxies.count() > 2, "data planes change from trial to trial");
    }
    assert!(first.len() == 2 && first.values().all(|times| *times > 8), "{first:?}");
}
