//! The files that an experiment names.

use std::path::PathBuf;

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

    /// Where a program is, as an absolute path. Symbolic links are kept: a wrapper may depend on its own path.
    ///
    /// # Errors
    /// It is not there.
    fn locate_program(&self, path: &str) -> Result<PathBuf, String> {
        self.locate(path)
    }
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
