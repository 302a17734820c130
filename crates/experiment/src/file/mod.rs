//! The experiment file: YAML in, a checked [`Experiment`] out, and back.
//!
//! Text becomes a tree of nodes that know their place ([`document`], the one module that knows the YAML library);
//! overrides of the command line change the tree ([`overrides`]); the tree is read key by key ([`section`],
//! [`reader`]) and checked for contradictions ([`checks`]). The first thing that is wrong ends it, with its place.
//! [`writer`] writes an experiment with every default visible.
//!
//! What the reader refuses although a machine could run it is refused because it would measure something else than
//! its author thinks: `docs/experiment-file.md` lists every key and every check.

mod checks;
mod document;
mod overrides;
mod reader;
mod section;
mod suggestion;
mod writer;

#[cfg(test)]
mod tests;

pub use overrides::Override;

use crate::definition::Experiment;
use crate::diagnostic::{ExperimentError, Place, Source};
use std::sync::Arc;

/// Largest experiment file, bytes.
const LARGEST_FILE_BYTES: usize = 1 << 20;

impl Experiment {
    /// Reads an experiment file. The name is for messages.
    ///
    /// # Errors
    /// The first thing that is wrong with it, with its place.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, Box<ExperimentError>> {
        Self::parse_with(text, file_name, &[])
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
    ) -> Result<Self, Box<ExperimentError>> {
        if text.len() > LARGEST_FILE_BYTES {
            let place = Place {
                source: Arc::new(Source { name: file_name.into(), text: String::new() }),
                span: 0..0,
            };
            return Err(place.error(
                format!("the file is too large: {} bytes", text.len()),
                "an experiment file has at most 1 MiB",
            ));
        }
        let source = Arc::new(Source { name: file_name.to_owned(), text: text.to_owned() });
        let mut root = document::read(&source)?;
        let scale = overrides::apply(&mut root, overrides)?;
        reader::experiment(&root, &scale)
    }

    /// The experiment as a file, every default visible. Reads back to the same value.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        writer::experiment(self)
    }
}
