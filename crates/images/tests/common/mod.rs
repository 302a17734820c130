//! Helpers for the tests of extraction.

use std::fs;
use std::path::Path;
use std::time::Duration;

use images::{Access, Extracted, ImageError, ImageReference, Limits, Platform, Wanted, Watch, extract};
use tempfile::TempDir;

pub fn wanted(path: &str, name: &str) -> Wanted {
    Wanted { path: path.to_owned(), name: name.to_owned(), executable: true, optional: false }
}

/// Access without the user's own credentials, and with short timeouts.
pub fn access(folder: &Path) -> Access {
    let docker_config = folder.join("no-credentials.json");
    fs::write(&docker_config, "{}").unwrap();
    let limits = Limits {
        idle_timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(20),
        retry_pause: Duration::from_millis(1),
        ..Limits::default()
    };
    Access { docker_config: Some(docker_config), limits, ..Access::default() }
}

/// A directory for files, next to one for configuration.
pub struct Place {
    pub destination: TempDir,
    pub access: Access,
    configuration: TempDir,
}

impl Place {
    pub fn new() -> Self {
        let configuration = tempfile::tempdir().unwrap();
        let access = access(configuration.path());
        Self { destination: tempfile::tempdir().unwrap(), access, configuration }
    }

    pub fn extract(&self, reference: &str, wanted: &[Wanted]) -> Result<Extracted, ImageError> {
        self.extract_watched(reference, wanted, &mut ())
    }

    pub fn extract_watched(
        &self,
        reference: &str,
        wanted: &[Wanted],
        watch: &mut dyn Watch,
    ) -> Result<Extracted, ImageError> {
        let reference: ImageReference = reference.parse().unwrap();
        extract(&reference, wanted, self.destination.path(), &Platform::host(), &self.access, watch)
    }

    /// The error of an extraction that leaves nothing behind and names the image in one line.
    pub fn fails(&self, reference: &str, wanted: &[Wanted]) -> ImageError {
        let error = self.extract(reference, wanted).expect_err("no extraction");
        self.check_nothing_left(&error);
        error
    }

    pub fn check_nothing_left(&self, error: &ImageError) {
        let line = error.to_string();
        assert!(!line.contains('\n') && line.len() < 600 && line.contains("/istio/"), "{line}");
        assert_eq!(self.files(), Vec::<String>::new(), "{line}");
        assert_eq!(fs::read_dir(self.configuration.path()).unwrap().count(), 1, "{line}");
    }

    /// Names in the destination.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.destination.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub fn content(&self, name: &str) -> Vec<u8> {
        fs::read(self.destination.path().join(name)).unwrap()
    }
}
