//! A release of Istio in its registry: which files come from which image.

use super::hub::{Hub, ImageFile, ImageFiles, TakeError, failed, is_absent, is_out_of_reach};
use super::istio_files::{BOOTSTRAP_TEMPLATE, ISTIO_CRDS};
use super::istio_version::ReleaseName;
use super::known_releases::{KnownRelease, known_releases};
use super::manifest::{FileOrigin, Lack, Made};
use super::release::{self, ENVOY, PILOT_AGENT, PILOT_DISCOVERY, ZTUNNEL};
use super::supervised_command::Look;
use super::{Component, version};
use crate::Result;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use std::fs;
use std::path::{Path, PathBuf};

/// A release to install.
#[derive(Clone, Debug)]
pub struct ReleaseRequest {
    pub name: ReleaseName,
    pub hub: Hub,
    /// Registry of its charts.
    pub charts: Hub,
    pub with_ztunnel: bool,
}

pub(super) const PILOT: ImageFiles =
    ImageFiles { repository: "pilot", files: &[program("/usr/local/bin/pilot-discovery", PILOT_DISCOVERY)] };

const PROXY: ImageFiles = ImageFiles {
    repository: "proxyv2",
    files: &[
        program("/usr/local/bin/pilot-agent", PILOT_AGENT),
        program("/usr/local/bin/envoy", ENVOY),
        ImageFile {
            path: "/var/lib/istio/envoy/envoy_bootstrap_tmpl.json",
            name: BOOTSTRAP_TEMPLATE,
            executable: false,
            optional: false,
        },
    ],
};

const ZTUNNEL_IMAGE: ImageFiles =
    ImageFiles { repository: "ztunnel", files: &[program("/usr/local/bin/ztunnel", ZTUNNEL)] };

/// Name of the definitions from releases before 1.24.
const EARLIER_CRDS: &str = "earlier-crds.yaml";

/// A chart is an image of one layer.
const CHART: ImageFiles = ImageFiles {
    repository: "base",
    files: &[
        definitions("/base/files/crd-all.gen.yaml", ISTIO_CRDS),
        definitions("/base/crds/crd-all.gen.yaml", EARLIER_CRDS),
    ],
};

const fn program(path: &'static str, name: &'static str) -> ImageFile {
    ImageFile { path, name, executable: true, optional: false }
}

const fn definitions(path: &'static str, name: &'static str) -> ImageFile {
    ImageFile { path, name, executable: false, optional: true }
}

/// Programs in a release.
const PROGRAMS: [(&str, Component); 4] = [
    (PILOT_DISCOVERY, Component::Istiod),
    (PILOT_AGENT, Component::PilotAgent),
    (ENVOY, Component::Envoy),
    (ZTUNNEL, Component::Ztunnel),
];

impl ReleaseRequest {
    /// Extracts the release from its images into `package`.
    pub(super) fn fetch(&self, package: &Path, look: &mut Look<'_>) -> Result<Made> {
        let mut fetch =
            Fetch { request: self, known: known_releases().find(&self.name), package, made: Made::default() };
        let images = &self.hub;
        fetch.required(images, &PILOT, look)?;
        fetch.required(images, &PROXY, look)?;
        if self.with_ztunnel {
            fetch.optional(images, &ZTUNNEL_IMAGE, Component::Ztunnel, is_absent, look)?;
        } else {
            fetch.lacks(Component::Ztunnel, "left out by --without-ztunnel".to_owned());
        }
        fetch.chart(look)?;
        let Made { files, .. } = &mut fetch.made;
        for (path, origin) in files {
            origin.version = self.stated_version(package, path, origin.image.as_deref())?;
        }
        Ok(Made { by: self.hub.to_string(), recipe: release::recipe(&self.name), ..fetch.made })
    }

    /// The version that a program reports; absent for other files.
    fn stated_version(&self, package: &Path, path: &Path, image: Option<&str>) -> Result<Option<String>> {
        let program = PROGRAMS.iter().find(|(name, _)| path == Path::new(name));
        let Some((name, component)) = program else { return Ok(None) };
        version::ask(*component, &package.join(path)).map(Some).map_err(|reason| {
            let operation = format!("run the {name} of {}", image.unwrap_or_default());
            EnvironmentError::new(operation, reason).with_hint(
                "its programs need a Linux of this architecture with a C library as recent as their image's, which lets \
                 Meshmeter make namespaces (see `meshmeter doctor`)",
            )
        })
    }
}

struct Fetch<'a> {
    request: &'a ReleaseRequest,
    known: Option<&'a KnownRelease>,
    package: &'a Path,
    made: Made,
}

impl Fetch<'_> {
    fn required(&mut self, hub: &Hub, image: &ImageFiles, look: &mut Look<'_>) -> Result<()> {
        self.take(hub, image, look).map_err(|error| self.failed(error))
    }

    /// Takes an image if possible. Records its part as missing if `may_lack` accepts the error.
    fn optional(
        &mut self,
        hub: &Hub,
        image: &ImageFiles,
        part: Component,
        may_lack: fn(&TakeError) -> bool,
        look: &mut Look<'_>,
    ) -> Result<()> {
        match self.take(hub, image, look) {
            Err(error) if may_lack(&error) => {
                self.lacks(part, error.to_string());
                Ok(())
            }
            result => result.map_err(|error| self.failed(error)),
        }
    }

    fn chart(&mut self, look: &mut Look<'_>) -> Result<()> {
        self.optional(&self.request.charts, &CHART, Component::IstioFiles, is_out_of_reach, look)?;
        let files = &mut self.made.files;
        let has = |name: &str| files.iter().any(|(path, _)| path == Path::new(name));
        let (current, earlier) = (has(ISTIO_CRDS), has(EARLIER_CRDS));
        if earlier {
            let (from, to) = (self.package.join(EARLIER_CRDS), self.package.join(ISTIO_CRDS));
            let moved = if current { fs::remove_file(&from) } else { fs::rename(&from, &to) };
            moved.context(format!("move {}", from.display()))?;
            if current {
                files.retain(|(path, _)| path != Path::new(EARLIER_CRDS));
            }
            for (path, _) in files.iter_mut().filter(|(path, _)| path == Path::new(EARLIER_CRDS)) {
                *path = PathBuf::from(ISTIO_CRDS);
            }
        } else if !current && self.made.lacks.iter().all(|lack| lack.part != Component::IstioFiles.name()) {
            self.lacks(Component::IstioFiles, "its chart has no definitions".to_owned());
        }
        Ok(())
    }

    fn take(&mut self, hub: &Hub, image: &ImageFiles, look: &mut Look<'_>) -> Result<(), TakeError> {
        let name = &self.request.name;
        let pinned = self.known.map_or(&[][..], |known| known.digests(image.repository));
        let taken = hub.take(image, name.as_str(), pinned, self.package, look)?;
        let origin = FileOrigin { image: Some(taken.image.reference.clone()), version: None };
        self.made.files.extend(taken.names.into_iter().map(|name| (name.into(), origin.clone())));
        self.made.images.push(taken.image);
        Ok(())
    }

    fn lacks(&mut self, part: Component, reason: String) {
        self.made.lacks.push(Lack { part: part.name().to_owned(), reason });
    }

    fn failed(&self, error: TakeError) -> EnvironmentError {
        failed(format!("install Istio {}", self.request.name), error)
    }
}
