//! The sections of a file beside the experiment read from them.

use super::overrides::Scale;
use super::section::{Field, Section};
use crate::diagnostic::Place;

/// The sections that the checks point at.
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
    /// Keys of the factors of which this is one combination.
    pub(super) varied: &'a [&'a str],
    pub(super) scale: &'a Scale,
}

impl Given<'_> {
    /// The place to point at for the levels: the scale where there is one, else the key.
    pub(super) fn levels_place(&self, field: &Field<'_>) -> Place {
        self.scale.place.clone().unwrap_or_else(|| field.place().clone())
    }
}
