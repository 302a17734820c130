//! Components as text for people.

use components::{Component, ComponentState, ComponentStatus, Installation, Lack};
use report::format;
use std::fmt::Write as _;
use std::time::Duration;

/// Printed at the end of `lab install`.
pub fn installations(installations: &[Installation]) -> String {
    let mut text = String::new();
    for Installation { name, version, path, already_there, .. } in installations {
        let there = if *already_there { " (was there)" } else { "" };
        let _ = writeln!(text, "{name} {version}{there}: {}", path.display());
    }
    text
}

/// What a release lacks, and what is used instead.
pub fn lack_text(Lack { part, reason }: &Lack) -> String {
    if *part == Component::IstioFiles.name() {
        format!("the pinned definitions of Istio's objects serve in the place of its own ({reason})")
    } else {
        format!("without {part} ({reason})")
    }
}

/// Printed for components by `lab status`.
pub fn components(components: &[ComponentStatus]) -> String {
    let column = |value: &dyn Fn(&ComponentStatus) -> &str| {
        components.iter().map(|component| value(component).len()).max().unwrap_or_default()
    };
    let names = column(&|component| component.name);
    let versions = column(&version);
    let mut text = "components\n".to_owned();
    for component in components {
        let size = match component.size_bytes {
            0 => String::new(),
            bytes => size_text(bytes),
        };
        let line = format!(
            "  {:names$}  {:versions$}  {size:>8}  {:9}  {}",
            component.name,
            version(component),
            state(component.state),
            component.source,
        );
        let _ = writeln!(text, "{}", line.trim_end());
        // Working components need no further lines; `--json` has their paths.
        let default =
            component.is_default.then(|| "used unless another version of Istio is requested".to_owned());
        let lacks = component.lacks.iter().map(lack_text);
        let trouble = component.trouble.iter().chain(&component.remedy).cloned();
        for words in default.into_iter().chain(lacks).chain(digests(component)).chain(trouble) {
            let _ = writeln!(text, "  {:names$}  {words}", "");
        }
    }
    text
}

/// For example `105 MB`.
pub fn size_text(bytes: u64) -> String {
    with_blanks(&format::size(bytes as f64))
}

/// For example `2 min 30 s`.
pub fn seconds_text(elapsed: Duration) -> String {
    with_blanks(&format::duration(elapsed.as_secs() as f64))
}

/// Reports use no-break spaces between figure and unit; here people search for text as they would type it.
fn with_blanks(text: &str) -> String {
    text.replace('\u{a0}', " ")
}

/// Digests of the images that a component was extracted from: that of the index if known, otherwise that of
/// the image for this architecture.
fn digests(component: &ComponentStatus) -> impl Iterator<Item = String> {
    component.images.iter().map(|image| {
        let digest = image.index_digest.as_ref().unwrap_or(&image.manifest_digest);
        format!("{}  {digest}", image.reference)
    })
}

fn version(component: &ComponentStatus) -> &str {
    component.version.as_deref().unwrap_or("-")
}

fn state(state: ComponentState) -> &'static str {
    match state {
        ComponentState::Installed => "digest ok",
        ComponentState::Named => "your own",
        ComponentState::Absent => "absent",
        ComponentState::Flawed => "unusable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(name: &'static str, version: Option<&str>, state: ComponentState) -> ComponentStatus {
        let there = version.is_some();
        ComponentStatus {
            name,
            purpose: "a part",
            version: version.map(ToOwned::to_owned),
            source: format!("Go module {name}"),
            path: Some(format!("/c/{name}").into()),
            size_bytes: if there { 105_398_434 } else { 0 },
            state,
            trouble: (!there).then(|| format!("there is no {name}")),
            remedy: (!there).then(|| "get it".to_owned()),
            ..ComponentStatus::default()
        }
    }

    #[test]
    fn components_are_listed_in_columns_with_problems_below() {
        let shown = components(&[
            component("kube-apiserver", Some("1.36.3"), ComponentState::Installed),
            component("istiod", Some("1.31-dev-eed52ebb66ad"), ComponentState::Named),
            component("ztunnel", None, ComponentState::Absent),
        ]);
        insta::assert_snapshot!(shown, @r"
        components
          kube-apiserver  1.36.3                   105 MB  digest ok  Go module kube-apiserver
          istiod          1.31-dev-eed52ebb66ad    105 MB  your own   Go module istiod
          ztunnel         -                                absent     Go module ztunnel
                          there is no ztunnel
                          get it
        ");
    }
}
