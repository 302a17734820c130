//! The section `components`: versions and programs of the mesh components.

use super::named_files::Files;
use crate::definition::Experiment;
use crate::diagnostic::ExperimentError;
use crate::mesh_kind::MeshKind;
use crate::settings::components::{ComponentsSettings, PINNED_ISTIO};
use crate::yaml::section::{Field, Section};
use results::FactorValue;
use results::units::shortened;
use std::path::PathBuf;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

/// Maximum length of an image tag in a registry.
const MAX_VERSION_BYTES: usize = 128;

/// Reads the section.
pub(super) fn settings(section: &Section<'_>, files: &dyn Files) -> Result<ComponentsSettings> {
    let program = |key| section.field(key)?.map(|field| program(&field, files)).transpose();
    Ok(ComponentsSettings {
        istio: section.field("istio")?.map(|field| version(&field)).transpose()?,
        envoy: program("envoy")?,
        ztunnel: program("ztunnel")?,
        istiod: program("istiod")?,
        pilot_agent: program("pilot-agent")?,
    })
}

/// Value of a factor in this section. Versions are text, even if they look like numbers; programs are
/// resolved to their path.
pub(super) fn factor_value(key: &str, text: &str, files: &dyn Files) -> FactorValue {
    let text = text.trim();
    let located = match key {
        "istio" => None,
        // The reader of the key reports what is wrong with it.
        _ => files.locate_program(text).ok().and_then(|path| Some(path.to_str()?.to_owned())),
    };
    FactorValue::Text(located.unwrap_or_else(|| text.to_owned()))
}

fn version(field: &Field<'_>) -> Result<String> {
    let text = field.text()?;
    if text == PINNED_ISTIO {
        return Ok(text.to_owned());
    }
    let expected = format!("expected a release such as `1.30.1`, or `{PINNED_ISTIO}`");
    let is_tag = text.starts_with(|first: char| first.is_ascii_digit())
        && text.len() <= MAX_VERSION_BYTES
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if !is_tag {
        let message = format!("`{}`: `{}` is not a version", field.path, shortened(text));
        let error = field.place().error(message, expected);
        return Err(match text.strip_prefix('v') {
            Some(rest) if rest.starts_with(|first: char| first.is_ascii_digit()) => {
                error.with_hint(format!("Istio's versions have no `v`: `{}`", shortened(rest)))
            }
            _ => error,
        });
    }
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && text.split('.').count() != 3 {
        let message = format!("`{}`: `{text}` is not a whole version", field.path);
        let minor = text.split('.').take(2).collect::<Vec<_>>().join(".");
        let error = field.place().error(message, expected);
        return Err(error.with_hint(format!("releases have three numbers, such as `{minor}.0`")));
    }
    Ok(text.to_owned())
}

fn program(field: &Field<'_>, files: &dyn Files) -> Result<PathBuf> {
    let text = field.text()?.trim();
    let refused = |reason: &str| {
        field.place().error(
            format!("`{}`: {reason}", field.path),
            "expected a program, its path from the folder of the experiment file on",
        )
    };
    if text.is_empty() {
        return Err(refused("the path is empty"));
    }
    if text.chars().any(char::is_control) {
        return Err(refused("the path has a control character"));
    }
    let path = files.locate_program(text).map_err(|reason| refused(&reason))?;
    match path.to_str() {
        Some(_) => Ok(path),
        None => Err(refused("the path is not UTF-8")),
    }
}

/// Rejects components that no trial runs: their values would be compared although they cannot differ.
pub(super) fn contradictions(experiment: &Experiment, section: &Section<'_>) -> Result<()> {
    for key in ["istio", "envoy", "ztunnel", "istiod", "pilot-agent"] {
        let Some(field) = section.field(key)? else { continue };
        let Some((expected, hint)) = unused(key, experiment) else { continue };
        let error = field.key_place.error(format!("`{}` has no effect here", field.path), expected);
        return Err(error.with_some_hint(hint));
    }
    Ok(())
}

/// Reason why no trial runs a component, with a hint; absent if one does.
fn unused(key: &str, experiment: &Experiment) -> Option<(&'static str, Option<&'static str>)> {
    if !MeshKind::IN_LAB.contains(&experiment.mesh) {
        return Some(("a cluster has the versions that are installed there", None));
    }
    if experiment.mesh == MeshKind::Envoy && key != "envoy" {
        let hint = match key {
            "istio" => "`mesh: istio` runs it; `components.envoy` names an Envoy",
            _ => "`mesh: istio` runs it",
        };
        return Some(("static files have no control plane", Some(hint)));
    }
    if let Some(fleet) = &experiment.fleet {
        return match key {
            "ztunnel" => Some(("a fleet's proxies are simulated", None)),
            "envoy" | "pilot-agent" if fleet.witnesses == 0 => {
                Some(("a fleet's proxies are simulated", Some("`fleet.witnesses` are real sidecars")))
            }
            _ => None,
        };
    }
    let expected = match key {
        "ztunnel" => "expected only where `ambient` or `ambient-waypoint` is among the `modes`",
        "envoy" | "pilot-agent" => "expected with a mode that has an Envoy",
        // istiod runs in every trial.
        _ => return None,
    };
    (!experiment.touches_any_mode(&format!("components.{key}"))).then_some((expected, None))
}
