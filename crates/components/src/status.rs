//! Status of every component and release, for `meshmeter lab status`.

use super::istio_version::ReleaseName;
use super::manifest::{Flaw, InstallManifest, Lack, Verify};
use super::package::state;
use super::release;
use super::{Component, Origin, Overrides, find, folder, how_to_get};
use crate::Result;
use experiment::environment::error_chain;
use results::ComponentImage;
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ComponentStatus {
    pub name: &'static str,
    pub purpose: &'static str,
    /// The pinned version, or the one that a user's own program reports; absent if there is none.
    pub version: Option<String>,
    pub source: String,
    /// Where it is, or would be after an installation; absent if unknown.
    pub path: Option<PathBuf>,
    /// Size of its files in bytes; 0 if there are none.
    pub size_bytes: u64,
    pub state: ComponentState,
    /// Digest of its first file, if unchanged since its installation.
    pub sha256: Option<String>,
    /// Images that its files were extracted from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ComponentImage>,
    /// Parts that a release could not provide.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<Lack>,
    /// True for the default release.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_default: bool,
    pub trouble: Option<String>,
    pub remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComponentState {
    /// Installed, and its files have the recorded digests.
    Installed,
    Named,
    #[default]
    Absent,
    Flawed,
}

/// Every component, then every installed release of Istio. Hashes all files.
pub fn status(overrides: &Overrides) -> Result<Vec<ComponentStatus>> {
    let folder = folder()?;
    let components = Component::ALL.into_iter().map(|component| status_of(component, &folder, overrides));
    let releases = release::all_in(&folder);
    Ok(components.chain(releases.iter().map(|release| release_status(release, &folder))).collect())
}

fn release_status(release: &ReleaseName, folder: &Path) -> ComponentStatus {
    let blank = ComponentStatus {
        name: release::NAME,
        purpose: "a release of Istio: istiod, pilot-agent, Envoy and ztunnel out of its images",
        source: "images of Istio".to_owned(),
        path: Some(release::package_in(folder, release)),
        version: Some(release.to_string()),
        is_default: release::default_in(folder).as_ref() == Some(release),
        ..ComponentStatus::default()
    };
    match release::state(folder, release, Verify::Thorough) {
        Ok(record) => ComponentStatus {
            source: format!("images of {}", record.made_by()),
            lacks: record.lacks.clone(),
            ..as_recorded(record, blank)
        },
        Err(flaw) => ComponentStatus {
            state: ComponentState::Flawed,
            trouble: Some(flaw.to_string()),
            remedy: Some(release::how_to_install(release)),
            ..blank
        },
    }
}

fn as_recorded(record: InstallManifest, blank: ComponentStatus) -> ComponentStatus {
    ComponentStatus {
        size_bytes: record.size_bytes(),
        state: ComponentState::Installed,
        sha256: record.files.first().map(|file| file.sha256.clone()),
        images: record.images,
        ..blank
    }
}

fn status_of(component: Component, folder: &Path, overrides: &Overrides) -> ComponentStatus {
    let blank = ComponentStatus {
        name: component.name(),
        purpose: component.purpose(),
        source: component.source(),
        ..ComponentStatus::default()
    };
    // Releases have lines of their own.
    let overrides = &overrides.without_release();
    if component.pinned_version().is_some() && !overrides.overrides_component(component) {
        installed(component, folder, blank)
    } else {
        own(component, overrides, blank)
    }
}

fn installed(component: Component, folder: &Path, blank: ComponentStatus) -> ComponentStatus {
    let path = Some(component.package_in(folder).join(component.file()));
    match state(folder, component, Verify::Thorough) {
        Ok(record) => ComponentStatus {
            version: component.pinned_version().map(ToOwned::to_owned),
            path,
            source: match record.images.first() {
                Some(image) => format!("image {}", image.reference),
                None => component.source(),
            },
            ..as_recorded(record, blank)
        },
        Err(flaw) => ComponentStatus {
            path,
            state: if matches!(flaw, Flaw::Absent) { ComponentState::Absent } else { ComponentState::Flawed },
            trouble: Some(flaw.to_string()),
            remedy: Some(how_to_get(component)),
            ..blank
        },
    }
}

fn own(component: Component, overrides: &Overrides, blank: ComponentStatus) -> ComponentStatus {
    match find(component, overrides) {
        Ok(found) => ComponentStatus {
            version: Some(found.version),
            source: match &found.origin {
                Origin::SearchPath => "your own, in PATH".to_owned(),
                _ => "your own".to_owned(),
            },
            size_bytes: std::fs::metadata(&found.path).map_or(0, |metadata| metadata.len()),
            path: Some(found.path),
            state: ComponentState::Named,
            ..blank
        },
        Err(error) => ComponentStatus {
            state: if overrides.overrides_component(component) {
                ComponentState::Flawed
            } else {
                ComponentState::Absent
            },
            trouble: Some(error_chain(&error)),
            remedy: error.hint,
            ..blank
        },
    }
}
