//! etcd and kube-apiserver from Kubernetes' images, at the pinned versions.

use super::catalog::Component;
use super::hub::{Hub, ImageFile, ImageFiles, failed};
use super::manifest::{FileOrigin, Made, sha256_of_texts};
use super::supervised_command::Look;
use super::version;
use crate::Result;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use std::path::Path;

/// Hub of Kubernetes' images.
pub const KUBERNETES_HUB: &str = "registry.k8s.io";

/// Build of etcd's image at its pinned version, part of its tag.
const ETCD_BUILD: &str = "-0";

const ETCD: ImageFiles = ImageFiles {
    repository: "etcd",
    files: &[ImageFile { path: "/usr/local/bin/etcd", name: "etcd", executable: true, optional: false }],
};

const API_SERVER: ImageFiles = ImageFiles {
    repository: "kube-apiserver",
    files: &[ImageFile {
        path: "/usr/local/bin/kube-apiserver",
        name: "kube-apiserver",
        executable: true,
        optional: false,
    }],
};

/// Image of a component at its pinned version.
pub(super) struct Source {
    image: &'static ImageFiles,
    tag: String,
}

impl Source {
    /// `None` for components without an image.
    pub(super) fn for_component(component: Component) -> Option<Self> {
        let version = component.pinned_version().unwrap_or_default();
        match component {
            Component::Etcd => Some(Self { image: &ETCD, tag: format!("{version}{ETCD_BUILD}") }),
            Component::ApiServer => Some(Self { image: &API_SERVER, tag: format!("v{version}") }),
            _ => None,
        }
    }

    pub(super) fn recipe(&self) -> String {
        sha256_of_texts(&["image", self.image.repository, &self.tag])
    }
}

pub(super) fn fetch(component: Component, hub: &Hub, package: &Path, look: &mut Look<'_>) -> Result<Made> {
    let operation = format!("take {component} out of its image");
    let Some(source) = Source::for_component(component) else {
        return Err(EnvironmentError::new(operation, "it has none"));
    };
    let taken = hub
        .take(source.image, &source.tag, &[], package, look)
        .map_err(|error| failed(operation.clone(), error))?;
    version::check_pinned(component, &package.join(component.file())).context(operation)?;
    let origin = FileOrigin {
        image: Some(taken.image.reference.clone()),
        version: component.pinned_version().map(str::to_owned),
    };
    let files = taken.names.into_iter().map(|name| (name.into(), origin.clone())).collect();
    Ok(Made {
        by: hub.to_string(),
        recipe: source.recipe(),
        files,
        images: vec![taken.image],
        lacks: Vec::new(),
    })
}
