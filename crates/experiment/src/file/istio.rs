//! The section `istio`: settings of the control plane.

use super::named_files::Files;
use crate::diagnostic::{ExperimentError, Place, Source};
use crate::keys::SWITCH;
use crate::keys::settings::read;
use crate::settings::istio::{BackgroundSettings, ExtraObjects, IstiodSettings, LuaScript, MeshSettings};
use crate::yaml::document;
use crate::yaml::section::{Field, Section};
use results::units::format_duration;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

/// Envoy samples with a resolution of one in ten thousand.
const SHARE_STEPS: f64 = 10_000.0;
/// Maximum of services × endpoints: more take an API server on one machine minutes to accept.
const MAX_ENDPOINTS_IN_ALL: usize = 100_000;
/// Istio's default for `PILOT_DEBOUNCE_AFTER`.
const DEBOUNCE_AFTER: Duration = Duration::from_millis(100);
/// Istio's default for `PILOT_DEBOUNCE_MAX`.
const MAX_DEBOUNCE: Duration = Duration::from_secs(10);
/// Maximum length of a script, bytes, from the schema of its kind.
const MAX_SCRIPT_BYTES: usize = 1 << 16;
/// Maximum length of the text of objects, bytes: an API server accepts no larger object.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Reads the section.
pub(super) fn settings(section: &Section<'_>, files: &dyn Files) -> Result<MeshSettings> {
    let mut settings: MeshSettings = read(section)?;
    settings.lua = section.field("lua")?.map_or(Ok(None), |field| lua(&field))?;
    settings.wasm = section.field("wasm")?.map(|field| wasm(&field, files)).transpose()?;
    settings.extra = section.field("extra")?.map(|field| extra(&field, files)).transpose()?;
    check_traced_share(section, settings.tracing_fraction)?;
    check_background_services(&section.section("background-services")?, settings.background_services)?;
    check_debouncing(&section.section("istiod")?, &settings.istiod)?;
    Ok(settings)
}

/// Proxies draw which requests are traced at a limited resolution.
fn check_traced_share(section: &Section<'_>, share: Option<f64>) -> Result<()> {
    let (Some(field), Some(share)) = (section.field("tracing")?, share) else { return Ok(()) };
    let steps = share * SHARE_STEPS;
    if (steps - steps.round()).abs() > 1e-6 {
        return Err(field.place().error(
            format!("`{}` is finer than proxies draw", field.path),
            "expected whole hundredths of a percent, such as `0.01%` or `12.5%`",
        ));
    }
    Ok(())
}

fn check_background_services(
    section: &Section<'_>,
    BackgroundSettings { services, endpoints }: BackgroundSettings,
) -> Result<()> {
    match section.field("endpoints")? {
        Some(field) if services * endpoints > MAX_ENDPOINTS_IN_ALL => Err(field.place().error(
            format!("{services} services of {endpoints} endpoints are {}", services * endpoints),
            format!("expected at most {MAX_ENDPOINTS_IN_ALL} in all"),
        )),
        _ => Ok(()),
    }
}

fn check_debouncing(section: &Section<'_>, istiod: &IstiodSettings) -> Result<()> {
    let after = istiod.debounce_after.unwrap_or(DEBOUNCE_AFTER);
    let longest = istiod.debounce_max.unwrap_or(MAX_DEBOUNCE);
    let field = section.field("debounce-max")?.or(section.field("debounce-after")?);
    match field.filter(|_| longest < after) {
        Some(field) => Err(field.place().error(
            format!(
                "changes would be pushed after {} at the latest and never before {}",
                format_duration(longest),
                format_duration(after)
            ),
            "expected `debounce-max` of at least `debounce-after` (Istio's own: 10s and 100ms)",
        )),
        None => Ok(()),
    }
}

/// Script text, or true for the built-in script.
fn lua(field: &Field<'_>) -> Result<Option<LuaScript>> {
    let text = field.text()?;
    if !text.contains('\n') {
        return Ok(field.choice(&SWITCH)?.then_some(LuaScript::BuiltIn));
    }
    let script = with_end_of_line(text);
    check_size(field, &script, MAX_SCRIPT_BYTES)?;
    if !text.contains("envoy_on_request") && !text.contains("envoy_on_response") {
        return Err(field.place().error(
            format!("`{}` has nothing that a proxy would call", field.path),
            "expected `function envoy_on_request(handle)` or `function envoy_on_response(handle)`",
        ));
    }
    Ok(Some(LuaScript::Inline(script)))
}

