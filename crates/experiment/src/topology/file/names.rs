//! Names of workloads and namespaces, and lookup of workloads by name.

use crate::diagnostic::{ExperimentError, Place};
use crate::topology::WorkloadId;
use crate::yaml::suggestion::nearest;
use results::units::shortened;
use std::collections::{BTreeMap, HashMap};

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

/// Name of an inline topology without a name.
pub(super) const INLINE: &str = "topology";

/// Namespace of workloads without one, if other workloads in the file have one.
pub(super) const DEFAULT_NAMESPACE: &str = "default";

/// Maximum length of a namespace: copies of a topology append a number.
pub const MAX_NAMESPACE_LENGTH: usize = 50;

/// Maximum length of the name of a workload, which is also a Service name.
pub const MAX_NAME_LENGTH: usize = 63;

/// Name derived from a file name, without directories and extension, as a DNS label.
pub(super) fn from_file_name(file_name: &str) -> String {
    let base = file_name.rsplit('/').next().unwrap_or_default();
    let stem = base.strip_suffix(".yaml").or_else(|| base.strip_suffix(".yml")).unwrap_or(base);
    label(stem, MAX_NAMESPACE_LENGTH).unwrap_or_else(|| INLINE.to_owned())
}

/// Text as a DNS label of at most this length; `None` if nothing of it can be in one.
#[must_use]
pub fn label(text: &str, max_length: usize) -> Option<String> {
    let label: String = text
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(max_length)
        .collect();
    let label = label.trim_matches('-');
    (!label.is_empty()).then(|| label.to_owned())
}

/// True for characters that the path of an endpoint may have.
#[must_use]
pub fn fits_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/-_.~:@!$&'()*+,;=%".contains(c)
}

/// Validates the name of a namespace or topology: a DNS label.
pub(super) fn check_namespace(text: &str, place: &Place) -> Result<String> {
    if text.len() > MAX_NAMESPACE_LENGTH || !is_label(text) {
        return Err(place.error(
            format!("`{}` is not a DNS label", shortened(text)),
            format!("expected at most {MAX_NAMESPACE_LENGTH} of a-z, 0-9 and `-`, no `-` at either end"),
        ));
    }
    Ok(text.to_owned())
}

/// Validates the name of a workload, which is also a Service name: a DNS label that starts with a letter.
pub(super) fn check_name(text: &str, place: &Place) -> Result<String> {
    let begins_well = text.starts_with(|c: char| c.is_ascii_lowercase());
    if text.len() > MAX_NAME_LENGTH || !begins_well || !is_label(text) {
        return Err(place.error(
            format!("`{}` is not a name of a Service", shortened(text)),
            format!("expected at most {MAX_NAME_LENGTH} of a-z, 0-9 and `-`, a letter first, no `-` last"),
        ));
    }
    Ok(text.to_owned())
}

fn is_label(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(fits) && !text.starts_with('-') && !text.ends_with('-')
}

/// Search scope for a workload name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Scope<'a> {
    /// Only this namespace.
    Namespace(&'a str),
    /// This namespace, otherwise the only namespace that has the name.
    Anywhere(&'a str),
}

/// Workloads by name.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_qualified: BTreeMap<String, WorkloadId>,
    by_name: HashMap<String, Vec<(String, WorkloadId)>>,
}

impl Names {
    /// Adds a workload; returns false if the name is taken.
    pub(super) fn add(&mut self, namespace: &str, name: &str, id: WorkloadId) -> bool {
        let is_new = self.by_qualified.insert(qualified(namespace, name), id).is_none();
        self.by_name.entry(name.to_owned()).or_default().push((namespace.to_owned(), id));
        is_new
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<WorkloadId> {
        self.by_qualified.get(&qualified(namespace, name)).copied()
    }

    /// Finds a workload by its name in the file: `name` or `namespace/name`.
    pub(super) fn find(
        &self,
        text: &str,
        scope: Scope<'_>,
        place: &Place,
        expected: &str,
    ) -> Result<WorkloadId> {
        if text.contains('/') {
            if let Some(id) = self.by_qualified.get(text) {
                return Ok(*id);
            }
        } else {
            let (Scope::Namespace(namespace) | Scope::Anywhere(namespace)) = scope;
            if let Some(id) = self.get(namespace, text) {
                return Ok(id);
            }
            if let (Scope::Anywhere(_), Some([(_, id)])) = (scope, self.by_name.get(text).map(Vec::as_slice))
            {
                return Ok(*id);
            }
        }
        let error = place.error(format!("`{}` is not a service of this topology", shortened(text)), expected);
        let elsewhere = self.by_name.get(text).and_then(|places| places.first());
        Err(match elsewhere {
            Some((namespace, _)) if !namespace.is_empty() => error.with_hint(format!(
                "a service of another namespace has it before its name: `{namespace}/{text}`"
            )),
            _ => error.did_you_mean(nearest(text, self.by_qualified.keys().map(String::as_str))),
        })
    }
}

fn qualified(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}
