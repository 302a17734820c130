//! Errors of a run directory, with hints for the user.

use std::io;
use std::path::{Path, PathBuf};

/// A run directory that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The directory already contains a run.
    #[error("{} already holds a run", path.display())]
    HasRun {
        /// Path of the directory.
        path: PathBuf,
    },
    /// A run is being written into the directory.
    #[error("a run is being measured into {}", path.display())]
    InUse {
        /// Path of the directory.
        path: PathBuf,
    },
    /// The directory contains other files.
    #[error("{} is not an empty folder: it contains {name:?}", path.display())]
    NotEmpty {
        /// Path of the directory.
        path: PathBuf,
        /// Name of one of these files.
        name: String,
    },
    /// The path is not a run directory.
    #[error("{} is not a run folder: {missing}", path.display())]
    NoRun {
        /// The path.
        path: PathBuf,
        /// What is missing.
        missing: String,
    },
    /// A file cannot be written.
    #[error("{operation} {}", path.display())]
    Write {
        /// Operation that failed.
        operation: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl FolderError {
    pub(crate) fn write(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Write { operation, path: path.to_owned(), source }
    }

    pub(crate) fn read(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Read { path: path.to_owned(), source: source.into() }
    }

    /// What the user can do, unless the error makes it obvious.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::HasRun { .. } => {
                Some("name another folder with --out, or replace that run with --overwrite".to_owned())
            }
            Self::InUse { .. } => Some("wait for its end, or name another folder with --out".to_owned()),
            Self::NotEmpty { .. } => Some("name a new folder with --out".to_owned()),
            Self::NoRun { .. } => Some("give the folder that `meshmeter run` printed at its end".to_owned()),
            Self::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some(
                    "make room on the disk; the trials recorded until now are kept, and `meshmeter report DIR --output \
                     FILE` writes their report elsewhere"
                        .to_owned(),
                )
            }
            Self::Write { .. } => {
                let options = "`meshmeter run` takes it with --out, `meshmeter report` with --output";
                Some(format!("name a place that can be made and written to: {options}"))
            }
            Self::Read { .. } => None,
        }
    }
}
