//! JSON Schema of experiment files.

use super::factors::may_be_factor;
use super::keys::{FILE, NAMESPACES, SECTION_KEYS, SHAPE, SectionKeys, shape_parameters, shapes};
use crate::keys::{DescribedKey, Key, Kind, json_schema};
use crate::topology::file::keys as topology_keys;
use serde_json::{Value, json};

/// Schema of an experiment file, as JSON Schema (draft 2020-12).
#[must_use]
pub fn json_schema() -> Value {
    let mut definitions = topology_keys::definitions();
    definitions.push(("topology", topology()));
    let mut sections = SECTION_KEYS.iter().map(|section| (section.path, schema(section)));
    let (_, root) = sections.next().expect("the first section is the top level");
    definitions.extend(sections);
    json_schema::document(
        "Meshmeter experiment",
        "What a run measures (docs/experiment-file.md).",
        root,
        definitions,
    )
}

/// The key `topology`: a name, a file, or a map of one of three kinds.
fn topology() -> Value {
    let parameters = shape_parameters();
    let map = |keys: &[Key], more: &[Key], is_factor: fn(&str) -> bool| {
        let keys: Vec<DescribedKey> = keys.iter().chain(more).map(DescribedKey::from).collect();
        json_schema::map_with_factors(&keys, is_factor)
    };
    let is_factor = |key: &str| may_be_factor(&format!("topology.{key}"));
    json!({"anyOf": [
        json_schema::value(Kind::OneOf(shapes)),
        json_schema::value(Kind::Matching(|| r"\.ya?ml$".to_owned())),
        map(&SHAPE, &parameters, is_factor),
        map(&FILE, &[], is_factor),
        map(&topology_keys::ROOT, &[NAMESPACES], |key| key == NAMESPACES.name),
    ]})
}

fn schema(section: &SectionKeys) -> Value {
    let is_published = section.path.starts_with("published");
    let mut schema = json_schema::map_with_factors(&section.keys, |key| {
        let dotted = if section.path.is_empty() { key.to_owned() } else { format!("{}.{key}", section.path) };
        !is_published && may_be_factor(&dotted)
    });
    if section.may_be_empty() {
        schema["type"] = json!(["object", "null"]);
    }
    schema
}
