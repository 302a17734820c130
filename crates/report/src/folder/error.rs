//! What is wrong with a run folder, and what its user can do about it.

use std::io;
use std::path::{Path, PathBuf};

/// A run folder that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// There is already a run.
    #[error("{} already holds a run", path.display())]
    HasRun {
        /// The folder.
        path: PathBuf,
    },
    /// There is something else.
    #[error("{} is no empty folder: it holds {name:?}", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// One of the things in it.
        name: String,
    },
    /// It is not a run folder.
    #[error("{} is no run folder: {missing}", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
        /// What it lacks.
        missing: String,
    },
    /// A file cannot be written.
    #[error("{operation} {}", path.display())]
    Write {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl FolderError {
    pub(super) fn write(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Write { operation, path: path.to_owned(), source }
    }

    pub(crate) fn read(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Read { path: path.to_owned(), source: source.into() }
    }

    /// What the user can do about it, where it is not plain from the error.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::HasRun { .. } => {
                Some("name another folder with --out, or replace that run with --overwrite".to_owned())
            }
            Self::NotEmpty { .. } => Some("name a new folder with --out".to_owned()),
            Self::NoRun { .. } => Some("give the folder that `meshmeter run` printed at its end".to_owned()),
            Self::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some(
                    "make room on the disk; the trials recorded until now are kept, and `meshmeter report DIR --output \
                     FILE` writes their report elsewhere"
                        .to_owned(),
                )
            }
            Self::Write { .. } => Some("name a folder with --out that can be made and written to".to_owned()),
            Self::Read { .. } => None,
        }
    }
}
