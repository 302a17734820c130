//! Finds a component: the one that the user named, else that of the release in use, else the pinned one.

use super::catalog::Component;
use super::install_dir::{folder, unusable};
use super::installed::{Installed, Origin};
use super::istio_files::{BOOTSTRAP_TEMPLATE, GATEWAY_API_CRDS, ISTIO_CRDS, IstioFiles};
use super::manifest::Verify;
use super::overrides::{Overrides, how_to_get};
use super::package::state;
use super::release::Release;
use super::version;
use crate::Result;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use results::ComponentVersion;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Finds a program. [`istio_files`] finds the only other component.
pub fn find(component: Component, overrides: &Overrides) -> Result<Installed> {
    find_with(component, overrides, &|name| std::env::var_os(name))
}

/// The program for a topology's databases: the user's own MongoDB if one was named, else FerretDB.
pub fn find_database(overrides: &Overrides) -> Result<Installed> {
    let named = overrides.overrides_component(Component::Mongod);
    find(if named { Component::Mongod } else { Component::FerretDb }, overrides)
}

/// The store of the rate limit service's counters: the user's own Redis if one was named, else the service's
/// own store.
pub fn find_rate_limit_store(overrides: &Overrides) -> Result<Installed> {
    let named = overrides.overrides_component(Component::RedisServer);
    find(if named { Component::RedisServer } else { Component::RateLimit }, overrides)
}

/// Checks every program that an option names: users want it used, or an error.
pub fn check_options(overrides: &Overrides) -> Result<()> {
    Component::ALL
        .into_iter()
        .filter(|component| overrides.naming(*component, &|_| None).is_some())
        .try_for_each(|component| find(component, overrides).map(drop))
}

/// Files of the Istio version in use.
pub fn istio_files(overrides: &Overrides) -> Result<IstioFiles> {
    let pinned = installed(Component::IstioFiles, &folder()?);
    let Some(release) = Release::from_overrides(overrides)? else {
        let package = pinned?;
        return Ok(IstioFiles {
            istio_crds: package.join(ISTIO_CRDS),
            gateway_api_crds: Some(package.join(GATEWAY_API_CRDS)),
            bootstrap_template: package.join(BOOTSTRAP_TEMPLATE),
            recorded: None,
        });
    };
    let gateway_api_crds = pinned.as_ref().ok().map(|package| package.join(GATEWAY_API_CRDS));
    let (istio_crds, recorded) = match release.find(Component::IstioFiles) {
        Some(own) => (own.path.clone(), own.recorded()),
        None => {
            let path = pinned?.join(ISTIO_CRDS);
            let own = pinned_component(Component::IstioFiles, path.clone());
            (path, ComponentVersion { in_place_of: Some(release.name().to_owned()), ..own.recorded() })
        }
    };
    let bootstrap_template = release.bootstrap_template();
    Ok(IstioFiles { istio_crds, gateway_api_crds, bootstrap_template, recorded: Some(recorded) })
}

fn find_with(
    component: Component,
    overrides: &Overrides,
    value_of: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Installed> {
    if let Some((path, origin)) = overrides.naming(component, value_of) {
        return named(component, &path, origin);
    }
    let release = if component.is_istios() { Release::from_overrides(overrides)? } else { None };
    if let Some(found) = release.as_ref().and_then(|release| release.find(component)) {
        return Ok(found);
    }
    match component {
        Component::Mongod | Component::RedisServer => {
            Err(EnvironmentError::new(format!("find {component}"), "none was named")
                .with_hint(how_to_get(component)))
        }
        Component::Ztunnel => {
            let path = in_search_path(component.name(), value_of("PATH")).ok_or_else(|| {
                let lack = release.as_ref().and_then(|release| {
                    let reason = release.reason_for_lack(component)?;
                    Some(format!(", Istio {} was installed without it ({reason})", release.name()))
                });
                let reason = format!("none was named{}, and PATH has none", lack.unwrap_or_default());
                EnvironmentError::new("find ztunnel", reason).with_hint(how_to_get(component))
            })?;
            named(component, &path, Origin::SearchPath)
        }
        _ => {
            let path = installed(component, &folder()?)?.join(component.file());
            Ok(pinned_component(component, path))
        }
    }
}

fn pinned_component(component: Component, path: PathBuf) -> Installed {
    let version = component.pinned_version().unwrap_or_default().to_owned();
    Installed { component, path, version, origin: Origin::Installed }
}

fn named(component: Component, path: &Path, origin: Origin) -> Result<Installed> {
    let path = std::path::absolute(path).context(format!("resolve the path {}", path.display()))?;
    let version = version::ask_users_own(component, &path).map_err(|reason| {
        EnvironmentError::new(format!("use {component} at {}", path.display()), reason)
            .with_hint(how_to_get(component))
    })?;
    Ok(Installed { component, path, version, origin })
}

fn installed(component: Component, folder: &Path) -> Result<PathBuf> {
    let package = std::path::absolute(component.package_in(folder))
        .context(format!("resolve the path {}", folder.display()))?;
    let Err(flaw) = state(folder, component, Verify::Quick) else { return Ok(package) };
    let version = component.pinned_version().unwrap_or_default();
    Err(unusable(format!("use {component} {version}"), &package, &flaw, how_to_get(component)))
}

fn in_search_path(name: &str, search_path: Option<OsString>) -> Option<PathBuf> {
    std::env::split_paths(&search_path?).map(|folder| folder.join(name)).find(|path| path.is_file())
}
