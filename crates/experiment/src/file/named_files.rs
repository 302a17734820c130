//! Files that an experiment refers to.

use std::path::PathBuf;

/// Access to the files that an experiment refers to; this crate does no I/O itself. Errors are human-readable
/// reasons.
pub trait Files {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// Returns an error if the file does not exist or is not text.
    fn text(&self, path: &str) -> Result<String, String>;

    /// Resolves a file to an absolute path.
    ///
    /// # Errors
    /// Returns an error if the file does not exist.
    fn locate(&self, path: &str) -> Result<PathBuf, String>;

    /// Resolves a program to an absolute path. Symbolic links are kept: a wrapper may depend on its own path.
    ///
    /// # Errors
    /// Returns an error if the program does not exist.
    fn locate_program(&self, path: &str) -> Result<PathBuf, String> {
        self.locate(path)
    }
}

/// For experiments as resolved by a run: they refer to no text files, and other paths are used as given.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn text(&self, path: &str) -> Result<String, String> {
        Err(format!("the file {} is not looked at here", results::units::shortened(path)))
    }

    fn locate(&self, path: &str) -> Result<PathBuf, String> {
        Ok(path.into())
    }
}
