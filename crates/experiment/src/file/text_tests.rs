//! Tests of inline texts: objects and scripts.

use super::{Files, NoFiles};
use crate::definition::Experiment;
use crate::diagnostic::ExperimentError;
use proptest::prelude::*;
use std::path::PathBuf;

/// Every file has the same text.
struct OneText<'a>(&'a str);

impl Files for OneText<'_> {
    fn text(&self, _path: &str) -> Result<String, String> {
        Ok(self.0.to_owned())
    }

    fn locate(&self, path: &str) -> Result<PathBuf, String> {
        Ok(path.into())
    }
}

fn with_istio(istio: &str, files: &dyn Files) -> Result<Experiment, Box<ExperimentError>> {
    let text = format!("name: a\nmesh: istio\nmodes: [sidecar]\nload: {{rate: 100}}\nistio: {{{istio}}}\n");
    Experiment::parse_with(&text, "text", &[], files)
}

fn with_extra(objects: &str) -> Result<Experiment, Box<ExperimentError>> {
    with_istio("extra: a.yaml", &OneText(objects))
}

/// Quotes text as YAML. JSON is YAML, except for characters that only JSON leaves unescaped.
fn quoted(text: &str) -> String {
    let json = serde_json::to_string(text).expect("text can be written");
    let escape = |c: char| match c {
        '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
            format!("\\u{:04x}", c as u32)
        }
        c => c.to_string(),
    };
    json.chars().map(escape).collect()
}

#[test]
fn object_names_are_single_path_segments() {
    let object = |api_version: &str, kind: &str, metadata: &str| {
        let text = format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {metadata}\n");
        with_extra(&text).map(drop).map_err(|error| error.message)
    };
    assert_eq!(object("v1", "ConfigMap", "{name: a}"), Ok(()));
    assert_eq!(object("a.example/v1beta1", "Thing", "{name: 'system:a.b-c', namespace: x}"), Ok(()));
    for (api_version, kind, metadata) in [
        ("v1", "ConfigMap", "{name: ..}"),
        ("v1", "ConfigMap", "{name: ../../nodes/a}"),
        ("v1", "ConfigMap", "{name: 'a?dryRun=All'}"),
        ("v1", "ConfigMap", "{name: 'a#b'}"),
        ("v1", "ConfigMap", "{name: 'a%2fb'}"),
        ("v1", "ConfigMap", "{name: 'é'}"),
        ("v1", "ConfigMap", "{name: \"a\\n\"}"),
        ("v1", "ConfigMap", "{name: 5}"),
        ("v1", "ConfigMap", "{name: [a]}"),
        ("v1", "ConfigMap", "{name: ''}"),
        ("v1", "ConfigMap", "{generateName: a}"),
        ("v1", "ConfigMap", "{name: a, namespace: 5}"),
        ("v1", "ConfigMap", "{name: a, namespace: ''}"),
        ("v1", "ConfigMap", "{name: a, namespace: x/y}"),
        ("v1", "ConfigMap", "5"),
        ("v1", "Config/Map", "{name: a}"),
        ("v1", "''", "{name: a}"),
        ("a/b/v1", "Thing", "{name: a}"),
        ("/v1", "Thing", "{name: a}"),
        ("../v1", "Thing", "{name: a}"),
        ("1", "Thing", "{name: a}"),
    ] {
        let message = object(api_version, kind, metadata).expect_err(metadata);
        assert!(message.starts_with("document 1"), "{api_version} {kind} {metadata}: {message}");
    }
    for (kind, metadata, reason) in [
        ("ConfigMap", "{name: off}", "document 1: `metadata.name` is not valid: false"),
        ("ConfigMap", "{generateName: a}", "document 1 has no `metadata.name`"),
        ("List", "{}", "document 1 is a List: its objects have to be documents themselves"),
    ] {
        assert_eq!(object("v1", kind, metadata).unwrap_err(), reason);
    }
    let long = "a".repeat(254);
    assert!(object("v1", "ConfigMap", &format!("{{name: {long}}}")).is_err());
}

