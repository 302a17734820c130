//! An installed release of Istio: one directory with files from its images and its chart. `release_source.rs`
//! fetches it.

use super::catalog::Component;
use super::install_dir::{folder, unusable};
use super::installed::{Installed, Origin};
use super::istio_files::{BOOTSTRAP_TEMPLATE, ISTIO_CRDS};
use super::istio_version::ReleaseName;
use super::manifest::{self, Expected, Flaw, InstallManifest, Verify, sha256_of_texts};
use super::overrides::Overrides;
use crate::Result;
use experiment::environment::ErrorContext as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub(super) const NAME: &str = "istio";
pub(super) const PILOT_DISCOVERY: &str = "pilot-discovery";
pub(super) const PILOT_AGENT: &str = "pilot-agent";
pub(super) const ENVOY: &str = "envoy";
pub(super) const ZTUNNEL: &str = "ztunnel";

/// File with the name of the default release. Without it the pinned source is the default.
const DEFAULT_FILE: &str = "default-istio";

/// Version of the layout of a release's files.
const LAYOUT: &str = "meshmeter.release/1";

pub(super) fn package_in(folder: &Path, release: &ReleaseName) -> PathBuf {
    folder.join(format!("{NAME}-{release}"))
}

pub(super) fn recipe(release: &ReleaseName) -> String {
    sha256_of_texts(&[LAYOUT, release.as_str()])
}

pub(super) fn expected(release: &ReleaseName) -> Expected<'_> {
    Expected {
        component: NAME,
        version: release.as_str(),
        recipes: vec![recipe(release)],
        files: &[PILOT_DISCOVERY, PILOT_AGENT, ENVOY, BOOTSTRAP_TEMPLATE],
        optional: &[ZTUNNEL, ISTIO_CRDS],
        data: &[BOOTSTRAP_TEMPLATE, ISTIO_CRDS],
    }
}

pub(super) fn state(folder: &Path, release: &ReleaseName, verify: Verify) -> Result<InstallManifest, Flaw> {
    manifest::check(&package_in(folder, release), &expected(release), verify)
}

/// Releases with a directory in the components directory, sorted by name.
pub(super) fn all_in(folder: &Path) -> Vec<ReleaseName> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut releases: Vec<ReleaseName> = entries
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("istio-")?.parse().ok())
        .collect();
    releases.sort();
    releases
}

/// Names of the installed releases.
pub fn installed_releases() -> Vec<ReleaseName> {
    folder().map(|folder| all_in(&folder)).unwrap_or_default()
}

pub fn is_installed(release: &ReleaseName) -> Result<bool> {
    Ok(state(&folder()?, release, Verify::Quick).is_ok())
}

/// Name of a component's file in a release; absent if releases have none.
fn file_of(component: Component) -> Option<&'static str> {
    match component {
        Component::Istiod => Some(PILOT_DISCOVERY),
        Component::PilotAgent => Some(PILOT_AGENT),
        Component::Envoy => Some(ENVOY),
        Component::Ztunnel => Some(ZTUNNEL),
        Component::IstioFiles => Some(ISTIO_CRDS),
        _ => None,
    }
}

/// A release that a command uses.
#[derive(Debug)]
pub(super) struct Release {
    package: PathBuf,
    record: InstallManifest,
}

impl Release {
    /// The requested release, or else the default one; absent if the pinned source is used.
    pub(super) fn from_overrides(overrides: &Overrides) -> Result<Option<Self>> {
        let folder = folder()?;
        match overrides.release(|| default_in(&folder)) {
            Some(release) => Self::open(&folder, &release).map(Some),
            None => Ok(None),
        }
    }

    fn open(folder: &Path, release: &ReleaseName) -> Result<Self> {
        let package = std::path::absolute(package_in(folder, release))
            .context(format!("resolve the path {}", folder.display()))?;
        let record = state(folder, release, Verify::Quick).map_err(|flaw| {
            unusable(format!("use Istio {release}"), &package, &flaw, how_to_install(release))
        })?;
        Ok(Self { package, record })
    }

    pub(super) fn name(&self) -> &str {
        &self.record.version
    }

    pub(super) fn bootstrap_template(&self) -> PathBuf {
        self.package.join(BOOTSTRAP_TEMPLATE)
    }

    /// Absent if releases do not have this component, or if this one lacks it.
    pub(super) fn find(&self, component: Component) -> Option<Installed> {
        let name = file_of(component)?;
        let file = self.record.file(Path::new(name))?;
        Some(Installed {
            component,
            path: self.package.join(name),
            version: file.origin.version.clone().unwrap_or_else(|| self.record.version.clone()),
            origin: Origin::Image(self.record.image_of(file).cloned().unwrap_or_default()),
        })
    }

    /// Why it lacks a component; absent if it has it, or if no release has it.
    pub(super) fn reason_for_lack(&self, component: Component) -> Option<&str> {
        self.record.lacks.iter().find(|lack| lack.part == component.name()).map(|lack| lack.reason.as_str())
    }
}

pub(super) fn how_to_install(release: &ReleaseName) -> String {
    format!("`meshmeter lab install --istio {release}` takes it out of Istio's images")
}

