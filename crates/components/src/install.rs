//! Installs packages into the components directory.
//!
//! Each package is created in a temporary directory next to the final ones and renamed in one step, together
//! with a record of its origin. So an interrupted installation never leaves half a package. Finished packages
//! stay, and the next installation removes what an interrupted one left. An existing package is compared with
//! its record and left alone.

use super::catalog::Component;
use super::hub::Hub;
use super::install_dir::{InstallDir, folder};
use super::istio_version::ReleaseName;
use super::manifest::{Flaw, InstallManifest, Lack, Verify};
use super::package::{Package, Tools};
use super::release;
use super::release_source::ReleaseRequest;
use crate::Result;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub trait InstallObserver {
    /// Called ten times per second while a package is being made.
    fn news(&mut self, news: InstallNews<'_>);

    fn stop_requested(&self) -> bool;
}

#[derive(Clone, Copy, Debug)]
pub enum InstallNews<'a> {
    /// Another installation holds the directory.
    Waiting,
    Present(Package<'a>),
    Flawed {
        package: Package<'a>,
        flaw: &'a str,
    },
    Started {
        package: Package<'a>,
        /// For example `building 3.6.8 (…)`.
        announcement: &'a str,
    },
    Working {
        package: Package<'a>,
        elapsed: Duration,
        /// Last line of the running command's output, or the state of a download; may be empty.
        last_line: &'a str,
    },
    /// A part of a release is unavailable.
    Lacks {
        package: Package<'a>,
        lack: &'a Lack,
    },
    Finished {
        package: Package<'a>,
        elapsed: Duration,
        size_bytes: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// Name of the component; `istio` for a release.
    pub name: &'static str,
    pub version: String,
    /// Absolute path of the program, or of the first file.
    pub path: PathBuf,
    pub already_there: bool,
    /// Parts that a release could not provide.
    pub lacks: Vec<Lack>,
}

/// Packages to install. Releases come first.
#[derive(Clone, Debug, Default)]
pub struct InstallRequest {
    pub releases: Vec<ReleaseRequest>,
    pub components: Vec<Component>,
    /// Registry for the images of etcd and kube-apiserver; they are built if there is none.
    pub kubernetes: Option<Hub>,
}

/// Components that can be installed individually.
pub fn installable() -> impl Iterator<Item = Component> {
    Component::ALL.into_iter().filter(|component| component.pinned_version().is_some())
}

/// Installs packages. Packages that exist and are unchanged need no network. On an error, those before it
/// stay installed.
pub fn install(request: &InstallRequest, observer: &mut dyn InstallObserver) -> Result<Vec<Installation>> {
    let tools = Tools { kubernetes: request.kubernetes.clone(), ..Tools::default() };
    install_into(&folder()?, request, &tools, observer)
}

pub(super) fn install_into(
    folder: &Path,
    request: &InstallRequest,
    tools: &Tools,
    observer: &mut dyn InstallObserver,
) -> Result<Vec<Installation>> {
    let releases = request.releases.iter().map(Package::Release);
    let packages = releases.chain(request.components.iter().copied().map(Package::Component));
    let mut place = None;
    let mut installations = Vec::new();
    for package in packages {
        let mut found = package.state(folder, Verify::Thorough);
        if found.is_err() && place.is_none() {
            place = Some(take(folder, observer)?);
            // The other installation may have installed it meanwhile.
            found = package.state(folder, Verify::Thorough);
        }
        let already_there = found.is_ok();
        let record = match found {
            Ok(record) => {
                observer.news(InstallNews::Present(package));
                record
            }
            Err(flaw) => {
                if !matches!(flaw, Flaw::Absent) {
                    observer.news(InstallNews::Flawed { package, flaw: &flaw.to_string() });
                }
                let place = place.as_ref().expect("the folder is held where something is made");
                install_one(place, folder, package, tools, observer)?
            }
        };
        installations.push(installation(folder, package, record, already_there));
    }
    Ok(installations)
}

fn take(folder: &Path, observer: &mut dyn InstallObserver) -> Result<InstallDir> {
    InstallDir::take(folder, &mut || {
        observer.news(InstallNews::Waiting);
        !observer.stop_requested()
    })
}

fn installation(
    folder: &Path,
    package: Package<'_>,
    record: InstallManifest,
    already_there: bool,
) -> Installation {
    Installation {
        name: package.name(),
        version: package.version().to_owned(),
        path: package.path_in(folder).join(package.file()),
        already_there,
        lacks: record.lacks,
    }
}

fn install_one(
    place: &InstallDir,
    folder: &Path,
    package: Package<'_>,
    tools: &Tools,
    observer: &mut dyn InstallObserver,
) -> Result<InstallManifest> {
    observer.news(InstallNews::Started { package, announcement: &package.announcement(tools) });
    let started = Instant::now();
    let unfinished = place.unfinished()?;
    let filled = unfinished.path().join("package");
    let operation = format!("write the files of {package} to {}", filled.display());
    fs::create_dir(&filled).context(&operation)?;
    let mut look = |_: Duration, last_line: &str| {
        observer.news(InstallNews::Working { package, elapsed: started.elapsed(), last_line });
        !observer.stop_requested()
    };
    let made = package.make(tools, unfinished.path(), &filled, &mut look)?;
    let record = package.write_manifest(&filled, made).context(operation)?;
    place.put(&filled, &package.path_in(folder))?;
    for lack in &record.lacks {
        observer.news(InstallNews::Lacks { package, lack });
    }
    let size_bytes = record.size_bytes();
    observer.news(InstallNews::Finished { package, elapsed: started.elapsed(), size_bytes });
    Ok(record)
}

/// Sets what runs if no version of Istio is requested: a release, or the pinned source.
pub fn set_default_istio(release: Option<&ReleaseName>) -> Result<()> {
    release::set_default(&folder()?, release)
}

/// Removes an installed release.
pub fn remove_release(name: &ReleaseName, observer: &mut dyn InstallObserver) -> Result<PathBuf> {
    remove_from(&folder()?, name, observer)
}

fn remove_from(folder: &Path, name: &ReleaseName, observer: &mut dyn InstallObserver) -> Result<PathBuf> {
    let package = release::package_in(folder, name);
    let absent = || {
        let installed: Vec<String> = release::all_in(folder).iter().map(ToString::to_string).collect();
        let hint = match installed.is_empty() {
            true => "no release is installed".to_owned(),
            false => format!("installed: {}", installed.join(", ")),
        };
        EnvironmentError::new(format!("remove Istio {name}"), "it is not installed").with_hint(hint)
    };
    if !package.exists() {
        return Err(absent());
    }
    let place = take(folder, observer)?;
    // Another command may have removed it meanwhile.
    if !package.exists() {
        return Err(absent());
    }
    // It is removed in one step, so nobody finds half a release. Running programs keep their files.
    let unfinished = place.unfinished()?;
    fs::rename(&package, unfinished.path().join("removed"))
        .context(format!("remove {}", package.display()))?;
    if release::default_in(folder).as_ref() == Some(name) {
        release::set_default(folder, None)?;
    }
    unfinished.close().context(format!("remove the files of Istio {name}"))?;
    Ok(package)
}

#[cfg(test)]
mod tests;
