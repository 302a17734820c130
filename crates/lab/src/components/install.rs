//! Installing components into the components folder.
//! Each is made in a folder of its own beside the final ones, which gets its final name in one step, with a record of what
//! it was made from. So there is never half a component, whatever interrupts the installation; what is finished stays, and
//! what an interruption left is removed by the next one. What is there is compared with its record and left alone.

use super::catalog::Component;
use super::install_dir::{InstallDir, folder};
use super::install_method::{Tools, expectation, expected, make, state};
use super::installed::{Installed, Origin};
use super::manifest::{self, Flaw, Verify};
use crate::Result;
use experiment::environment::ErrorContext as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

pub trait InstallObserver {
    /// Called ten times a second while something is made.
    fn news(&mut self, news: InstallNews<'_>);

    fn stop_requested(&self) -> bool;
}

#[derive(Clone, Copy, Debug)]
pub enum InstallNews<'a> {
    /// Another installation holds the folder.
    Waiting,
    Present(Component),
    Flawed {
        component: Component,
        flaw: &'a str,
    },
    Started {
        component: Component,
        /// Such as `building`.
        verb: &'static str,
        usually: &'static str,
    },
    Working {
        component: Component,
        elapsed: Duration,
        /// Last line of the running command's output; may be empty.
        last_line: &'a str,
    },
    Finished {
        component: Component,
        elapsed: Duration,
        size_bytes: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    pub installed: Installed,
    pub already_there: bool,
}

pub fn installable() -> impl Iterator<Item = Component> {
    Component::ALL.into_iter().filter(|component| component.pinned_version().is_some())
}

/// Installs components; needs no network for those that are there and unchanged. On an error those before it stay.
pub fn install(components: &[Component], observer: &mut dyn InstallObserver) -> Result<Vec<Installation>> {
    install_into(&folder()?, components, &Tools::default(), observer)
}

pub(super) fn install_into(
    folder: &Path,
    components: &[Component],
    tools: &Tools,
    observer: &mut dyn InstallObserver,
) -> Result<Vec<Installation>> {
    let mut place = None;
    let mut installations = Vec::new();
    for &component in components {
        let mut found = state(folder, component, Verify::Thorough);
        if found.is_err() && place.is_none() {
            place = Some(InstallDir::take(folder, &mut || {
                observer.news(InstallNews::Waiting);
                !observer.stop_requested()
            })?);
            // Whoever held the folder may have installed it meanwhile.
            found = state(folder, component, Verify::Thorough);
        }
        match (found, &place) {
            (Err(flaw), Some(place)) => {
                if !matches!(flaw, Flaw::Absent) {
                    observer.news(InstallNews::Flawed { component, flaw: &flaw.to_string() });
                }
                install_one(place, folder, component, tools, observer)?;
                installations.push(installation(folder, component, false));
            }
            _ => {
                observer.news(InstallNews::Present(component));
                installations.push(installation(folder, component, true));
            }
        }
    }
    Ok(installations)
}

fn installation(folder: &Path, component: Component, already_there: bool) -> Installation {
    let installed = Installed {
        component,
        path: component.package_in(folder).join(component.file()),
        version: component.pinned_version().unwrap_or_default().to_owned(),
        origin: Origin::Installed,
    };
    Installation { installed, already_there }
}

fn install_one(
    place: &InstallDir,
    folder: &Path,
    component: Component,
    tools: &Tools,
    observer: &mut dyn InstallObserver,
) -> Result<()> {
    let (verb, usually) = expectation(component);
    observer.news(InstallNews::Started { component, verb, usually });
    let started = Instant::now();
    let unfinished = place.unfinished()?;
    let filled = unfinished.path().join("package");
    let operation = format!("write the files of {component} to {}", filled.display());
    fs::create_dir(&filled).context(&operation)?;
    let mut look = |_: Duration, last_line: &str| {
        observer.news(InstallNews::Working { component, elapsed: started.elapsed(), last_line });
        !observer.stop_requested()
    };
    let made = make(component, tools, unfinished.path(), &filled, &mut look)?;
    let record = manifest::write(&filled, &expected(component), made).context(operation)?;
    place.put(&filled, &component.package_in(folder))?;
    let size_bytes = record.size_bytes();
    observer.news(InstallNews::Finished { component, elapsed: started.elapsed(), size_bytes });
    Ok(())
}

#[cfg(test)]
mod tests;