/// The default release; absent if the pinned source is the default.
pub(super) fn default_in(folder: &Path) -> Option<ReleaseName> {
    fs::read_to_string(folder.join(DEFAULT_FILE)).ok()?.trim().parse().ok()
}

pub(super) fn set_default(folder: &Path, release: Option<&ReleaseName>) -> Result<()> {
    let path = folder.join(DEFAULT_FILE);
    let written = match release {
        Some(release) => fs::write(&path, format!("{release}\n")),
        None => fs::remove_file(&path).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        }),
    };
    written.context(format!("write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{FileOrigin, Lack, Made};
    use crate::package::Package;
    use results::ComponentImage;

    fn name(text: &str) -> ReleaseName {
        text.parse().unwrap()
    }

    /// A release made of scripts, except for the files in `without`.
    fn install(folder: &Path, release: &ReleaseName, without: &[&str]) {
        use std::os::unix::fs::PermissionsExt as _;
        let package = package_in(folder, release);
        fs::create_dir(&package).unwrap();
        let image = ComponentImage { reference: "hub/pilot:1".to_owned(), ..ComponentImage::default() };
        let origin =
            FileOrigin { version: Some("1.30.4-stated".to_owned()), image: Some(image.reference.clone()) };
        let mut made = Made { recipe: recipe(release), images: vec![image], ..Made::default() };
        for file in [PILOT_DISCOVERY, PILOT_AGENT, ENVOY, ZTUNNEL, BOOTSTRAP_TEMPLATE, ISTIO_CRDS] {
            if without.contains(&file) {
                made.lacks.push(Lack { part: file.to_owned(), reason: "not found".to_owned() });
                continue;
            }
            fs::write(package.join(file), file).unwrap();
            fs::set_permissions(package.join(file), fs::Permissions::from_mode(0o755)).unwrap();
            made.files.push((file.into(), origin.clone()));
        }
        manifest::write(&package, &expected(release), made).unwrap();
    }

    #[test]
    fn release_components_have_image_and_reported_version() {
        let folder = tempfile::tempdir().unwrap();
        install(folder.path(), &name("1.30.4"), &[]);
        let release = Release::open(folder.path(), &name("1.30.4")).unwrap();
        let istiod = release.find(Component::Istiod).unwrap();
        assert_eq!(istiod.path, folder.path().join("istio-1.30.4/pilot-discovery"));
        let recorded = istiod.recorded();
        assert_eq!((recorded.version.as_str(), recorded.named_by), ("1.30.4-stated", None));
        assert_eq!(recorded.image.unwrap().reference, "hub/pilot:1");
        assert!(recorded.sha256.is_some());
        assert_eq!(release.find(Component::Etcd), None);
    }

    #[test]
    fn missing_optional_part_is_not_found_and_missing_required_one_is_error() {
        let folder = tempfile::tempdir().unwrap();
        install(folder.path(), &name("1.30.4"), &[ZTUNNEL]);
        let release = Release::open(folder.path(), &name("1.30.4")).unwrap();
        assert_eq!(release.find(Component::Ztunnel), None);
        assert_eq!(release.reason_for_lack(Component::Ztunnel), Some("not found"));
        install(folder.path(), &name("1.29.0"), &[ENVOY]);
        let error = Release::open(folder.path(), &name("1.29.0")).unwrap_err();
        assert!(error.hint.unwrap().contains("--istio 1.29.0"));
        let error = Release::open(folder.path(), &name("1.28.0")).unwrap_err();
        assert!(error.source.unwrap().to_string().starts_with("it is not installed"));
    }

    #[test]
    fn only_releases_are_listed_and_only_complete_names_are_default() {
        let folder = tempfile::tempdir().unwrap();
        for directory in ["istio-1.30.4", "istio-1.29.4", "istio-files-1.31-dev", "istiod-1.31-dev", "etcd-3"]
        {
            fs::create_dir(folder.path().join(directory)).unwrap();
        }
        assert_eq!(all_in(folder.path()), [name("1.29.4"), name("1.30.4")]);
        assert_eq!(default_in(folder.path()), None);
        set_default(folder.path(), Some(&name("1.30.4"))).unwrap();
        assert_eq!(default_in(folder.path()), Some(name("1.30.4")));
        set_default(folder.path(), None).unwrap();
        set_default(folder.path(), None).unwrap();
        assert_eq!(default_in(folder.path()), None);
    }

    #[test]
    fn unexpected_file_in_record_is_flaw() {
        let folder = tempfile::tempdir().unwrap();
        install(folder.path(), &name("1.30.4"), &[]);
        let hub = crate::Hub::new("hub", None).unwrap();
        let request =
            crate::ReleaseRequest { name: name("1.30.4"), charts: hub.charts(), hub, with_ztunnel: true };
        assert!(Package::Release(&request).state(folder.path(), Verify::Thorough).is_ok());
        fs::write(folder.path().join("istio-1.30.4/envoy"), "other").unwrap();
        assert!(Package::Release(&request).state(folder.path(), Verify::Quick).is_err());
    }
}
