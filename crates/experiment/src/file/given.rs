//! The file, which checks need next to the experiment.

use super::overrides::{Scale, split_key};
use crate::diagnostic::{ExperimentError, Place};
use crate::yaml::section::{Field, Section};

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

/// The file that checks point at.
pub(super) struct Given<'a> {
    /// The whole file.
    pub(super) root: &'a Section<'a>,
    /// Keys of the factors in this combination.
    pub(super) varied: &'a [&'a str],
    pub(super) scale: &'a Scale,
}

impl<'a> Given<'a> {
    /// Section with this dotted key; has no entries if absent.
    pub(super) fn section(&self, path: &str) -> Result<Section<'a>> {
        let (outer, name) = split_key(path);
        if outer.is_empty() { self.root.section(name) } else { self.section(outer)?.section(name) }
    }

    /// Value of a dotted key below the top level, if given.
    pub(super) fn field(&self, dotted: &str) -> Result<Option<Field<'a>>> {
        let (section, key) = split_key(dotted);
        self.section(section)?.field(key)
    }

    /// Place to report for the load levels: `--scale` if given, else the key.
    pub(super) fn levels_place(&self, field: &Field<'_>) -> Place {
        self.scale.place.clone().unwrap_or_else(|| field.place().clone())
    }
}
