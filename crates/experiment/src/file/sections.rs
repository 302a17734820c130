//! Sections of an experiment file.

use super::keys::{SECTION_KEYS, SHAPE_KEYS, shape_parameters};
use crate::diagnostic::{ExperimentError, Place};
use crate::topology::file as topology_file;
use crate::yaml::section::{keys_of, unknown_key};
use std::sync::LazyLock;

/// Every section of the file with the names of its keys.
pub(super) static SECTIONS: LazyLock<Vec<(&str, &[&str])>> = LazyLock::new(|| {
    let mut sections: Vec<(&str, &[&str])> =
        SECTION_KEYS.iter().map(|section| (section.path, section.names.as_slice())).collect();
    sections.insert(1, ("topology", &TOPOLOGY_KEYS));
    sections
});

/// Keys of every built-in topology, of a named file and of a graph.
static TOPOLOGY_KEYS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let parameters = shape_parameters();
    let mut keys = Vec::new();
    for key in SHAPE_KEYS
        .into_iter()
        .chain(["file"])
        .chain(topology_file::root_keys())
        .chain(parameters.iter().map(|parameter| parameter.name))
    {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
});

/// Checks that a section has a key.
pub(super) fn check_key(section: &str, key: &str, place: &Place) -> Result<(), Box<ExperimentError>> {
    let known = keys_of(&SECTIONS, section);
    if known.contains(&key) { Ok(()) } else { Err(unknown_key(&SECTIONS, section, known, key, place)) }
}
