//! Names of workloads and namespaces, and finding a workload by its name.

use crate::diagnostic::{ExperimentError, Place};
use crate::file::suggestion::nearest;
use crate::topology::WorkloadId;
use crate::units::shortened;
use std::collections::{BTreeMap, HashMap};

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

/// Name of a topology that stands in an experiment file without a name.
pub(super) const INLINE: &str = "topology";

/// Namespace of workloads that name none in a file where others do.
pub(super) const DEFAULT_NAMESPACE: &str = "default";

/// Namespaces get a number behind their name where a topology stands several times.
const MAX_NAMESPACE_LENGTH: usize = 50;

const MAX_NAME_LENGTH: usize = 63;

/// The file's name without folders and ending, made a DNS label.
pub(super) fn from_file_name(file_name: &str) -> String {
    let base = file_name.rsplit('/').next().unwrap_or_default();
    let stem = base.strip_suffix(".yaml").or_else(|| base.strip_suffix(".yml")).unwrap_or(base);
    let label: String = stem
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(MAX_NAMESPACE_LENGTH)
        .collect();
    let label = label.trim_matches('-');
    if label.is_empty() { INLINE.to_owned() } else { label.to_owned() }
}

/// A name of a namespace or a topology: a DNS label.
pub(super) fn check_namespace(text: &str, place: &Place) -> Result<String> {
    if text.len() > MAX_NAMESPACE_LENGTH || !is_label(text) {
        return Err(place.error(
            format!("`{}` is not a DNS label", shortened(text)),
            format!("expected at most {MAX_NAMESPACE_LENGTH} of a-z, 0-9 and `-`, no `-` at either end"),
        ));
    }
    Ok(text.to_owned())
}

/// A name of a workload, and so of a Service: a DNS label that begins with a letter.
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

/// Where a workload of some name is looked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Scope<'a> {
    /// In this namespace alone.
    Namespace(&'a str),
    /// In this namespace, else in the only one that has the name.
    Anywhere(&'a str),
}

/// Workloads by name.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_qualified: BTreeMap<String, WorkloadId>,
    by_name: HashMap<String, Vec<(String, WorkloadId)>>,
}

impl Names {
    /// Adds a workload; false where the name is taken.
    pub(super) fn add(&mut self, namespace: &str, name: &str, id: WorkloadId) -> bool {
        let is_new = self.by_qualified.insert(qualified(namespace, name), id).is_none();
        self.by_name.entry(name.to_owned()).or_default().push((namespace.to_owned(), id));
        is_new
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<WorkloadId> {
        self.by_qualified.get(&qualified(namespace, name)).copied()
    }

    /// The workload of a name as a file has it: `name` or `namespace/name`.
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
            _ => match nearest(text, self.by_qualified.keys().map(String::as_str)) {
                Some(name) => error.with_hint(format!("did you mean `{name}`?")),
                None => error,
            },
        })
    }
}

fn qualified(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}