#[test]
fn duplicate_objects_are_rejected() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let error = with_extra(&format!("{map}---\n{map}")).unwrap_err();
    assert_eq!(error.message, "document 2 is the same object as document 1");
    assert!(with_extra(&format!("{map}---\n{}", map.replace("name: a", "name: a, namespace: b"))).is_ok());
}

#[test]
fn written_file_is_within_size_limit() {
    let of_size = |bytes: usize| {
        let text = "x".repeat(bytes);
        with_extra(&format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{a: {text}}}\n"))
    };
    let experiment = of_size(1_000_000).unwrap();
    assert_eq!(Experiment::parse(&experiment.to_yaml(), "again").unwrap(), experiment);
    let error = of_size((1 << 20) - 200).unwrap_err();
    assert!(error.message.starts_with("the file with every default and text is too large"), "{error}");
}

#[test]
fn script_size_is_limited_by_api() {
    let of_size = |bytes: usize| {
        let script = format!("function envoy_on_request(handle) end\n{}", "-".repeat(bytes - 39));
        with_istio(&format!("lua: {}", quoted(&script)), &NoFiles)
    };
    assert!(of_size(1 << 16).is_ok());
    let error = of_size((1 << 16) + 1).unwrap_err();
    assert_eq!(
        (&*error.message, &*error.label),
        ("`istio.lua` is too large: 65537 bytes", "expected at most 64 KiB")
    );
}

/// Modes that cannot run are removed from an experiment after it was read.
#[test]
fn experiment_without_unavailable_modes_reads_back() {
    let text = "name: a\nmesh: istio\nload: {rate: 100}\nmodes: [none, ambient, ingress, sidecar]\nistio: {ztunnel: per-pod, sidecar-scope: on, ingress: {tls: off}}\n";
    let whole = Experiment::parse(text, "text").unwrap();
    for left in 1..16 {
        let mut experiment = whole.clone();
        let mut number = 0;
        experiment.modes.retain(|_| {
            number += 1;
            left & (1 << (number - 1)) != 0
        });
        let again = Experiment::parse(&experiment.to_yaml(), "again");
        let again = again.unwrap_or_else(|error| panic!("{}", error.render(false)));
        assert_eq!(again.modes, experiment.modes);
    }
}

#[test]
fn hostile_objects_end_quickly() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let deep = "[".repeat(100_000);
    let many = "---\na: 1\n".repeat(100_000);
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let twice = format!("{head}kind: Secret\n");
    for text in [&bomb, &deep, &many, &twice] {
        let error = with_extra(text).unwrap_err();
        assert!(error.render(true).len() < 4_000, "{}", error.render(true).len());
    }
}

proptest! {
    #[test]
    fn every_accepted_object_reads_back(
        value in "(?s).{0,60}",
        comment in "[^\\r\\n]{0,40}",
        end in "[ \\t\\n\\r]{0,6}",
    ) {
        let value = quoted(&value);
        let objects =
            format!("apiVersion: v1\nkind: A\nmetadata: {{name: a}}\ndata: {value}\n# {comment}{end}");
        if let Ok(experiment) = with_extra(&objects) {
            let again = Experiment::parse(&experiment.to_yaml(), "again");
            prop_assert_eq!(again.map_err(|error| error.render(false)), Ok(experiment));
        }
    }

    #[test]
    fn every_script_reads_back(script in "(?s).{0,60}") {
        let script = format!("function envoy_on_request(handle)\n{script}");
        let read = with_istio(&format!("lua: {}", quoted(&script)), &NoFiles);
        let experiment = read.map_err(|error| TestCaseError::fail(error.render(false)))?;
        let again = Experiment::parse(&experiment.to_yaml(), "again");
        prop_assert_eq!(again.map_err(|error| error.render(false)), Ok(experiment));
    }
}
