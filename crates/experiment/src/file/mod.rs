//! The experiment file: YAML in, a checked [`Experiment`] out, and back.
//!
//! Text becomes a tree of nodes that know their place ([`document`], the one module that knows the YAML library);
//! overrides of the command line change the tree ([`overrides`]); lists that are factors become one tree per combination ([`factors`]); each tree is read key by key ([`section`],
//! [`reader`], [`istio`], [`published`]) and checked for contradictions ([`checks`], [`mesh_checks`]). The first thing that is wrong ends it, with its place.
//! [`writer`] writes an experiment with every default visible.
//!
//! What the reader refuses although a machine could run it is refused because it would measure something else than
//! its author thinks: `docs/experiment-file.md` lists every key and every check.

mod checks;
mod document;
mod factors;
mod istio;
mod mesh_checks;
mod overrides;
mod published;
mod reader;
mod section;
mod suggestion;
mod writer;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod text_tests;

pub use overrides::Override;

use crate::definition::Experiment;
use crate::diagnostic::{ExperimentError, Place, Source};
use std::path::PathBuf;
use std::sync::Arc;

/// How the files that an experiment names are read: this crate touches no disk itself. Errors are reasons in words.
pub trait Files {
    /// The text of a file.
    ///
    /// # Errors
    /// It is not there or is not text.
    fn text(&self, path: &str) -> Result<String, String>;

    /// Where a file is, as an absolute path.
    ///
    /// # Errors
    /// It is not there.
    fn locate(&self, path: &str) -> Result<PathBuf, String>;
}

/// Reads an experiment as a run resolved it: it names no text any more, and what else it names is taken as it stands.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn text(&self, path: &str) -> Result<String, String> {
        Err(format!("the file {} is not looked at here", crate::units::shortened(path)))
    }

    fn locate(&self, path: &str) -> Result<PathBuf, String> {
        Ok(path.into())
    }
}

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
