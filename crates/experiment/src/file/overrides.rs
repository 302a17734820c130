//! Command-line overrides of an experiment file.

use super::sections::{SECTIONS, check_key};
use super::topology;
use crate::diagnostic::{ExperimentError, Place, Source};
use crate::yaml::document::{self, Entry, Node, Value};
use std::sync::Arc;

/// One override: a key to set, or a scale.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Override {
    /// The option as typed, such as `--set`.
    option: String,
    /// Value as typed.
    value: String,
    change: Change,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Change {
    /// The value is `key=value`.
    Assignment,
    /// The value is for this key.
    Key(&'static str),
    /// The value is the length of the measured window.
    Duration,
    /// The value multiplies the load.
    Scale,
}

impl Override {
    /// `--set key=value`: a dotted key such as `load.rate`, and a value in the file's syntax, such as `[500,
    /// 1000]`. `null` removes the key: `--set load.rate=null --set load.clients=8`.
    #[must_use]
    pub fn set(assignment: impl Into<String>) -> Self {
        Self { option: "--set".into(), value: assignment.into(), change: Change::Assignment }
    }

    /// An assignment like that of [`Self::set`], by another option, such as `--base`.
    #[must_use]
    pub fn assignment_by(option: &str, assignment: impl Into<String>) -> Self {
        Self { option: option.to_owned(), ..Self::set(assignment) }
    }

    /// `--repeats`.
    #[must_use]
    pub fn repeats(value: impl Into<String>) -> Self {
        Self { option: "--repeats".into(), value: value.into(), change: Change::Key("repeats") }
    }

    /// `--retakes`: maximum number of reruns per trial that the machine disturbed.
    #[must_use]
    pub fn retakes(value: impl Into<String>) -> Self {
        Self { option: "--retakes".into(), value: value.into(), change: Change::Key("retakes") }
    }

    /// `--duration`: the measured window of each trial.
    #[must_use]
    pub fn duration(value: impl Into<String>) -> Self {
        Self { option: "--duration".into(), value: value.into(), change: Change::Duration }
    }

    /// `--pacing`: pacing of the generators in every trial.
    #[must_use]
    pub fn pacing(value: impl Into<String>) -> Self {
        Self { option: "--pacing".into(), value: value.into(), change: Change::Key("load.pacing") }
    }

    /// `--scale`: multiplies every rate, or every number of clients (rounded, at least 1); for a fleet, the
    /// proxies and the objects of its mesh. Connections, durations, payload and repeats are not scaled.
    #[must_use]
    pub fn scale(value: impl Into<String>) -> Self {
        Self { option: "--scale".into(), value: value.into(), change: Change::Scale }
    }

    fn source(&self) -> Arc<Source> {
        Arc::new(Source { name: self.option.clone(), text: self.value.clone() })
    }
}

/// Multiplier of the load. Without `--scale` it is 1.
pub(super) struct Scale {
    pub(super) factor: f64,
    /// Place of the last `--scale`; absent if there is none.
    pub(super) place: Option<Place>,
}

impl Scale {
    /// Names `--scale` in an error about two values that are equal.
    pub(super) fn explain(&self, error: Box<ExperimentError>) -> Box<ExperimentError> {
        if self.place.is_none() {
            return error;
        }
        error.with_hint(format!("values may become equal by `--scale {}`", self.factor))
    }
}

/// Applies overrides to the tree and returns the scale, which is applied when values are read.
pub(super) fn apply(root: &mut Node, overrides: &[Override]) -> Result<Scale, Box<ExperimentError>> {
    let mut scale = Scale { factor: 1.0, place: None };
    for change in overrides {
        let source = change.source();
        let whole = Place { span: 0..source.text.len(), source: Arc::clone(&source) };
        match change.change {
            Change::Assignment => assign(root, &source)?,
            Change::Key(key) => {
                let node = document::read(&source)?;
                set(root, key, &whole, node)?;
            }
            Change::Duration => {
                let has_fleet = root.entries().iter().any(|entry| entry.key == "fleet");
                let node = document::read(&source)?;
                set(root, if has_fleet { "fleet.duration" } else { "load.duration" }, &whole, node)?;
            }
            Change::Scale => {
                scale = Scale { factor: scale.factor * factor(&source.text, &whole)?, place: Some(whole) };
            }
        }
    }
    Ok(scale)
}

fn factor(text: &str, place: &Place) -> Result<f64, Box<ExperimentError>> {
    match text.trim().parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(factor),
        _ => Err(place.error(
            format!("`{}` is not a scale", text.trim()),
            "expected a number above 0, for example `0.5`",
        )),
    }
}

