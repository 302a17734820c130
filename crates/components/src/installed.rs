//! A usable component and its origin.

use super::catalog::Component;
use super::manifest::{record_of, sha256_of_file};
use super::subprocess::{answer_within, confined_answer_within};
use results::{ComponentImage, ComponentVersion};
use std::io;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    pub component: Component,
    /// Absolute path.
    pub path: PathBuf,
    /// For example `1.40.0`. A program that the user named is queried for it.
    pub version: String,
    pub origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Installed at the pinned version.
    Installed,
    /// Installed as part of a release.
    Image(ComponentImage),
    Option,
    Variable,
    /// Only for ztunnel.
    SearchPath,
}

impl Origin {
    /// Name in results; none for an installed program.
    fn named_by(&self) -> Option<&'static str> {
        match self {
            Self::Installed | Self::Image(_) => None,
            Self::Option => Some("option"),
            Self::Variable => Some("variable"),
            Self::SearchPath => Some("search-path"),
        }
    }
}

impl Installed {
    /// Runs it for what it prints: confined, unless the user named it.
    pub fn answer_within(
        &self,
        arguments: &[&str],
        environment: &[(&str, &str)],
        limit: Duration,
    ) -> io::Result<Output> {
        if !self.is_users_own() {
            return confined_answer_within(&self.path, arguments, environment, limit);
        }
        let mut command = Command::new(&self.path);
        answer_within(command.args(arguments).envs(environment.iter().copied()), limit)
    }

    /// True if the user named it, so that it is not of a registry or an image.
    pub fn is_users_own(&self) -> bool {
        self.origin.named_by().is_some()
    }

    /// The version as results record it. A user's own program is hashed here; its digest is absent if it
    /// cannot be read.
    pub fn recorded(&self) -> ComponentVersion {
        let named_by = self.origin.named_by();
        let record = named_by.is_none().then(|| record_of(&self.path)).flatten();
        let image = match &self.origin {
            Origin::Image(image) => Some(image.clone()),
            // etcd and kube-apiserver may be from images too.
            _ => record.as_ref().and_then(|(record, file)| record.image_of(file).cloned()),
        };
        ComponentVersion {
            name: self.component.name().to_owned(),
            version: self.version.clone(),
            sha256: match named_by {
                None => record.map(|(_, file)| file.sha256),
                Some(_) => sha256_of_file(&self.path).ok(),
            },
            named_by: named_by.map(str::to_owned),
            path: named_by.map(|_| self.path.display().to_string()),
            image,
            in_place_of: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_program_is_recorded_with_digest_and_origin() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("envoy");
        std::fs::write(&path, "abc").unwrap();
        let version = "1.40.0".to_owned();
        let named =
            Installed { component: Component::Envoy, path: path.clone(), version, origin: Origin::Option };
        let recorded = named.recorded();
        // The example of FIPS 180-2, appendix B.1.
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(recorded.sha256.as_deref(), Some(digest));
        assert_eq!(recorded.named_by.as_deref(), Some("option"));
        assert_eq!(recorded.path, Some(path.display().to_string()));
        let installed = Installed { origin: Origin::Installed, ..named };
        let recorded = installed.recorded();
        assert_eq!(
            (recorded.sha256, recorded.named_by, recorded.path),
            (None, None, None),
            "there is no record"
        );
    }
}
