//! Installing components into the components folder.
//!
//! Each is made in a folder of its own beside the final ones, which gets its final name in one step, with a record of what
//! it was made from. So there is never half a component, whatever interrupts the installation; what is finished stays, and
//! what an interruption left is removed by the next one. What is there is compared with its record and left alone.

use super::catalog::Component;
use super::install_dir::{InstallDir, folder};
use super::install_method::{Tools, expectation, files, make, recipe, state};
use super::installed::{Installed, Origin};
use super::manifest::{self, Flaw, Verify};
use experiment::environment::EnvironmentError;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Hears of an installation as it goes on, and may end it.
pub trait InstallObserver {
    /// Something happened. While something is made, this is called ten times a second.
    fn news(&mut self, news: InstallNews<'_>);

    /// Whether the user wants it to end.
    fn stop_requested(&self) -> bool;
}

/// What happens during an installation.
#[derive(Clone, Copy, Debug)]
pub enum InstallNews<'a> {
    /// Another installation holds the folder.
    Waiting,
    /// It is there and as it was recorded.
    Present(Component),
    /// It is there, but not as it must be.
    Flawed {
        /// Which one.
        component: Component,
        /// What is wrong with it.
        flaw: &'a str,
    },
    /// It is being made now.
    Started {
        /// Which one.
        component: Component,
        /// How it is made, such as `building`.
        verb: &'static str,
        /// How long that usually takes.
        usually: &'static str,
    },
    /// It is still being made.
    Working {
        /// Which one.
        component: Component,
        /// Time since it was started.
        elapsed: Duration,
        /// The last thing that the command at work has said; may be empty.
        last_line: &'a str,
    },
    /// It is in place.
    Finished {
        /// Which one.
        component: Component,
        /// How long that took.
        elapsed: Duration,
        /// Size of its files, bytes.
        size_bytes: u64,
    },
}

/// What [`install`] found or did for one component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The component.
    pub installed: Installed,
    /// Whether it had been there already.
    pub already_there: bool,
}

/// Components that can be installed, in the order in which they are.
pub fn installable() -> impl Iterator<Item = Component> {
    Component::ALL.into_iter().filter(|component| component.pinned_version().is_some())
}

/// Installs components, unless they are there as they were recorded: needs no network then.
///
/// # Errors
/// Where one cannot be installed, what it needs is missing, or the observer asks to stop. Those before it stay.
pub fn install(
    components: &[Component],
    observer: &mut dyn InstallObserver,
) -> Result<Vec<Installation>, EnvironmentError> {
    install_into(&folder()?, components, &Tools::default(), observer)
}

pub(super) fn install_into(
    folder: &Path,
    components: &[Component],
    tools: &Tools,
    observer: &mut dyn InstallObserver,
) -> Result<Vec<Installation>, EnvironmentError> {
    let mut place = None;
    let mut installations = Vec::new();
    for &component in components {
        if state(folder, component, Verify::Thorough).is_ok() {
            observer.news(InstallNews::Present(component));
            installations.push(installation(folder, component, true));
            continue;
        }
        let place = match &mut place {
            Some(place) => place,
            none => none.insert(InstallDir::take(folder, &mut || {
                observer.news(InstallNews::Waiting);
                !observer.stop_requested()
            })?),
        };
        // Whoever held the folder may have installed it meanwhile.
        match state(folder, component, Verify::Thorough) {
            Ok(_) => {
                observer.news(InstallNews::Present(component));
                installations.push(installation(folder, component, true));
                continue;
            }
            Err(Flaw::Absent) => {}
            Err(flaw) => observer.news(InstallNews::Flawed { component, flaw: &flaw.to_string() }),
        }
        install_one(place, folder, component, tools, observer)?;
        installations.push(installation(folder, component, false));
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
) -> Result<(), EnvironmentError> {
    let (verb, usually) = expectation(component);
    observer.news(InstallNews::Started { component, verb, usually });
    let started = Instant::now();
    let unfinished = place.unfinished()?;
    let filled = unfinished.path().join("package");
    let in_folder = |error| {
        EnvironmentError::new(format!("write the files of {component} to {}", filled.display()), error)
    };
    fs::create_dir(&filled).map_err(in_folder)?;
    let mut look = |_: Duration, last_line: &str| {
        observer.news(InstallNews::Working { component, elapsed: started.elapsed(), last_line });
        !observer.stop_requested()
    };
    let made_by = make(component, tools, unfinished.path(), &filled, &mut look)?;
    let record = manifest::write(&filled, component, &recipe(component), &made_by, files(component))
        .map_err(in_folder)?;
    place.put(&filled, &component.package_in(folder))?;
    let size_bytes = record.files.iter().map(|file| file.size_bytes).sum();
    observer.news(InstallNews::Finished { component, elapsed: started.elapsed(), size_bytes });
    Ok(())
}

#[cfg(test)]
mod tests;