/// Applies one `key=value`.
fn assign(root: &mut Node, source: &Arc<Source>) -> Result<(), Box<ExperimentError>> {
    let text = &source.text;
    let whole = Place { source: Arc::clone(source), span: 0..text.len() };
    let Some((key, value)) = text.split_once('=') else {
        return Err(whole.error("there is no `=`", "expected key=value, for example `load.rate=[500, 1000]`"));
    };
    let key_place = Place { source: Arc::clone(source), span: 0..key.len() };
    // Pads with spaces in place of the key, so that positions are right.
    let padded = Source { name: source.name.clone(), text: format!("{}{value}", " ".repeat(key.len() + 1)) };
    let mut node = document::read(&Arc::new(padded)).map_err(|error| *error).map_err(|error| {
        let place = Place { source: Arc::clone(source), span: error.span };
        place.error(error.message, error.label)
    })?;
    belong_to(&mut node, source);
    set(root, key.trim(), &key_place, node)
}

/// Points all places of a tree at this source.
fn belong_to(node: &mut Node, source: &Arc<Source>) {
    node.place.source = Arc::clone(source);
    match &mut node.value {
        Value::Empty | Value::Scalar(_) => {}
        Value::List(items) => items.iter_mut().for_each(|item| belong_to(item, source)),
        Value::Map(entries) => {
            for entry in entries {
                entry.key_place.source = Arc::clone(source);
                belong_to(&mut entry.node, source);
            }
        }
    }
}

/// Sets a node at a dotted key. An empty node removes the key.
fn set(root: &mut Node, dotted: &str, key_place: &Place, node: Node) -> Result<(), Box<ExperimentError>> {
    let (section, key) = split_key(dotted);
    check_key(section, key, key_place)?;
    let names = section.split('.').filter(|name| !name.is_empty());
    let map = names.into_iter().try_fold(root, |map, name| child_map(map, name, key_place))?;
    let entries = entries_of(map, key_place)?;
    let existing = entries.iter().position(|entry| entry.key == key);
    match (existing, &node.value) {
        (Some(at), Value::Empty) => drop(entries.remove(at)),
        (Some(at), _) => entries[at] = Entry { key: key.to_owned(), key_place: key_place.clone(), node },
        (None, Value::Empty) => {}
        (None, _) => entries.push(Entry { key: key.to_owned(), key_place: key_place.clone(), node }),
    }
    Ok(())
}

/// Splits a dotted key into its section (empty for the top level) and the key in it, which may contain dots
/// itself: `objective.p99.9`. For nested sections, the innermost: `istio.authorization.paths`.
pub(super) fn split_key(dotted: &str) -> (&str, &str) {
    let sections = SECTIONS.iter().filter_map(|(section, _)| {
        let key = dotted.strip_prefix(section)?.strip_prefix('.')?;
        Some((&dotted[..section.len()], key))
    });
    let innermost =
        sections.filter(|(section, _)| !section.is_empty()).max_by_key(|(section, _)| section.len());
    innermost.or_else(|| dotted.split_once('.')).unwrap_or(("", dotted))
}

/// Map under a key, created if missing.
fn child_map<'a>(
    map: &'a mut Node,
    key: &str,
    key_place: &Place,
) -> Result<&'a mut Node, Box<ExperimentError>> {
    let entries = entries_of(map, key_place)?;
    let at = entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
        let node = Node { place: key_place.clone(), value: Value::Map(Vec::new()) };
        entries.push(Entry { key: key.to_owned(), key_place: key_place.clone(), node });
        entries.len() - 1
    });
    let Entry { key_place, node, .. } = &mut entries[at];
    // `topology: pair` is the short form of a section, as is `topology: shop.yaml`.
    if let ("topology", Value::Scalar(text)) = (key, &node.value) {
        let key = if topology::is_file(text) { "file" } else { "shape" };
        let only = Entry { key: key.into(), key_place: key_place.clone(), node: node.clone() };
        node.value = Value::Map(vec![only]);
    }
    Ok(node)
}

fn entries_of<'a>(node: &'a mut Node, key_place: &Place) -> Result<&'a mut Vec<Entry>, Box<ExperimentError>> {
    if matches!(node.value, Value::Empty) {
        node.value = Value::Map(Vec::new());
    }
    match &mut node.value {
        Value::Map(entries) => Ok(entries),
        _ => {
            Err(key_place
                .error("a part of this key has no keys below it", "expected a key such as `load.rate`"))
        }
    }
}