fn wasm(field: &Field<'_>, files: &dyn Files) -> Result<PathBuf> {
    files.locate(field.text()?.trim()).map_err(|reason| unreadable(field, &reason))
}

/// Objects from a file, or inline as multi-line text.
fn extra(field: &Field<'_>, files: &dyn Files) -> Result<ExtraObjects> {
    let given = field.text()?;
    let (name, text) = if given.contains('\n') {
        (format!("`{}`", field.path), given.to_owned())
    } else {
        let name = given.trim();
        (name.to_owned(), files.text(name).map_err(|reason| unreadable(field, &reason))?)
    };
    check_size(field, &text, MAX_TEXT_BYTES)?;
    let text = with_end_of_line(&text);
    let source = Arc::new(Source { name, text: text.clone() });
    let objects = document::objects(&source)?;
    let place = Place { source, span: 0..0 };
    if objects.is_empty() {
        return Err(place.error("there is no object in this", "expected `apiVersion`, `kind` and `metadata`"));
    }
    let mut numbers = HashMap::new();
    for (index, object) in objects.iter().enumerate() {
        check_object(object, index + 1, &place)?;
        let metadata = &object["metadata"];
        let names = [&object["apiVersion"], &object["kind"], &metadata["namespace"], &metadata["name"]];
        if let Some(first) = numbers.insert(names.map(serde_json::Value::as_str), index + 1) {
            return Err(place.error(
                format!("document {} is the same object as document {first}", index + 1),
                "expected each object once",
            ));
        }
    }
    Ok(ExtraObjects { text, objects })
}

/// Checks that a Kubernetes object has a version, kind and name. They become segments of the API path, so
/// each must be a valid path segment.
fn check_object(object: &serde_json::Value, number: usize, place: &Place) -> Result<()> {
    let metadata = &object["metadata"];
    let is_optional = |key: &str| key == "metadata.namespace";
    for (key, value, fits) in [
        ("apiVersion", &object["apiVersion"], is_api_version as fn(&str) -> bool),
        ("kind", &object["kind"], is_kind),
        ("metadata.name", &metadata["name"], is_path_part),
        ("metadata.namespace", &metadata["namespace"], is_path_part),
    ] {
        if value.is_null() && is_optional(key) || value.as_str().is_some_and(fits) {
            continue;
        }
        let message = if object["kind"] == "List" {
            format!("document {number} is a List: its objects have to be documents themselves")
        } else if value.is_null() {
            format!("document {number} has no `{key}`")
        } else {
            format!(
                "document {number}: `{key}` is not valid: {}",
                results::units::shortened(&value.to_string())
            )
        };
        let error = place.error(
            message,
            "expected objects of Kubernetes, each with `apiVersion`, `kind` and `metadata.name`",
        );
        return Err(if value.is_boolean() || value.is_number() {
            error.with_hint("quote it: without quotes `on`, `off`, `yes`, `no` and numbers are not text")
        } else {
            error
        });
    }
    Ok(())
}

/// True for a version, or a group and a version.
fn is_api_version(text: &str) -> bool {
    let (group, version) = text.split_once('/').unwrap_or(("core", text));
    is_path_part(group) && is_kind(version)
}

fn is_kind(text: &str) -> bool {
    is_path_part(text) && text.chars().all(|c| c.is_ascii_alphanumeric())
}

/// True for valid path segments. Names of most kinds consist of lower-case letters, digits, `-` and `.`.
fn is_path_part(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    !text.is_empty() && text.len() <= 253 && text.chars().all(fits) && text != "." && text != ".."
}

fn check_size(field: &Field<'_>, text: &str, most_bytes: usize) -> Result<()> {
    if text.len() > most_bytes {
        return Err(field.place().error(
            format!("`{}` is too large: {} bytes", field.path, text.len()),
            format!("expected at most {} KiB", most_bytes >> 10),
        ));
    }
    Ok(())
}

/// Adds a final newline, so that multi-line text is still multi-line when it is written to an experiment
/// file.
fn with_end_of_line(text: &str) -> String {
    format!("{}\n", text.trim_end())
}

fn unreadable(field: &Field<'_>, reason: &str) -> Box<ExperimentError> {
    field.place().error(
        format!("`{}`: {reason}", field.path),
        "expected a file, its path from the folder of the experiment file on",
    )
}
