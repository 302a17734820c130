//! Experiment files: YAML in, a validated [`Experiment`] out, and back.
//!
//! Text becomes a tree of nodes with source positions ([`document`]). Command-line overrides change the tree
//! ([`overrides`]). Lists that are factors become one tree per combination ([`factors`]). Each tree is read key by key
//! ([`mod@keys`], [`sections`], [`reader`], [`load`], [`components`], [`istio`], [`ingress`], [`fleet`], [`published`]) and
//! checked for contradictions ([`checks`], [`mesh_checks`]). The first error stops the reader and reports its place.
//! [`writer`] writes an experiment with every default visible.
//!
//! The reader also rejects experiments that would run but measure something else than the author intended.
//! `docs/experiment-file.md` lists every key and every check.

mod checks;
mod components;
mod factors;
mod fleet;
mod given;
mod ingress;
mod istio;
mod json_schema;
mod keys;
pub mod label;
mod load;
mod mesh_checks;
mod named_files;
mod overrides;
mod published;
mod reader;
mod sections;
mod topology;
mod writer;

#[cfg(test)]
mod components_tests;
#[cfg(test)]
mod fleet_tests;
#[cfg(test)]
mod ingress_tests;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod text_tests;
#[cfg(test)]
mod topology_tests;

pub use json_schema::json_schema;
pub use named_files::{Files, NoFiles};
pub use overrides::Override;

use crate::definition::Experiment;
use crate::diagnostic::{ExperimentError, Place, Source};
use crate::yaml::document;
pub use crate::yaml::suggestion::nearest;
use std::sync::Arc;

/// Maximum size of an experiment file, bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;

impl Experiment {
    /// Parses an experiment file that refers to no other files. The file name is for error messages.
    ///
    /// # Errors
    /// Returns the first error, with its place.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, Box<ExperimentError>> {
        Self::parse_with(text, file_name, &[], &NoFiles)
    }

    /// Parses an experiment file and applies command-line overrides. Later overrides win over earlier ones;
    /// `--scale` is applied after all others.
    ///
    /// # Errors
    /// Returns the first error in the file or an override, with its place.
    pub fn parse_with(
        text: &str,
        file_name: &str,
        overrides: &[Override],
        files: &dyn Files,
    ) -> Result<Self, Box<ExperimentError>> {
        let too_large = |what: &str, bytes: usize| {
            Place::without_text(file_name).error(
                format!("{what} is too large: {bytes} bytes"),
                "an experiment file has at most 1 MiB, the texts that it brings along included",
            )
        };
        if text.len() > MAX_FILE_BYTES {
            return Err(too_large("the file", text.len()));
        }
        let source = Arc::new(Source { name: file_name.to_owned(), text: text.to_owned() });
        let mut root = document::read(&source)?;
        let scale = overrides::apply(&mut root, overrides)?;
        let experiment = factors::experiment(&root, &scale, files)?;
        // The file that a run writes must be readable again.
        let written_bytes = experiment.to_yaml().len();
        if written_bytes > MAX_FILE_BYTES {
            return Err(too_large("the file with every default and text", written_bytes));
        }
        Ok(experiment)
    }

    /// Writes the experiment as a file with every default visible. Reads back to the same value.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        writer::experiment(self)
    }
}
