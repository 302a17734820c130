//! The experiment file: YAML in, a checked [`Experiment`] out, and back.
//!
//! Text becomes a tree of nodes with their places ([`document`], the one module that knows the YAML library). Overrides of
//! the command line change the tree ([`overrides`]). Lists that are factors become one tree per combination ([`factors`]).
//! Each tree is read key by key ([`section`], [`reader`], [`components`], [`istio`], [`ingress`], [`fleet`], [`published`]) and checked for
//! contradictions ([`checks`], [`mesh_checks`]). The first error ends it, with its place. [`writer`] writes an experiment with every
//! default visible.
//!
//! The reader refuses what a machine could run but would measure something else than its author thinks:
//! `docs/experiment-file.md` lists every key and every check.

mod checks;
mod components;
pub(crate) mod document;
mod factors;
mod fleet;
mod given;
mod ingress;
mod istio;
mod mesh_checks;
mod named_files;
mod overrides;
mod published;
mod reader;
pub(crate) mod section;
pub(crate) mod suggestion;
mod topology;
mod writer;

#[cfg(test)]
mod components_tests;
#[cfg(test)]
mod fleet_tests;
#[cfg(test)]
mod ingress_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod text_tests;
#[cfg(test)]
mod topology_tests;

pub use named_files::{Files, NoFiles};
pub use overrides::Override;

use crate::definition::Experiment;
use crate::diagnostic::{ExperimentError, Place, Source};
use std::sync::Arc;

/// Size limit of an experiment file, bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;

impl Experiment {
    /// Reads an experiment file that names no others. The name is for messages.
    ///
    /// # Errors
    /// The first thing that is wrong with it, with its place.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, Box<ExperimentError>> {
        Self::parse_with(text, file_name, &[], &NoFiles)
    }

    /// Reads an experiment file and changes it as the command line says. A later override wins over an earlier one;
    /// scales come after all others.
    ///
    /// # Errors
    /// The first thing that is wrong with the file or an override, with its place.
    pub fn parse_with(
        text: &str,
        file_name: &str,
        overrides: &[Override],
        files: &dyn Files,
    ) -> Result<Self, Box<ExperimentError>> {
        let too_large = |what: &str, bytes: usize| {
            let source = Source { name: file_name.into(), text: String::new() };
            let place = Place { source: Arc::new(source), span: 0..0 };
            place.error(
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
        // What a run leaves must read again.
        let written_bytes = experiment.to_yaml().len();
        if written_bytes > MAX_FILE_BYTES {
            return Err(too_large("the file with every default and text", written_bytes));
        }
        Ok(experiment)
    }

    /// The experiment as a file, every default visible. Reads back to the same value.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        writer::experiment(self)
    }
}
