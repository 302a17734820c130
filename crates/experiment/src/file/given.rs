//! Sections of the file, which checks need next to the experiment.

use super::overrides::Scale;
use crate::diagnostic::Place;
use crate::yaml::section::{Field, Section};

/// Sections of the file that checks point at.
pub(super) struct Given<'a> {
    /// The whole file.
    pub(super) root: &'a Section<'a>,
    pub(super) load: &'a Section<'a>,
    pub(super) objective: &'a Section<'a>,
    pub(super) server: &'a Section<'a>,
    pub(super) proxy: &'a Section<'a>,
    pub(super) components: &'a Section<'a>,
    pub(super) istio: &'a Section<'a>,
    pub(super) ingress: &'a Section<'a>,
    pub(super) gateway: &'a Section<'a>,
    /// Keys of the factors in this combination.
    pub(super) varied: &'a [&'a str],
    pub(super) scale: &'a Scale,
}

impl Given<'_> {
    /// Place to report for the load levels: `--scale` if given, else the key.
    pub(super) fn levels_place(&self, field: &Field<'_>) -> Place {
        self.scale.place.clone().unwrap_or_else(|| field.place().clone())
    }
}
