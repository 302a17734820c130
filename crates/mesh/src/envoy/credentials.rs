//! Files of a workload's certificate.

use std::path::{Path, PathBuf};

/// Where a proxy reads its credentials.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CredentialFiles {
    /// The proxy's certificate, PEM.
    pub certificate: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
    /// The authority's certificate, PEM.
    pub authority: PathBuf,
}

impl CredentialFiles {
    /// The files in this directory, by their usual names.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            certificate: folder.join("certificate.pem"),
            key: folder.join("key.pem"),
            authority: folder.join("authority.pem"),
        }
    }
}
