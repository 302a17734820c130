//! Packages: a component or a release of Istio, each installed into a directory of its own.

use super::catalog::Component;
use super::go_program::Program;
use super::hub::Hub;
use super::manifest::{self, Expected, Flaw, InstallManifest, Made, Verify};
use super::overrides::how_to_get;
use super::release_source::ReleaseRequest;
use super::supervised_command::Look;
use super::{istio_files, kubernetes_images, release, wheel};
use crate::Result;
use experiment::environment::EnvironmentError;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug)]
pub enum Package<'a> {
    Component(Component),
    Release(&'a ReleaseRequest),
}

/// Programs and registries that installations use.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    pub python: String,
    pub go: String,
    /// Registry for the images of etcd and kube-apiserver; they are built if there is none.
    pub kubernetes: Option<Hub>,
}

impl Default for Tools {
    fn default() -> Self {
        Self { python: "python3".to_owned(), go: "go".to_owned(), kubernetes: None }
    }
}

/// How a component is installed.
enum Method<'a> {
    Wheel,
    Go(Program),
    IstioFiles,
    Image(&'a Hub),
    /// Only the user can provide it.
    Elsewhere,
}

fn method_of(component: Component, tools: &Tools) -> Method<'_> {
    match (component, &tools.kubernetes) {
        (Component::Envoy, _) => Method::Wheel,
        (Component::IstioFiles, _) => Method::IstioFiles,
        (Component::Etcd | Component::ApiServer, Some(hub)) => Method::Image(hub),
        _ => Program::for_component(component).map_or(Method::Elsewhere, Method::Go),
    }
}

impl Package<'_> {
    /// Path of its directory.
    pub(super) fn path_in(self, folder: &Path) -> PathBuf {
        match self {
            Self::Component(component) => component.package_in(folder),
            Self::Release(request) => release::package_in(folder, &request.name),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Component(component) => component.name(),
            Self::Release(_) => release::NAME,
        }
    }

    pub fn version(&self) -> &str {
        match self {
            Self::Component(component) => component.pinned_version().unwrap_or_default(),
            Self::Release(request) => request.name.as_str(),
        }
    }

    /// Name of its program, or of its first file.
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::Component(component) => component.file(),
            Self::Release(_) => release::PILOT_DISCOVERY,
        }
    }

    pub(super) fn state(self, folder: &Path, verify: Verify) -> Result<InstallManifest, Flaw> {
        match self {
            Self::Component(component) => state(folder, component, verify),
            Self::Release(request) => release::state(folder, &request.name, verify),
        }
    }

    pub(super) fn write_manifest(self, package: &Path, made: Made) -> std::io::Result<InstallManifest> {
        match self {
            Self::Component(component) => manifest::write(package, &expected(component), made),
            Self::Release(request) => manifest::write(package, &release::expected(&request.name), made),
        }
    }

    /// Creates the package's files in `package`.
    pub(super) fn make(
        self,
        tools: &Tools,
        scratch: &Path,
        package: &Path,
        look: &mut Look<'_>,
    ) -> Result<Made> {
        match self {
            Self::Component(component) => make(component, tools, scratch, package, look),
            Self::Release(request) => request.fetch(package, look),
        }
    }

    /// For example `building 3.6.8 (Go module …), which takes a minute the first time on two idle cores`.
    pub(super) fn announcement(self, tools: &Tools) -> String {
        let component = match self {
            Self::Release(request) => return format!("fetching {} from {}", request.name, request.hub),
            Self::Component(component) => component,
        };
        let version = component.pinned_version().unwrap_or_default();
        if let Method::Image(hub) = method_of(component, tools) {
            return format!("fetching {version} from {hub}");
        }
        let (verb, usually) = expectation(component);
        let source = component.source();
        format!("{verb} {version} ({source}), which takes {usually} the first time on two idle cores")
    }
}

impl fmt::Display for Package<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Component(component) => component.fmt(f),
            Self::Release(request) => write!(f, "{} {}", release::NAME, request.name),
        }
    }
}

pub(super) fn state(folder: &Path, component: Component, verify: Verify) -> Result<InstallManifest, Flaw> {
    manifest::check(&component.package_in(folder), &expected(component), verify)
}

fn expected(component: Component) -> Expected<'static> {
    let from_image = kubernetes_images::Source::for_component(component).map(|source| source.recipe());
    let files = files(component);
    Expected {
        component: component.name(),
        version: component.pinned_version().unwrap_or_default(),
        recipes: std::iter::once(pinned_recipe(component)).chain(from_image).collect(),
        files,
        optional: &[],
        data: if component.is_program() { &[] } else { files },
    }
}

fn make(
    component: Component,
    tools: &Tools,
    scratch: &Path,
    package: &Path,
    look: &mut Look<'_>,
) -> Result<Made> {
    let by = match method_of(component, tools) {
        Method::Image(hub) => return kubernetes_images::fetch(component, hub, package, look),
        Method::Wheel => wheel::unpack(&tools.python, scratch, package, look)?,
        Method::Go(program) => program.build(&tools.go, scratch, package, look)?,
        Method::IstioFiles => istio_files::copy(&tools.go, scratch, package, look)?,
        Method::Elsewhere => {
            let reason = "it is not a component that can be installed separately";
            return Err(EnvironmentError::new(format!("install {component}"), reason)
                .with_hint(how_to_get(component)));
        }
    };
    let files = files(component).iter().map(|file| (PathBuf::from(file), manifest::FileOrigin::default()));
    Ok(Made { by, recipe: pinned_recipe(component), files: files.collect(), ..Made::default() })
}

/// Recipe for what is downloaded or built from the pins in this program.
fn pinned_recipe(component: Component) -> String {
    match component {
        Component::Envoy => wheel::recipe(),
        Component::IstioFiles => istio_files::recipe(),
        _ => Program::for_component(component).map(|program| program.recipe()).unwrap_or_default(),
    }
}

fn files(component: Component) -> &'static [&'static str] {
    match component {
        Component::Envoy => &[wheel::PROGRAM],
        Component::IstioFiles => &istio_files::FILES,
        Component::Etcd => &["etcd"],
        Component::ApiServer => &["kube-apiserver"],
        Component::Istiod => &["istiod"],
        Component::PilotAgent => &["pilot-agent"],
        Component::AmbientIptables => &["ambient-iptables"],
        Component::FerretDb => &["ferretdb"],
        Component::FilterServices => &["filter-services"],
        Component::RateLimit => &["ratelimit"],
        Component::Ztunnel | Component::Mongod | Component::RedisServer => &[],
    }
}

/// Verb and usual duration of the first installation on two idle cores.
fn expectation(component: Component) -> (&'static str, &'static str) {
    match component {
        Component::Envoy => ("fetching", "half a minute, 50 MB"),
        Component::Etcd | Component::FerretDb | Component::FilterServices | Component::RateLimit => {
            ("building", "a minute")
        }
        Component::ApiServer => ("building", "4 minutes"),
        Component::IstioFiles => ("fetching", "half a minute"),
        Component::Istiod => ("building", "4 minutes"),
        Component::PilotAgent | Component::AmbientIptables => ("building", "half a minute"),
        Component::Ztunnel | Component::Mongod | Component::RedisServer => ("fetching", "no time"),
    }
}
