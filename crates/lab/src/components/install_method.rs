//! Install methods: a wheel, a Go module, or none.

use super::catalog::Component;
use super::go_program::Program;
use super::manifest::{self, Expected, FileOrigin, Flaw, InstallManifest, Made, Verify};
use super::overrides::how_to_get;
use super::supervised_command::Look;
use super::{istio_files, wheel};
use crate::Result;
use experiment::environment::EnvironmentError;
use std::path::Path;

enum InstallMethod {
    Wheel,
    Go(Program),
    IstioFiles,
    /// From the user only.
    Elsewhere,
}

fn method_of(component: Component) -> InstallMethod {
    match component {
        Component::Envoy => InstallMethod::Wheel,
        Component::IstioFiles => InstallMethod::IstioFiles,
        _ => Program::of(component).map_or(InstallMethod::Elsewhere, InstallMethod::Go),
    }
}

#[derive(Clone, Debug)]
pub(super) struct Tools {
    pub python: String,
    pub go: String,
}

impl Default for Tools {
    fn default() -> Self {
        Self { python: "python3".to_owned(), go: "go".to_owned() }
    }
}

pub(super) fn state(folder: &Path, component: Component, verify: Verify) -> Result<InstallManifest, Flaw> {
    manifest::check(&component.package_in(folder), &expected(component), verify)
}

pub(super) fn expected(component: Component) -> Expected<'static> {
    let files = files(component);
    Expected {
        component: component.name(),
        version: component.pinned_version().unwrap_or_default(),
        recipes: vec![recipe(component)],
        files,
        optional: &[],
        data: if component.is_program() { &[] } else { files },
    }
}

/// Makes the component's files in `package`.
pub(super) fn make(
    component: Component,
    tools: &Tools,
    scratch: &Path,
    package: &Path,
    look: &mut Look<'_>,
) -> Result<Made> {
    let by = match method_of(component) {
        InstallMethod::Wheel => wheel::unpack(&tools.python, scratch, package, look)?,
        InstallMethod::Go(program) => program.build(&tools.go, scratch, package, look)?,
        InstallMethod::IstioFiles => istio_files::copy(&tools.go, scratch, package, look)?,
        InstallMethod::Elsewhere => {
            return Err(EnvironmentError::new(
                format!("install {component}"),
                "it cannot be installed from here",
            )
            .with_hint(how_to_get(component)));
        }
    };
    let files = files(component).iter().map(|file| (file.into(), FileOrigin::default())).collect();
    Ok(Made { by, recipe: recipe(component), files, ..Made::default() })
}

fn recipe(component: Component) -> String {
    match method_of(component) {
        InstallMethod::Wheel => wheel::recipe(),
        InstallMethod::Go(program) => program.recipe(),
        InstallMethod::IstioFiles => istio_files::recipe(),
        InstallMethod::Elsewhere => String::new(),
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

/// Verb and usual time, for the first time on two idle cores.
pub(super) fn expectation(component: Component) -> (&'static str, &'static str) {
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
